/** Exact sums by unit, of bounded number and fineness. What does not fit is counted, never dropped silently. */

import type { ActivityMeter } from '../schema/generated/types.js';
import { formatExactly } from '../value/format-rational.js';
import {
  addRationals,
  exceedsDenominatorLimit,
  subtractRationals,
  ZERO,
  type Rational,
} from '../value/rational.js';

/** Where an amount comes from (`meter_basis`). */
export const BASES = ['measured', 'reported', 'estimated', 'billed', 'unstated'] as const;

export type Basis = (typeof BASES)[number];

/** Units that are summed, each once for each group; further ones are counted as left out. */
export const MAX_SUMS = 100_000;

/** What is summed of one unit beside its bases. */
const PARTS = ['debited', 'credited', 'unauthorized', 'violation', 'invalid', 'reserved'] as const;

/** A part of a sum, or a basis. */
export type SumPart = Basis | (typeof PARTS)[number];

const ALL_PARTS: readonly SumPart[] = [...BASES, ...PARTS];

/** How many sums there may still be, for all groups together. */
export interface SumBudget {
  left: number;
}

/** The sums of one group. */
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

  /** Adds an amount to parts of a unit's sum: to all of them, or where one becomes too fine to none. */
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
      const next = addRationals(sum[first] ?? ZERO, amount);
      if (exceedsDenominatorLimit(next)) this.leftOut += 1;
      else sum[first] = next;
      return;
    }
    const next = parts.map((part) => addRationals(sum[part] ?? ZERO, amount));
    if (next.some(exceedsDenominatorLimit)) {
      this.leftOut += 1;
      return;
    }
    for (const [index, part] of parts.entries()) sum[part] = next[index] as Rational;
  }

  /** These sums and others, in the order of the units' names. */
  listWith(other: Sums): ActivityMeter[] {
    const both = new Sums({ left: Infinity });
    for (const sums of [this, other]) {
      for (const [unit, sum] of sums.#byUnit) {
        for (const part of ALL_PARTS) {
          both.add(unit, sum[part] ?? ZERO, [part]);
        }
      }
    }
    return both.list();
  }

  /** In the order of the units' names. */
  list(): ActivityMeter[] {
    return [...this.#byUnit].sort(([a], [b]) => (a < b ? -1 : 1)).map(([unit, sum]) => toMeter(unit, sum));
  }
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
