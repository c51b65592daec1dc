/** What a guarded function uses, added up exactly while it runs. */

import { MAX_METERS, meters, type AmountsByUnit, type Meter } from '../value/meter.js';
import { fromRational, toRational, type Quantity } from '../value/quantity.js';
import { addRationals, type Rational } from '../value/rational.js';

/** What is measured has a place of its own among the units of an execution. */
const MEASURED = ['calls', 'time.ms'];
const MAX_UNITS = MAX_METERS - MEASURED.length;

/** Collects amounts by unit. What is added is exact: `0.1` and `0.2` are `0.3`. */
export class UsageMeter {
  readonly #sums = new Map<string, Rational>();
  #isClosed = false;

  /**
   * Adds what was used: `meter.add('usd', '0.25')`.
   *
   * @param unit - Such as `usd` or `tokens.input`; at most 62 different ones besides `calls` and `time.ms`.
   * @param amount - Not negative; a text, a whole number, a bigint or a quantity. Fractions are given as texts, so that none is rounded.
   * @throws RangeError for a unit or an amount that is none, or a sum of more than 39 digits; TypeError for an amount of another type,
   *   and when the use is recorded already. Nothing is added then.
   */
  add(unit: string, amount: bigint | number | string | Quantity): void;
  /** Adds several amounts by unit, all or none: `meter.add({ usd: '0.25', 'tokens.input': 1042 })`. */
  add(amounts: AmountsByUnit): void;
  add(given: string | AmountsByUnit, amount?: bigint | number | string | Quantity): void {
    if (this.#isClosed) throw new TypeError('the use is recorded already');
    const sums = meters(typeof given === 'string' ? { [given]: amount as Quantity } : given).map((meter) => {
      const before = this.#sums.get(meter.unit);
      const own = toRational(meter.amount);
      const sum = before === undefined ? own : addRationals(before, own);
      // It has to be an amount that an event may have.
      fromRational(sum);
      return [meter.unit, sum] as const;
    });
    const units = new Set([...this.#sums.keys(), ...sums.map(([unit]) => unit)]);
    for (const unit of MEASURED) units.delete(unit);
    if (units.size > MAX_UNITS) throw new RangeError(`expected at most ${MAX_UNITS} units`);
    for (const [unit, sum] of sums) this.#sums.set(unit, sum);
  }

  /** What was added until now, by unit in order of their names. */
  read(): Meter[] {
    return [...this.#sums]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([unit, sum]) => ({ unit, amount: fromRational(sum) }));
  }

  /** Takes nothing any more. */
  close(): void {
    this.#isClosed = true;
  }
}
