/** What a usage costs by a price, exactly: whole numbers of 10^-24 usd, no doubles. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions } from '../../base/options.js';
import { fromRational, type Quantity } from '../../base/value/quantity.js';
import { reduceRational } from '../../base/value/rational.js';
import type { UnitPrice } from '../../format/schema/generated/types.js';
import type { ModelUsage } from '../../log/agent/model-usage.js';
import type { ModelPrice } from './model-price.js';
import { type CountedPart, INPUT_PARTS, OTHER_PARTS, OUTPUT_PARTS, type PriceUnit } from './units.js';
import { checkCount, checkUsage, restOf } from './usage.js';

/** What a call may use at most. */
export interface WorstCase {
  /** The bytes of the whole request, as they are sent: no model makes more than one token of a byte. */
  readonly inputBytes: number;
  /** The most output tokens, as the request limits them, reasoning included. */
  readonly maxOutput: number;
  /** The most searches of the web. Default 0. */
  readonly webSearches?: number | undefined;
  /** The most images, for a model that is priced by image. Default 0. */
  readonly images?: number | undefined;
}

/**
 * The exact cost in usd. A part without a price of its own costs what its whole does; writing to a cache for an hour does so only where
 * writing for less has no price either. Above a tier's limit of input tokens, every token has the tier's price.
 * @throws NorthrootError `PRICE_UNKNOWN` where the price file has no price for what was used
 * @throws TypeError, RangeError for a malformed usage
 */
export function costOf(price: ModelPrice, usage: ModelUsage): Quantity {
  checkUsage('costOf', usage);
  const rates = ratesOf(price);
  let sum = 0n;
  const add = (count: number, rate: UnitPrice | undefined, unit: PriceUnit): void => {
    if (count === 0) return;
    sum += BigInt(count) * amountAt(rate ?? refuse(price, unit), usage.input);
  };
  const sides = [
    ['input', 'tokens.input', INPUT_PARTS],
    ['output', 'tokens.output', OUTPUT_PARTS],
  ] as const;
  for (const [member, unit, parts] of sides) {
    add(restOf('costOf', member, usage, parts), rates.get(unit), unit);
    for (const part of parts) add(usage[part.member] ?? 0, rateOf(rates, part), part.unit);
  }
  for (const part of OTHER_PARTS) {
    const rate = rates.get(part.unit);
    // Most providers count requests and do not charge for them; one that does charges for this one.
    if (part.member === 'requests') add(rate === undefined ? 0 : (usage.requests ?? 1), rate, part.unit);
    else add(usage[part.member] ?? 0, rate, part.unit);
  }
  return toUsd(sum);
}

/**
 * The most that a call can cost in usd, to be reserved before it: every byte a token, every token of the dearest kind. It holds for what is in
 * the request. What the provider adds to it (prompts of its own, earlier turns that it keeps, files and images that it fetches, results of its
 * own tools) is not.
 * @throws NorthrootError `PRICE_UNKNOWN` where the price file has no price for it; TypeError, RangeError for malformed limits
 */
export function worstCaseOf(price: ModelPrice, most: WorstCase): Quantity {
  checkOptions('worstCaseOf', most, {
    inputBytes: 'number',
    maxOutput: 'number',
    webSearches: 'number',
    images: 'number',
  });
  const { inputBytes, maxOutput, webSearches = 0, images = 0 } = most;
  for (const [name, value] of Object.entries({ inputBytes, maxOutput, webSearches, images }))
    checkCount('worstCaseOf', name, value);
  const rates = ratesOf(price);
  let sum = 0n;
  const add = (count: number, ...units: readonly [PriceUnit, ...PriceUnit[]]): void => {
    if (count === 0) return;
    const amounts = units.flatMap((unit) => amountsUpTo(rates.get(unit), inputBytes));
    if (amounts.length === 0) refuse(price, units[0]);
    sum += BigInt(count) * amounts.reduce((a, b) => (a > b ? a : b));
  };
  add(inputBytes, 'tokens.input', ...INPUT_PARTS.map(({ unit }) => unit));
  add(maxOutput, 'tokens.output', ...OUTPUT_PARTS.map(({ unit }) => unit));
  add(rates.has('requests') ? 1 : 0, 'requests');
  add(webSearches, 'web_searches');
  add(images, 'images');
  return toUsd(sum);
}

type Rates = ReadonlyMap<PriceUnit, UnitPrice>;

function ratesOf({ prices }: ModelPrice): Rates {
  return new Map(prices.map((price) => [price.unit, price]));
}

function rateOf(rates: Rates, part: CountedPart): UnitPrice | undefined {
  const own = rates.get(part.unit);
  if (own !== undefined || (part.unless !== undefined && rates.has(part.unless))) return own;
  return part.else.map((unit) => rates.get(unit)).find((rate) => rate !== undefined);
}

/** The price of one in a call with so much input. */
function amountAt({ usd, tiers = [] }: UnitPrice, input: number): bigint {
  return scaledAmount(tiers.reduce((amount, tier) => (input > tier.above ? tier.usd : amount), usd));
}

/** Every price that one may have in a call with at most so much input. */
function amountsUpTo(rate: UnitPrice | undefined, mostInput: number): bigint[] {
  if (rate === undefined) return [];
  const reached = (rate.tiers ?? []).filter(({ above }) => mostInput > above);
  return [rate, ...reached].map(({ usd }) => scaledAmount(usd));
}

function refuse({ provider, model }: ModelPrice, unit: PriceUnit): never {
  throw new NorthrootError(
    'PRICE_UNKNOWN',
    `no price of ${unit} for ${printable(model)} of ${printable(provider)}`,
  );
}

/** The decimal places of prices. */
const PRICE_SCALE = 24;
const ONE_USD = 10n ** BigInt(PRICE_SCALE);

function toUsd(scaled: bigint): Quantity {
  return fromRational(reduceRational(scaled, ONE_USD));
}

/** The exact number of 10^-24 usd of a price file's decimal. */
function scaledAmount(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(PRICE_SCALE, '0'));
}
