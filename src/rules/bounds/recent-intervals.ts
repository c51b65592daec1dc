/**
 * Intervals that came in the order of their times, or nearly so, as sums of what began and of what ended: what overlaps at an instant
 * is what began up to there, less what ended. Nearly all that is ever asked of a limit takes a few lookups here.
 *
 * It takes what is simple and refuses the rest, which is for the tree of `timeline.ts`, as is every question that this cannot answer.
 */

import { type Rational, reduceRational } from '../../base/value/rational.js';
import { commonOf } from './common-denominator.js';
import { commonScale, type Fraction, inScale, isCoarse } from './fraction.js';
import { RunningSum } from './running-sum.js';

/** A half-open interval [from, to). */
export interface Interval {
  readonly from: bigint;
  readonly to: bigint;
  readonly weight: Rational;
}

/** A peak is looked for at no more instants than this. */
const MAX_INSTANTS = 256;

/** From an instant on: how much overlaps, in multiples of what is said elsewhere, and the common denominator of what begins there. */
export interface Step {
  readonly at: bigint;
  readonly overlap: bigint;
  readonly denominator: bigint;
}

/** See the head of this file. */
export class RecentIntervals {
  /** How long each is; undefined where each has a length of its own, and the weight 1. */
  readonly #length: bigint | undefined;
  readonly #starts = new RunningSum();
  /** Empty where all have one length: what ended is then what began so long before. */
  readonly #ends = new RunningSum();
  /** Weights are counted in multiples of 1/scale. */
  #scale = 1n;
  #common = 1n;
  /** The denominators of the weights, where reducing them again would cost much. */
  #denominators: bigint[] | undefined;

  constructor(length: bigint | undefined) {
    this.#length = length;
  }

  get count(): number {
    return this.#starts.length;
  }

  /** What {@link steps} counts in: multiples of 1/scale. */
  get scale(): bigint {
    return this.#scale;
  }

  /** The common denominator of all weights. */
  get common(): bigint {
    return this.#common;
  }

  /** The last instant at which one begins; undefined where there is none. */
  get latest(): bigint | undefined {
    return this.count === 0 ? undefined : this.#starts.instantAt(this.count - 1);
  }

  /**
   * The weight of all that overlap [from, to) anywhere: no less than what overlaps at one of its instants, and the same where none
   * begins after `from`.
   */
  within(from: bigint, to: bigint): Fraction {
    return { n: this.#starts.upTo(to - 1n) - this.#endedBy(from), d: this.#scale };
  }

  /** The greatest overlap at any instant in [from, to); undefined where many begin after `from`. */
  peak(from: bigint, to: bigint): Fraction | undefined {
    const starts = this.#starts;
    const first = starts.countUpTo(from);
    const end = starts.countUpTo(to - 1n);
    if (end - first > MAX_INSTANTS) return undefined;
    let peak = starts.sumOf(first) - this.#endedBy(from);
    for (let i = first; i < end; i += 1) {
      const overlap = starts.sumOf(i + 1) - this.#endedBy(starts.instantAt(i));
      if (overlap > peak) peak = overlap;
    }
    return { n: peak, d: this.#scale };
  }

  #endedBy(instant: bigint): bigint {
    return this.#length === undefined ? this.#ends.upTo(instant) : this.#starts.upTo(instant - this.#length);
  }

  /**
   * Adds an interval that is not empty.
   *
   * @param fraction - The weight as `fractionOf` gives it.
   * @returns False where it is not one of those that it takes; nothing was changed then.
   */
  add({ from, to, weight }: Interval, fraction: Fraction): boolean {
    const isUsual =
      this.#length === undefined ? weight.n === 1n && weight.d === 1n : to - from === this.#length;
    if (!isUsual || !this.#starts.takes(from) || (this.#length === undefined && !this.#ends.takes(to)))
      return false;
    const scale = commonScale(this.#scale, fraction.d);
    if (scale !== this.#scale) this.#setScale(scale);
    const index = this.#starts.add(from, inScale(fraction, scale));
    this.#denominators?.splice(index, 0, weight.d);
    this.#common = commonOf(this.#common, weight.d);
    if (this.#length === undefined) this.#ends.add(to, 1n);
    return true;
  }

  #setScale(scale: bigint): void {
    if (!isCoarse(scale))
      this.#denominators ??= Array.from({ length: this.count }, (_, i) => this.#denominatorAt(i));
    this.#starts.multiply(scale / this.#scale);
    this.#scale = scale;
  }

  /** The instants at which something begins or ends, in order. */
  *steps(): Generator<Step, void> {
    const { count } = this;
    const starts = this.#starts;
    let [started, ended, overlap] = [0, 0, 0n];
    while (ended < count) {
      const end = this.#endAt(ended);
      const at = started < count && starts.instantAt(started) < end ? starts.instantAt(started) : end;
      const before = overlap;
      let denominator = 1n;
      for (; started < count && starts.instantAt(started) === at; started += 1) {
        overlap += starts.amountAt(started);
        denominator = commonOf(denominator, this.#denominatorAt(started));
      }
      for (; ended < count && this.#endAt(ended) === at; ended += 1)
        overlap -= this.#length === undefined ? 1n : starts.amountAt(ended);
      if (overlap !== before || denominator !== 1n) yield { at, overlap, denominator };
    }
  }

  /** All of them, in the order of time. Where each has its own length: others of the same overlaps. */
  *list(): Generator<Interval, void> {
    for (let i = 0; i < this.count; i += 1) {
      const d = this.#denominatorAt(i);
      // Exact also where the amount was rounded down: that took off far less than the quotient.
      const weight = { n: this.#starts.amountAt(i) / (this.#scale / d), d };
      yield { from: this.#starts.instantAt(i), to: this.#endAt(i), weight };
    }
  }

  #endAt(index: number): bigint {
    return this.#length === undefined
      ? this.#ends.instantAt(index)
      : this.#starts.instantAt(index) + this.#length;
  }

  #denominatorAt(index: number): bigint {
    return this.#denominators?.[index] ?? reduceRational(this.#starts.amountAt(index), this.#scale).d;
  }
}
