/** Amounts of Cycles as exact quantities: whole numbers of a unit, of which the money is in hundred-millionths of a dollar. */

import type { SourceValue } from '../../../base/json/source-json.js';
import type { MeterVector } from '../../../base/value/meter.js';
import type { Quantity } from '../../../base/value/quantity.js';
import { fromRational } from '../../../base/value/quantity.js';
import { reduceRational } from '../../../base/value/rational.js';
import { numberAt, textAt } from '../../shared/values.js';

/** The meter of each unit, and how many of it are one of that. */
const METERS: Readonly<Record<string, readonly [unit: string, parts: bigint]>> = {
  // A microcent is a millionth of a cent.
  USD_MICROCENTS: ['usd', 100_000_000n],
  TOKENS: ['tokens', 1n],
  CREDITS: ['credits', 1n],
  RISK_POINTS: ['risk_points', 1n],
};

export interface CyclesAmount {
  readonly unit: string;
  readonly amount: bigint;
}

/** The amount at `path`; undefined where there is none. Its shape was checked. */
export function cyclesAmountAt(value: SourceValue, ...path: readonly string[]): CyclesAmount | undefined {
  const unit = textAt(value, ...path, 'unit');
  const text = numberAt(value, ...path, 'amount');
  return unit === undefined || text === undefined
    ? undefined
    : { unit, amount: BigInt(text.replace(/\..*$/, '')) };
}

/** As a quantity of its meter: `1750000` of `USD_MICROCENTS` is `0.0175` of `usd`. */
export function quantityOfAmount({ unit, amount }: CyclesAmount): Quantity {
  return fromRational(reduceRational(amount, METERS[unit]![1]));
}

/** As a meter vector; empty without an amount. */
export function metersOfAmount(stated: CyclesAmount | undefined): MeterVector {
  if (stated === undefined) return [];
  return [{ unit: METERS[stated.unit]![0], amount: quantityOfAmount(stated) }];
}
