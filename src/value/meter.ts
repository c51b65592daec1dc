/** Meters, SPEC §2: amounts of units, and vectors of them in which each unit stands once. */

import { isNegativeQuantity, quantity, type Quantity } from './quantity.js';

/** So much of one unit. */
export interface Meter {
  readonly unit: string;
  readonly amount: Quantity;
}

/** Up to {@link MAX_METERS} meters, each unit once. */
export type MeterVector = readonly Meter[];

/** The greatest number of meters in a vector. */
export const MAX_METERS = 64;

const UNIT = /^[a-z][a-z0-9_.-]{0,63}$/;

/** Whether `text` is a Unit: `usd`, `tokens.input`, `calls`, `time.ms`. */
export function isUnit(text: string): boolean {
  return UNIT.test(text);
}

/**
 * A meter vector from amounts by unit, sorted by unit: `meters({ usd: '0.25', calls: 1n })`. Amounts are what
 * {@link quantity} takes, or quantities.
 * @throws RangeError for a name that is no Unit, a negative amount, an amount that does not fit, more than 64 units.
 */
export function meters(amounts: Readonly<Record<string, bigint | number | string | Quantity>>): Meter[] {
  const units = Object.keys(amounts).sort();
  if (units.length > MAX_METERS)
    throw new RangeError(`expected at most ${MAX_METERS} units, found ${units.length}`);
  return units.map((unit) => {
    if (!isUnit(unit))
      throw new RangeError(`expected a unit such as usd or time.ms, found ${JSON.stringify(unit)}`);
    const value = amounts[unit] as bigint | number | string | Quantity;
    const amount = typeof value === 'object' ? value : quantity(value);
    if (isNegativeQuantity(amount))
      throw new RangeError(`expected an amount of ${unit} that is not negative`);
    return { unit, amount };
  });
}
