/** Amounts that several hosts state of calls of models, as meters of one kind, so that sources can be checked against each other. */

import { formatExactly } from '../../base/value/format-rational.js';
import type { Meter, MeterVector } from '../../base/value/meter.js';
import {
  compareQuantities,
  formatQuantity,
  fromRational,
  type Quantity,
  toRational,
} from '../../base/value/quantity.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import type { LeftOutUsage as LeftOutSum, ReconcileMeter } from '../../format/schema/generated/types.js';
import type { LeftOut } from './host.js';
import type { JsonObject } from '../../base/json/value.js';

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
  for (const [unit, amount] of Object.entries(amounts))
    if (amount !== undefined) meters.push({ unit, amount });
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

/** Units of one reason that are summed. */
const MAX_UNITS_LEFT_OUT = 200;

/** How much is left out, by reason and unit. */
export function sumLeftOut(all: readonly LeftOut[] = []): LeftOutSum[] {
  const byReason = new Map<string, { items: number; readonly sums: Map<string, Rational> }>();
  for (const { reason, meters } of all) {
    const known = byReason.get(reason) ?? { items: 0, sums: new Map<string, Rational>() };
    byReason.set(reason, known);
    known.items += 1;
    for (const { unit, amount } of meters) {
      const next = addRationals(known.sums.get(unit) ?? ZERO, toRational(amount));
      const isNew = !known.sums.has(unit);
      if (!exceedsDenominatorLimit(next) && (!isNew || known.sums.size < MAX_UNITS_LEFT_OUT))
        known.sums.set(unit, next);
    }
  }
  return [...byReason]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, { items, sums }]) => ({
      reason,
      items,
      amounts: [...sums]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([unit, sum]) => ({ unit, amount: formatExactly(sum) })),
    }));
}

/** Amounts in a few words: `28 tokens.input, 3 tokens.output`. */
export function meterText(meters: MeterVector): string {
  return meters.map(({ unit, amount }) => `${formatExactly(toRational(amount))} ${unit}`).join(', ');
}

const MAX_UNITS = 1_000;

/** Which sum of a unit: all of the ledger, all of a source, or what of either both have. */
type Slot = 'ledger' | `${'source' | 'compared_ledger' | 'compared_source'}:${number}`;

export class ReconcileSums {
  leftOut = 0;
  readonly #byUnit = new Map<string, Map<Slot, Rational>>();

  add(slot: Slot, meters: MeterVector): void {
    for (const { unit, amount } of meters) {
      let sums = this.#byUnit.get(unit);
      if (sums === undefined && this.#byUnit.size < MAX_UNITS) {
        sums = new Map();
        this.#byUnit.set(unit, sums);
      }
      const next = addRationals(sums?.get(slot) ?? ZERO, toRational(amount));
      if (sums === undefined || exceedsDenominatorLimit(next)) this.leftOut += 1;
      else sums.set(slot, next);
    }
  }

  /** @param names - Of the sources, in order. */
  toJson(names: readonly string[]): ReconcileMeter[] {
    return [...this.#byUnit]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([unit, sums]) => {
        const of = (slot: Slot): Rational => sums.get(slot) ?? ZERO;
        return {
          unit,
          ledger: formatExactly(of('ledger')),
          sources: names.map((source, index) => ({
            source,
            amount: formatExactly(of(`source:${index}`)),
            difference: formatExactly(subtractRationals(of('ledger'), of(`source:${index}`))),
            compared_ledger: formatExactly(of(`compared_ledger:${index}`)),
            compared_source: formatExactly(of(`compared_source:${index}`)),
            compared_difference: formatExactly(
              subtractRationals(of(`compared_ledger:${index}`), of(`compared_source:${index}`)),
            ),
          })),
        };
      });
  }
}
