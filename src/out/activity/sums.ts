/** Exact sums by unit, of bounded number, fineness and length. What does not fit is counted, never dropped silently. */

import { formatExactly } from '../../base/value/format-rational.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  type Rational,
  subtractRationals,
  ZERO,
} from '../../base/value/rational.js';
import type { ActivityMeter } from '../../format/schema/generated/types.js';

/** Where an amount comes from (`meter_basis`). */
export const BASES = ['measured', 'reported', 'estimated', 'billed', 'unstated'] as const;

export type Basis = (typeof BASES)[number];

/** Units that are summed, each once for each group; further ones are counted as left out. */
const MAX_SUMS = 100_000;

/**
 * Bytes that sums which are longer than {@link LONG} may have together. The sum of a few doubles may have a thousand digits; a report has
 * several texts of each.
 */
export const MAX_LONG_SUM_BYTES = 4 * 1024 * 1024;

/** Below this a numerator or denominator is short: only the number of such sums is bounded. */
const LONG = 1n << 256n;

const PARTS = ['debited', 'credited', 'unauthorized', 'violation', 'invalid', 'reserved'] as const;

export type SumPart = Basis | (typeof PARTS)[number];

const ALL_PARTS: readonly SumPart[] = [...BASES, ...PARTS];

/** What there may still be, for all groups together. */
export interface SumBudget {
  left: number;
  /** Bytes of long ones. */
  longBytes: number;
}

/** All that there may be. */
export function startSumBudget(): SumBudget {
  return { left: MAX_SUMS, longBytes: MAX_LONG_SUM_BYTES };
}

export class Sums {
  leftOut = 0;
  readonly #budget: SumBudget;
  readonly #byUnit = new Map<string, Partial<Record<SumPart, Rational>>>();

  constructor(budget: SumBudget) {
    this.#budget = budget;
  }

  get isEmpty(): boolean {
    return this.#byUnit.size === 0;
  }

  /** Adds an amount to parts of a unit's sum: to all of them, or where one becomes too fine, or too long, to none. */
  add(unit: string, amount: Rational, parts: readonly SumPart[]): void {
    let sum = this.#byUnit.get(unit);
    if (sum === undefined) {
      if (this.#budget.left === 0) {
        this.leftOut += 1;
        return;
      }
      this.#budget.left -= 1;
      sum = {};
      this.#byUnit.set(unit, sum);
    }
    const [first] = parts;
    if (parts.length === 1 && first !== undefined) {
      const before = sum[first] ?? ZERO;
      const next = addRationals(before, amount);
      if (exceedsDenominatorLimit(next) || !this.#takes(longBytesOf(next) - longBytesOf(before)))
        this.leftOut += 1;
      else sum[first] = next;
      return;
    }
    const before = parts.map((part) => sum[part] ?? ZERO);
    const next = before.map((each) => addRationals(each, amount));
    if (
      next.some(exceedsDenominatorLimit) ||
      !this.#takes(next.reduce((all, each, i) => all + longBytesOf(each) - longBytesOf(before[i] ?? ZERO), 0))
    ) {
      this.leftOut += 1;
      return;
    }
    for (const [index, part] of parts.entries()) sum[part] = next[index] as Rational;
  }

  /** Reserves bytes for long sums, or releases them; false if there are too few. */
  #takes(bytes: number): boolean {
    if (bytes > this.#budget.longBytes) return false;
    this.#budget.longBytes -= bytes;
    return true;
  }

  /** These sums and others. Parts that exceed the bounds only together are counted as left out of the result. */
  with(other: Sums): Sums {
    const both = new Sums({ left: Infinity, longBytes: Infinity });
    for (const sums of [this, other])
      for (const [unit, sum] of sums.#byUnit)
        for (const part of ALL_PARTS) both.add(unit, sum[part] ?? ZERO, [part]);
    return both;
  }

  /** In the order of the units' names. */
  list(): ActivityMeter[] {
    return [...this.#byUnit].sort(([a], [b]) => (a < b ? -1 : 1)).map(([unit, sum]) => toMeter(unit, sum));
  }
}

function longBytesOf({ n, d }: Rational): number {
  const isShort = d < LONG && n < LONG && n > -LONG;
  return isShort ? 0 : Math.ceil((n.toString(16).length + d.toString(16).length) / 2);
}

function toMeter(unit: string, sum: Readonly<Partial<Record<SumPart, Rational>>>): ActivityMeter {
  const { debited = ZERO, credited = ZERO, reserved = ZERO } = sum;
  const texts = new Map<SumPart, string>();
  for (const part of ALL_PARTS) {
    const value = sum[part] ?? ZERO;
    if (value.n !== 0n) texts.set(part, formatExactly(value));
  }
  const gross = BASES.reduce((all, basis) => addRationals(all, sum[basis] ?? ZERO), ZERO);
  const optional = (name: string, part: SumPart): Record<string, string> => {
    const text = texts.get(part);
    return text === undefined ? {} : { [name]: text };
  };
  return {
    unit,
    spent: formatExactly(subtractRationals(gross, credited)),
    used: formatExactly(subtractRationals(gross, debited)),
    debited: formatExactly(debited),
    credited: formatExactly(credited),
    basis: Object.assign({}, ...BASES.map((basis) => optional(basis, basis))) as ActivityMeter['basis'],
    ...optional('unauthorized', 'unauthorized'),
    ...optional('in_violation', 'violation'),
    ...optional('in_invalid', 'invalid'),
    reserved: formatExactly(reserved),
  };
}
