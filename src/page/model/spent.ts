/** Who used how much, by principal and unit, as exact sums of what well-formed executions and adjustments say. */

import { printable } from '../../bytes/printable.js';
import { formatRational } from '../../value/format-rational.js';
import type { MeterVector } from '../../value/meter.js';
import { toRational } from '../../value/quantity.js';
import { addRationals, exceedsDenominatorLimit, ZERO, type Rational } from '../../value/rational.js';
import type { Spender, SpentUnit } from './protocol.js';
import { groupDigits } from './words.js';

/** A sum whose denominator grew beyond what an account may have is given up, and not rounded. */
type Sum = Rational | 'too long';

interface UnitSums {
  used: Sum;
  estimated: Sum;
  adjusted: Sum;
  hasAdjustments: boolean;
}

interface Deeds {
  executions: number;
  failures: number;
  blocked: number;
  refused: number;
  readonly units: Map<string, UnitSums>;
}

const NOT_SUMMED = 'not summed: fractions with too long denominators';

/** See the head of this file. */
export class Spending {
  readonly #byPrincipal = new Map<string, Deeds>();
  readonly #all = new Map<string, UnitSums>();

  addExecution(principal: string, meters: MeterVector, outcome: string, isEstimated: boolean): void {
    const deeds = this.#deedsOf(principal);
    deeds.executions += 1;
    if (outcome === 'failure') deeds.failures += 1;
    for (const { unit, amount } of meters) {
      const value = toRational(amount);
      for (const sums of [sumsOf(deeds.units, unit), sumsOf(this.#all, unit)]) {
        sums.used = add(sums.used, value);
        if (isEstimated) sums.estimated = add(sums.estimated, value);
      }
    }
  }

  addRefusal(principal: string, isBlockedAttempt: boolean): void {
    const deeds = this.#deedsOf(principal);
    if (isBlockedAttempt) deeds.blocked += 1;
    else deeds.refused += 1;
  }

  /** A credit or debit that counts, for the principal of its grant. */
  addAdjustment(principal: string, direction: 'credit' | 'debit', meters: MeterVector): void {
    for (const { unit, amount } of meters) {
      const { n, d } = toRational(amount);
      for (const sums of [sumsOf(this.#deedsOf(principal).units, unit), sumsOf(this.#all, unit)]) {
        sums.adjusted = add(sums.adjusted, { n: direction === 'credit' ? -n : n, d });
        sums.hasAdjustments = true;
      }
    }
  }

  units(): SpentUnit[] {
    return toUnits(this.#all);
  }

  /** Those that did most first. */
  spenders(limit: number): Spender[] {
    return [...this.#byPrincipal]
      .sort(([, a], [, b]) => b.executions - a.executions)
      .slice(0, limit)
      .map(([principal, { units, ...deeds }]) => ({
        principal: printable(principal),
        ...deeds,
        units: toUnits(units),
      }));
  }

  get size(): number {
    return this.#byPrincipal.size;
  }

  #deedsOf(principal: string): Deeds {
    let deeds = this.#byPrincipal.get(principal);
    if (deeds === undefined) {
      deeds = { executions: 0, failures: 0, blocked: 0, refused: 0, units: new Map() };
      this.#byPrincipal.set(principal, deeds);
    }
    return deeds;
  }
}

function sumsOf(units: Map<string, UnitSums>, unit: string): UnitSums {
  let sums = units.get(unit);
  if (sums === undefined) {
    sums = { used: ZERO, estimated: ZERO, adjusted: ZERO, hasAdjustments: false };
    units.set(unit, sums);
  }
  return sums;
}

function add(sum: Sum, value: Rational): Sum {
  if (sum === 'too long') return sum;
  const total = addRationals(sum, value);
  return exceedsDenominatorLimit(total) ? 'too long' : total;
}

function toUnits(units: ReadonlyMap<string, UnitSums>): SpentUnit[] {
  return [...units].sort(byUnit).map(([unit, { used, estimated, adjusted, hasAdjustments }]) => ({
    unit,
    used: sumText(used),
    estimated: estimated !== 'too long' && estimated.n === 0n ? undefined : sumText(estimated),
    adjusted: hasAdjustments ? sumText(adjusted) : undefined,
    total: sumText(adjusted === 'too long' ? adjusted : add(used, adjusted)),
  }));
}

/** Money first, then what was called, then the rest by name. */
function byUnit([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  const rank = (unit: string): number => (/^[a-z]{3}$/.test(unit) ? 0 : unit === 'calls' ? 1 : 2);
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

function sumText(sum: Sum): string {
  return sum === 'too long' ? NOT_SUMMED : groupDigits(formatRational(sum));
}
