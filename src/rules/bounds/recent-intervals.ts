/**
 * Intervals in the order of their times, or nearly so, as sums of begun and ended weights: the overlap at an instant is their difference.
 * Nearly every question of a limit takes a few lookups here. Anything else is left to the tree of `timeline.ts`.
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

/** The maximum of instants searched for a peak. */
const MAX_INSTANTS = 256;

/** A step: the overlap from an instant on, as a multiple, and the common denominator of the weights that begin there. */
export interface Step {
  readonly at: bigint;
  readonly overlap: bigint;
  readonly denominator: bigint;
}

export class RecentIntervals {
  /** The length of all; undefined where lengths differ, and all weights are 1. */
  readonly #length: bigint | undefined;
  readonly #starts = new RunningSum();
  /** Empty where all have one length: the ends follow from the beginnings then. */
  readonly #ends = new RunningSum();
  /** Weights are counted in multiples of 1/scale. */
  #scale = 1n;
  #common = 1n;
  /** The denominators of the weights, where reducing again is slow. */
  #denominators: bigint[] | undefined;

  constructor(length: bigint | undefined) {
    this.#length = length;
  }

  get count(): number {
    return this.#starts.length;
  }

  /** The scale of {@link steps}: multiples of 1/scale. */
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
   * The weight of all intervals that overlap [from, to): an upper bound of the overlap at any instant, exact where none begins after
   * `from`.
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
   * @param fraction - The weight, from `fractionOf`.
   * @returns False where it declines: nothing was changed then.
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

  /** All intervals in order of time; where lengths differ, others with the same overlaps. */
  *list(): Generator<Interval, void> {
    for (let i = 0; i < this.count; i += 1) {
      const d = this.#denominatorAt(i);
      // Exact also for a rounded amount: the rounding is far less than the quotient.
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
