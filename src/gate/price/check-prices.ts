/**
 * Computes amounts again: what an execution states in usd, from the tokens that it states and the price file that it names by digest. An
 * amount that differs is no fault of the ledger, which records what it was told.
 */

import { printable } from '../../base/bytes/printable.js';
import { formatRational } from '../../base/value/format-rational.js';
import { formatDigest } from '../../base/value/digest.js';
import { formatQuantity, type Quantity, toRational } from '../../base/value/quantity.js';
import { compareRationals, type Rational, subtractRationals } from '../../base/value/rational.js';
import { basisOf } from '../../format/event/meter-basis.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import type { ExecutionEvent, PricedModel, PricesCheckJson } from '../../format/schema/generated/types.js';
import type { RecordCheck } from '../../rules/verify/record-check.js';
import { costOf } from './cost.js';
import { periodAt, type Prices } from './price-file.js';
import { USD } from './units.js';
import { MAX_NAME_LENGTH, usageOf } from './usage.js';
import { NorthrootError } from '../../base/error.js';

/** Price files that executions name and nobody gave: the most that are listed by digest. */
const MAX_MISSING_LISTED = 10;

/** The most models whose prices are remembered. */
const MAX_REMEMBERED = 10_000;

/** Why an amount could not be computed, in words. */
const REASONS = {
  unnamed: 'name no price file',
  file: 'name a price file that was not given',
  model: 'name no model that their price file has once',
  period: 'are from before the prices of their model',
  price: 'used what their model has no price of',
  tokens: 'do not state all input and output tokens as whole numbers',
  estimated: 'state less than their estimated tokens cost, as where a reservation was the most',
} as const;

type Reason = keyof typeof REASONS;

/**
 * A check of what calls of models cost, for `checks` of one verification. `PRICE_MISMATCH` is told of each execution whose usd are not what
 * `costOf` makes of its tokens, at the prices that the file named in it had when it started, ended or was recorded. What could not be
 * computed is said in `not_checked` (PRICES). Executions that name neither a model nor a price file are not looked at.
 * @param files - Each execution is held against the file whose digest it names
 * @example
 * ```ts
 * const prices = await openPrices('prices.json');
 * const report = await verifyLedger('ledger.jsonl', { checks: [checkPrices([prices])] });
 * console.log(report.prices);
 * ```
 */
export function checkPrices(files: readonly Prices[]): RecordCheck {
  return new PriceCheck(files);
}

const NAMES_FILE = Buffer.from('"pricing_snapshot_digest":');
const NAMES_MODEL = Buffer.from('"model_id":');

class PriceCheck implements RecordCheck {
  readonly #files: ReadonlyMap<string, Prices>;
  readonly #counts: PricesCheckJson = { executions: 0, equal: 0, different: 0, undecided: 0 };
  readonly #reasons = new Map<Reason, number>();
  readonly #missing = new Set<string>();
  readonly #entries = new Map<string, PricedModel | undefined>();

  constructor(files: readonly Prices[]) {
    this.#files = new Map(files.map((file) => [formatDigest(file.digest), file]));
  }

  wants(verdict: string, bytes: () => Uint8Array): boolean {
    if (verdict === 'invalid') return false;
    const line = bytes();
    const view = Buffer.from(line.buffer, line.byteOffset, line.byteLength);
    return view.includes(NAMES_FILE) || view.includes(NAMES_MODEL);
  }

  check({ examined }: Parameters<RecordCheck['check']>[0]): RuleFinding[] {
    if (examined?.wellFormed !== true || examined.type !== 'execution') return [];
    const event = examined.event();
    const { model_id: model, pricing_snapshot_digest: named, meter_used: used } = event;
    const place = used.findIndex(({ unit }) => unit === USD);
    const stated = used[place]?.amount;
    if (stated === undefined || (model === undefined && named === undefined)) return [];
    this.#counts.executions += 1;
    const outcome = this.#compute(event, toRational(stated));
    if (typeof outcome === 'string') {
      this.#counts.undecided += 1;
      this.#reasons.set(outcome, (this.#reasons.get(outcome) ?? 0) + 1);
      return [];
    }
    if (outcome === undefined) {
      this.#counts.equal += 1;
      return [];
    }
    this.#counts.different += 1;
    const { amount, entry } = outcome;
    return [
      {
        code: 'PRICE_MISMATCH',
        pointer: `/meter_used/${place}/amount`,
        expected: `${formatQuantity(amount)} usd, the price of ${printable(entry.model)} of ${printable(entry.provider)} in ${named === undefined ? '' : formatDigest(named)}`,
        actual: `${formatQuantity(stated)}, ${differenceOf(toRational(stated), toRational(amount))}`,
      },
    ];
  }

  finish(): ReturnType<RecordCheck['finish']> {
    const { undecided } = this.#counts;
    const listed = [...this.#missing].slice(0, MAX_MISSING_LISTED);
    const more = this.#missing.size > listed.length ? ' and others' : '';
    const parts = [...this.#reasons].map(([reason, count]) => {
      const which = reason === 'file' ? ` (${listed.join(', ')}${more})` : '';
      return `${count} ${REASONS[reason]}${which}`;
    });
    const message = `amounts of executions that could not be computed again: ${undecided}; ${parts.join('; ')}`;
    return {
      notChecked: undecided === 0 ? [] : [{ code: 'PRICES', message }],
      report: { prices: { ...this.#counts } },
    };
  }

  /** Undefined where it is the stated amount. */
  #compute(
    event: ExecutionEvent,
    stated: Rational,
  ): { readonly amount: Quantity; readonly entry: PricedModel } | Reason | undefined {
    const { pricing_snapshot_digest: named, model_id: model, provider, meter_used: used } = event;
    if (named === undefined) return 'unnamed';
    const digest = formatDigest(named);
    const file = this.#files.get(digest);
    if (file === undefined) {
      if (this.#missing.size <= MAX_MISSING_LISTED) this.#missing.add(digest);
      return 'file';
    }
    const entry = model === undefined ? undefined : this.#entryOf(file, digest, model, provider);
    if (entry === undefined) return 'model';
    const usage = usageOf(used);
    if (usage === undefined) return 'tokens';
    let computed: Quantity | undefined;
    let isPriced = true;
    for (const at of new Set([event.occurred_at, event.ended_at, event.started_at])) {
      const period = at === undefined ? undefined : periodAt(entry, at);
      if (period === undefined) continue;
      const price = {
        provider: entry.provider,
        model: entry.model,
        found: 'name',
        from: period.from,
      } as const;
      let amount: Quantity;
      try {
        amount = costOf({ ...price, prices: period.prices }, usage);
      } catch (error) {
        if (!(error instanceof NorthrootError)) throw error;
        isPriced = false;
        continue;
      }
      if (compareRationals(toRational(amount), stated) === 0) return undefined;
      computed ??= amount;
    }
    if (computed === undefined) return isPriced ? 'period' : 'price';
    const isGuess = ['tokens.input', 'tokens.output'].some((unit) => basisOf(event, unit) === 'estimated');
    if (isGuess && compareRationals(stated, toRational(computed)) < 0) return 'estimated';
    return { amount: computed, entry };
  }

  #entryOf(
    file: Prices,
    digest: string,
    model: string,
    provider: string | undefined,
  ): PricedModel | undefined {
    if (model === '' || model.length > MAX_NAME_LENGTH) return undefined;
    const key = JSON.stringify([digest, model, provider]);
    if (this.#entries.has(key)) return this.#entries.get(key);
    if (this.#entries.size >= MAX_REMEMBERED) this.#entries.clear();
    const found = file.tryEntry({ model, provider });
    const entry = typeof found === 'string' ? undefined : found;
    this.#entries.set(key, entry);
    return entry;
  }
}

function differenceOf(stated: Rational, computed: Rational): string {
  return compareRationals(stated, computed) > 0
    ? `${formatRational(subtractRationals(stated, computed))} more`
    : `${formatRational(subtractRationals(computed, stated))} less`;
}
