/** Price files (schema `prices`): read strictly, and asked for the price of a model. */

import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalText } from '../../base/json/canonicalize.js';
import { checkOptions } from '../../base/options.js';
import { type Digest, sha256Digest } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import type { PricedModel, PriceFile, PricePeriod } from '../../format/schema/generated/types.js';
import { validatePrices } from '../../format/schema/validators.js';
import { type DocumentKind, documentRefused, readDocument } from '../../format/schema/read-document.js';
import type { CallPricing, ModelCall, PricedCall } from '../../log/agent/model-usage.js';
import { costOf } from './cost.js';
import type { ModelPrice } from './model-price.js';
import { PRICE_UNITS, USD } from './units.js';
import { checkCall, checkNames, countUsage } from './usage.js';

/** The largest price file, in bytes. */
export const MAX_PRICES_BYTES = 64 * 1024 * 1024;

const KIND: DocumentKind = {
  code: 'PRICES_INVALID',
  name: 'the price file',
  schema: 'prices',
  maxBytes: MAX_PRICES_BYTES,
  validate: validatePrices,
};

/** The most names that are compared with an unknown one. */
const MAX_COMPARED = 10_000;

/** The most providers that a hint names. */
const MAX_NAMED = 10;

export interface ModelQuery {
  readonly model: string;
  /** Required where several providers have the model at different prices. */
  readonly provider?: string | undefined;
  /** A timestamp of SPEC §2. Default: now. */
  readonly at?: string | undefined;
}

/**
 * Reads a price file: JSON in any layout, without duplicate keys. Its digest is of the bytes as they are given.
 * @throws NorthrootError `PRICES_INVALID`
 */
export function parsePrices(bytes: Uint8Array): Prices {
  const value = readDocument(bytes, KIND);
  return new Prices(value as PriceFile, sha256Digest(bytes));
}

function refuse(pointer: string, expected: string, found: string): NorthrootError {
  return documentRefused(KIND, pointer, expected, found);
}

/** A price file that was read. It prices calls for {@link LiveLedger.guard} too. */
export class Prices implements CallPricing {
  /** Of the bytes of the file: `pricing_snapshot_digest` of what is priced by it. */
  readonly digest: Digest;
  /** When the prices were so, a timestamp. */
  readonly asOf: string;
  /** Where they are from. */
  readonly source: PriceFile['source'];
  readonly size: number;
  readonly units: readonly string[] = [USD, ...PRICE_UNITS];
  readonly #names = new Map<string, PricedModel[]>();
  readonly #prefixes = new Map<string, PricedModel[]>();

  /**
   * @internal {@link parsePrices} makes them
   * @throws NorthrootError `PRICES_INVALID` for what no schema says
   */
  constructor({ as_of: asOf, source, models }: PriceFile, digest: Digest) {
    if (!isTimestamp(asOf)) throw refuse('/as_of', 'a date that exists', asOf);
    this.digest = digest;
    this.asOf = asOf;
    this.source = source;
    this.size = models.length;
    // No name has a line break.
    const known = new Set<string>();
    const addOnce = (kind: 'names' | 'prefixes', name: string, model: PricedModel, pointer: string): void => {
      const key = `${kind}\n${model.provider}\n${name}`;
      if (known.has(key)) throw refuse(pointer, `each of the ${kind} of a provider once`, `${name} again`);
      known.add(key);
      const index = kind === 'names' ? this.#names : this.#prefixes;
      const others = index.get(name);
      if (others === undefined) index.set(name, [model]);
      else others.push(model);
    };
    for (const [index, model] of models.entries()) {
      const { model: name, aliases = [], prefixes = [] } = model;
      const pointer = `/models/${index}`;
      addOnce('names', name, model, `${pointer}/model`);
      for (const [n, alias] of aliases.entries()) addOnce('names', alias, model, `${pointer}/aliases/${n}`);
      for (const [n, prefix] of prefixes.entries())
        addOnce('prefixes', prefix, model, `${pointer}/prefixes/${n}`);
      checkPeriods(model.periods, `${pointer}/periods`);
    }
  }

  /**
   * The price of a model: of the one that has this name, else of the one with the longest prefix of it. Names are as the file has them,
   * upper and lower case included.
   * @throws NorthrootError `MODEL_UNKNOWN`; `MODEL_AMBIGUOUS` where several providers have it at different prices; `PRICE_UNKNOWN` at a time
   *   before the first price; TypeError, RangeError for a malformed query
   */
  find(query: ModelQuery): ModelPrice {
    checkOptions('find', query, { model: 'string', provider: 'string', at: 'string' });
    checkNames('find', query);
    const { entry, found } = this.#search(query);
    const { provider, model } = entry;
    const at = query.at ?? new Date().toISOString();
    const period = periodAt(entry, at);
    if (period === undefined)
      throw new NorthrootError('PRICE_UNKNOWN', `no price of ${model} of ${provider} at ${at}`, {
        hint: `its first price is from ${entry.periods[0]?.from ?? 'another time'}`,
      });
    return { provider, model, found, from: period.from, prices: period.prices };
  }

  /** All that the file says of a model, as it stands there. @throws as {@link Prices.find} */
  entry(query: Omit<ModelQuery, 'at'>): PricedModel {
    checkOptions('entry', query, { model: 'string', provider: 'string' });
    checkNames('entry', query);
    return this.#search(query).entry;
  }

  /** What a call used, by unit, each with the units below it; money is not in it. @throws TypeError, RangeError for a malformed call */
  count(call: ModelCall): Meter[] {
    checkCall('count', call);
    return countUsage(usageOf(call));
  }

  /** What a call cost. @throws as {@link Prices.find} and {@link costOf} */
  charge(call: ModelCall): PricedCall {
    checkCall('charge', call);
    const { model, provider, at } = call;
    const price = this.find({ model, provider, at });
    const amount = costOf(price, usageOf(call));
    return {
      usd: { unit: USD, amount },
      provider: provider ?? price.provider,
      pricingSnapshotDigest: this.digest,
    };
  }

  /** The same without an exception: where there is none, the code of that. Far cheaper then. */
  tryEntry(query: Omit<ModelQuery, 'at'>): PricedModel | 'MODEL_UNKNOWN' | 'MODEL_AMBIGUOUS' {
    const { found, candidates } = this.#candidates(query);
    if (found === undefined) return 'MODEL_UNKNOWN';
    return chooseOne(candidates) ?? 'MODEL_AMBIGUOUS';
  }

  #search(query: ModelQuery): { readonly entry: PricedModel; readonly found: 'name' | 'prefix' } {
    const { model, provider } = query;
    const { found, candidates } = this.#candidates(query);
    if (found === undefined) throw this.#unknown(model, provider);
    const entry = chooseOne(candidates);
    if (entry === undefined) throw ambiguous(model, candidates);
    return { entry, found };
  }

  #candidates({ model, provider }: ModelQuery): {
    readonly candidates: readonly PricedModel[];
    readonly found: 'name' | 'prefix' | undefined;
  } {
    const of = (all: readonly PricedModel[] = []): readonly PricedModel[] =>
      all.filter((each) => provider === undefined || each.provider === provider);
    const named = of(this.#names.get(model));
    const owners = named.filter((each) => each.model === model);
    if (named.length > 0) return { candidates: owners.length > 0 ? owners : named, found: 'name' };
    for (let length = model.length; length > 0; length -= 1) {
      const begun = of(this.#prefixes.get(model.slice(0, length)));
      if (begun.length > 0) return { candidates: begun, found: 'prefix' };
    }
    return { candidates: [], found: undefined };
  }

  #unknown(model: string, provider: string | undefined): NorthrootError {
    const others = provider === undefined ? [] : (this.#names.get(model) ?? []);
    const by = provider === undefined ? '' : ` of ${printable(provider)}`;
    const hint =
      others.length > 0
        ? `it is known of ${namesOf(others)}`
        : didYouMean(model, [...this.#names.keys()].slice(0, MAX_COMPARED));
    return new NorthrootError('MODEL_UNKNOWN', `no price of the model ${printable(model)}${by}`, { hint });
  }
}

function checkPeriods(periods: readonly PricePeriod[], pointer: string): void {
  for (const [index, { from, prices }] of periods.entries()) {
    const at = `${pointer}/${index}`;
    if (from === undefined && index > 0) throw refuse(`${at}/from`, 'a time, but for the first', 'none');
    if (from !== undefined && !isTimestamp(from)) throw refuse(`${at}/from`, 'a date that exists', from);
    const before = periods[index - 1]?.from;
    if (from !== undefined && before !== undefined && compareTimestamps(before, from) >= 0)
      throw refuse(`${at}/from`, `a time after ${before}`, from);
    const units = new Set<string>();
    for (const [n, { unit, tiers = [] }] of prices.entries()) {
      if (units.has(unit)) throw refuse(`${at}/prices/${n}/unit`, 'each unit once', `${unit} again`);
      units.add(unit);
      for (const [m, { above }] of tiers.entries())
        if (m > 0 && above <= (tiers[m - 1]?.above ?? 0))
          throw refuse(`${at}/prices/${n}/tiers/${m}/above`, 'more than before', String(above));
    }
  }
}

/** The prices of a model at a time; undefined before the first. */
export function periodAt({ periods }: PricedModel, at: string): PricePeriod | undefined {
  return periods.findLast(({ from }) => from === undefined || compareTimestamps(from, at) <= 0);
}

/** The first, if all have the same prices. */
function chooseOne([first, ...others]: readonly PricedModel[]): PricedModel | undefined {
  if (first === undefined || others.length === 0) return first;
  const periods = canonicalText(first.periods);
  return others.every((each) => canonicalText(each.periods) === periods) ? first : undefined;
}

function ambiguous(name: string, models: readonly PricedModel[]): NorthrootError {
  return new NorthrootError(
    'MODEL_AMBIGUOUS',
    `several providers have the model ${printable(name)} at different prices`,
    { hint: `name the provider: ${namesOf(models)}` },
  );
}

function namesOf(models: readonly PricedModel[]): string {
  const names = models.slice(0, MAX_NAMED).map(({ provider }) => provider);
  return names.join(', ') + (models.length > MAX_NAMED ? ', …' : '');
}

function usageOf({ model, provider, at, ...usage }: ModelCall): Omit<ModelCall, 'model' | 'provider' | 'at'> {
  void [model, provider, at];
  return usage;
}
