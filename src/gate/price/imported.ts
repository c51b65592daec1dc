/** What the importers of price lists share: models that are kept, and counts of what is left out. */

import { printable } from '../../base/bytes/printable.js';
import { parseDecimal } from '../../base/json/decimal.js';
import { SourceNumber, type SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { PricedModel, UnitPrice } from '../../format/schema/generated/types.js';
import { ALL_PARTS, type PriceUnit } from './units.js';

/** What of a price list is not in the file that is made of it. */
export interface LeftOutPrices {
  /** A whole model, one of a model's prices, or a pattern for names of a model. */
  readonly what: 'model' | 'price' | 'pattern';
  /** Why: a code, or the source's name of a price that no unit here has. */
  readonly reason: string;
  readonly count: number;
  /** The first: a model, in the source's words. */
  readonly example: string;
}

/** The most kinds that are told apart, so that hostile member names do not fill a report. */
const MAX_KINDS = 200;
const MAX_REASON_LENGTH = 64;
const OTHER = 'OTHER';

/** Counts what is left out. */
export class LeftOut {
  readonly #kinds = new Map<
    string,
    { what: LeftOutPrices['what']; reason: string; count: number; example: string }
  >();

  add(what: LeftOutPrices['what'], reason: string, example: string): void {
    const shown = printable(reason, MAX_REASON_LENGTH);
    const key = `${what} ${shown}`;
    const known = this.#kinds.get(key);
    if (known !== undefined) known.count += 1;
    else if (this.#kinds.size < MAX_KINDS || reason === OTHER)
      this.#kinds.set(key, { what, reason: shown, count: 1, example: printable(example, 80) });
    else this.add(what, OTHER, example);
  }

  /** Ordered by what, then by reason. */
  list(): LeftOutPrices[] {
    return [...this.#kinds].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, kind]) => kind);
  }
}

const NAME = /^[!-~]{1,256}$/;

/** Whether a price file may have it as a name. */
export function isPriceName(value: unknown): value is string {
  return typeof value === 'string' && NAME.test(value);
}

const MAX_PLACES = 24;
const MAX_WHOLE_DIGITS = 3;

/**
 * The exact decimal of a number's text, moved by so many places to the right; undefined for what no price file has.
 * @param places - 6 for a price per million
 */
export function exactPrice(value: SourceValue | undefined, places = 0): string | undefined {
  if (!(value instanceof SourceNumber)) return undefined;
  const { negative, digits, exponent } = parseDecimal(value.text);
  if (digits === '') return '0';
  const scale = places - exponent;
  if (negative || scale > MAX_PLACES || digits.length - scale > MAX_WHOLE_DIGITS) return undefined;
  if (scale <= 0) return digits + '0'.repeat(-scale);
  const padded = digits.padStart(scale + 1, '0');
  return `${padded.slice(0, -scale)}.${padded.slice(-scale)}`;
}

/** As the schema has it. */
const MAX_TIERS = 16;

/** The prices of a model by unit, in the order of units. */
export class PriceList {
  readonly #prices = new Map<PriceUnit, { usd?: string; readonly tiers: Map<number, string> }>();

  /** @param above - The input tokens above which it holds; undefined for the price up to the first tier */
  set(unit: PriceUnit, usd: string, above?: number): void {
    const price = this.#prices.get(unit) ?? { tiers: new Map<number, string>() };
    this.#prices.set(unit, price);
    if (above === undefined) price.usd = usd;
    else price.tiers.set(above, usd);
  }

  /** Undefined where a unit has tiers, and it is not said what it costs below them; and for more tiers than a price file has. */
  list(): UnitPrice[] | undefined {
    const list: UnitPrice[] = [];
    for (const [unit, own] of [...this.#prices].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const { usd, tiers } = own.usd === undefined ? this.#below(unit, own.tiers) : own;
      if (usd === undefined) return undefined;
      const steps = [...tiers].sort(([a], [b]) => a - b).map(([above, each]) => ({ above, usd: each }));
      if (steps.length > MAX_TIERS) return undefined;
      list.push(steps.length === 0 ? { unit, usd } : { unit, usd, tiers: steps });
    }
    return list;
  }

  /** Below its first tier, a part costs what its whole does; what is kept for an hour may cost more. */
  #below(unit: PriceUnit, tiers: ReadonlyMap<number, string>): Tiered {
    const part = ALL_PARTS.find((each) => each.unit === unit);
    const whole = part?.unless === undefined ? this.#prices.get(part?.else.at(-1) ?? unit) : undefined;
    const first = Math.min(...tiers.keys());
    const below = [...(whole?.tiers ?? [])].filter(([above]) => above < first);
    return { usd: whole?.usd, tiers: new Map([...below, ...tiers]) };
  }
}

interface Tiered {
  readonly usd: string | undefined;
  readonly tiers: ReadonlyMap<number, string>;
}

/** Whether any of them is above 0. */
export function hasPrice(prices: readonly UnitPrice[]): boolean {
  return prices.some(({ usd, tiers = [] }) =>
    [usd, ...tiers.map((tier) => tier.usd)].some((each) => each !== '0'),
  );
}

/** A model with its other names; where two of a provider have the same, the first has it. */
export interface ImportedModel extends PricedModel {
  aliases: string[];
  prefixes: string[];
}

/** Leaves each name of a provider to one model: to the model whose own name it is, else to the first. */
export function settleNames(models: readonly ImportedModel[], leftOut: LeftOut): PricedModel[] {
  const keyOf = ({ provider }: PricedModel, name: string): string => `${provider}\n${name}`;
  const names = new Set<string>();
  const own = models.filter((model) => {
    const key = keyOf(model, model.model);
    if (names.has(key)) leftOut.add('model', 'NAME_REPEATED', model.model);
    else if (names.add(key)) return true;
    return false;
  });
  const prefixes = new Set<string>();
  const take = (taken: Set<string>, model: PricedModel, all: readonly string[]): string[] =>
    all.filter((name) => {
      const key = keyOf(model, name);
      if (taken.has(key)) return false;
      taken.add(key);
      return true;
    });
  return own.map((model) => {
    const { provider, model: name, periods } = model;
    const aliases = take(names, model, model.aliases).sort();
    const begins = take(prefixes, model, model.prefixes).sort();
    return {
      provider,
      model: name,
      ...(aliases.length === 0 ? {} : { aliases }),
      ...(begins.length === 0 ? {} : { prefixes: begins }),
      periods,
    };
  });
}

/** A member; undefined where it is absent or null. */
export function memberOf(object: SourceObject, name: string): SourceValue | undefined {
  const value = object.get(name);
  return value === null ? undefined : value;
}
