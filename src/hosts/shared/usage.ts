/** Amounts that several hosts state of calls of models, as meters of one kind, so that sources can be checked against each other. */

import type { JsonObject } from '../../base/json/value.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import {
  compareQuantities,
  formatQuantity,
  fromRational,
  type Quantity,
  toRational,
} from '../../base/value/quantity.js';
import { addRationals, type Rational, subtractRationals, ZERO } from '../../base/value/rational.js';

/** One call. */
export const ONE_CALL: Meter = { unit: 'calls', amount: { t: 'int', v: '1' } };

/** One call, and the milliseconds that it took where they are stated. */
export function callMeters(milliseconds: Quantity | undefined): Meter[] {
  return milliseconds === undefined ? [ONE_CALL] : [ONE_CALL, { unit: 'time.ms', amount: milliseconds }];
}

/** An amount in words. */
export function shownAmount(amount: Quantity | undefined): string {
  return amount === undefined ? 'none' : formatQuantity(amount);
}

/** Amounts under the names that the source gives them; undefined ones are left out. */
export type StatedAmounts = Readonly<Record<string, Quantity | undefined>>;

/** What is kept of them in an event. */
export function amountFacts(amounts: StatedAmounts): JsonObject {
  return Object.fromEntries(
    Object.entries(amounts).flatMap(([name, amount]) =>
      amount === undefined ? [] : [[name, { ...amount }]],
    ),
  );
}

/** Amounts by unit as a meter vector. */
export function metersOf(amounts: StatedAmounts): MeterVector {
  const meters: Meter[] = [];
  for (const [unit, amount] of Object.entries(amounts)) {
    if (amount !== undefined) meters.push({ unit, amount });
  }
  return meters;
}

/** The sum of those that are stated; undefined where none is, and where no quantity holds it. */
export function sumOf(amounts: readonly (Quantity | undefined)[]): Quantity | undefined {
  const stated = amounts.filter((amount) => amount !== undefined);
  return stated.length === 0 ? undefined : quantityOf(stated.map(toRational).reduce(addRationals, ZERO));
}

/** What the first is more than the second; undefined where it is not, and where no quantity holds it. */
export function excessOf(one: Quantity, other: Quantity): Quantity | undefined {
  return exceeds(one, other) ? quantityOf(subtractRationals(toRational(one), toRational(other))) : undefined;
}

/** As a quantity; undefined where none holds it. */
export function quantityOf(amount: Rational): Quantity | undefined {
  try {
    return fromRational(amount);
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

/** Whether both are stated, and the first is more than the second. */
export function exceeds(part: Quantity | undefined, whole: Quantity | undefined): boolean {
  return part !== undefined && whole !== undefined && compareQuantities(part, whole) > 0;
}

/** Whether both are stated, and they differ. */
export function differ(one: Quantity | undefined, other: Quantity | undefined): boolean {
  return one !== undefined && other !== undefined && compareQuantities(one, other) !== 0;
}
