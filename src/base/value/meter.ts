/** Meters, SPEC §2: amounts of units, and vectors of them with each unit once. */

import { printable } from '../bytes/printable.js';
import { formatQuantity, isNegativeQuantity, quantity, type Quantity } from './quantity.js';

export interface Meter {
  readonly unit: string;
  readonly amount: Quantity;
}

/** Up to {@link MAX_METERS} meters, each unit once. */
export type MeterVector = readonly Meter[];

export const MAX_METERS = 64;

const UNIT = /^[a-z][a-z0-9_.-]{0,63}$/;

/** Whether `text` is a Unit: `usd`, `tokens.input`, `calls`, `time.ms`. */
export function isUnit(text: string): boolean {
  return UNIT.test(text);
}

/** Amounts by unit, each a quantity or an argument of {@link quantity}: `{ usd: '0.25', calls: 1n }`. */
export type AmountsByUnit = Readonly<Record<string, bigint | number | string | Quantity>>;

/**
 * A meter vector from amounts by unit, sorted by unit: `meters({ usd: '0.25', calls: 1n })`.
 * @throws RangeError for a name that is not a Unit, a negative amount, an amount that does not fit, more than 64 units; the message
 *   lists all problems. TypeError for an amount of another type.
 */
export function meters(amounts: AmountsByUnit): Meter[] {
  const { vector, problems } = readAmounts(amounts);
  if (problems.length === 0) return vector;
  const message = problems.map((problem) => problem.message).join('; ');
  if (problems.some(({ isMistyped }) => isMistyped)) throw new TypeError(message);
  throw new RangeError(message);
}

/** What {@link meters} makes a vector of. */
export function amountsByUnit(vector: readonly Meter[]): Readonly<Record<string, Quantity>> {
  return Object.fromEntries(vector.map(({ unit, amount }) => [unit, amount]));
}

interface AmountProblem {
  /** Begins with the unit. */
  readonly message: string;
  readonly isMistyped: boolean;
}

/**
 * The vector of {@link meters}, and all problems.
 * @param isKnown - Whether a name is a valid unit; `example` is one, for messages.
 */
export function readAmounts(
  amounts: AmountsByUnit,
  isKnown: (name: string) => boolean = isUnit,
  example = 'usd or time.ms',
): { readonly vector: Meter[]; readonly problems: readonly AmountProblem[] } {
  const units = Object.keys(amounts).sort();
  const vector: Meter[] = [];
  const problems: AmountProblem[] = [];
  if (units.length > MAX_METERS) {
    const message = `expected at most ${MAX_METERS} units, found ${units.length}`;
    return { vector, problems: [{ message, isMistyped: false }] };
  }
  for (const unit of units) {
    const shown = unit === '' ? 'nothing' : printable(unit, 80);
    if (!isKnown(unit)) {
      problems.push({ message: `expected a unit such as ${example}, found ${shown}`, isMistyped: false });
      continue;
    }
    try {
      const value = amounts[unit] as AmountsByUnit[string] | null;
      const amount = typeof value === 'object' && value !== null ? value : quantity(value as string);
      if (isNegativeQuantity(amount))
        throw new RangeError(`expected an amount that is not negative, found ${formatQuantity(amount)}`);
      vector.push({ unit, amount });
    } catch (error) {
      if (!(error instanceof RangeError || error instanceof TypeError)) throw error;
      problems.push({ message: `${shown}: ${error.message}`, isMistyped: error instanceof TypeError });
    }
  }
  return { vector, problems };
}
