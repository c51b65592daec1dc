/** Sums by unit, of the ledger and of each source, exactly. */

import { formatExactly } from '../../base/value/format-rational.js';
import type { MeterVector } from '../../base/value/meter.js';
import { toRational } from '../../base/value/quantity.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import type { ReconcileMeter } from '../../format/schema/generated/types.js';

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
