/**
 * The starts under one grant in order of time, for its rates and its concurrency. Questions move on with time, so the sum within each
 * window is kept, and follows the clock forwards and back.
 */

import { addRationals, type Rational, subtractRationals, ZERO } from '../../base/value/rational.js';
import { commonOf, TOO_FINE } from '../../rules/bounds/common-denominator.js';
import type { StartedWork } from '../../rules/bounds/grant.js';
import { addInterval, emptyTimeline, peakOverlap } from '../../rules/bounds/timeline.js';

/** So many that are gone are kept. */
const FEW = 32;

export interface TimedStart {
  readonly from: bigint;
  /** Tells starts of one instant apart. */
  readonly order: number;
  /** What it counts in each rate. */
  readonly weights: readonly Rational[];
  isGone: boolean;
}

/** The starts within the window of one rate. */
interface WindowSum {
  readonly window: bigint;
  /** The starts from this one on are counted in `sum`. */
  head: number;
  sum: Rational;
  /** A common denominator of all weights so far. */
  common: bigint;
}

export class RunningTimes {
  /** In order of time, then of arrival. The last one is not gone. */
  #starts: TimedStart[] = [];
  #goneCount = 0;
  #order = 0;
  readonly #sums: readonly WindowSum[];

  /** @param windows - Of each rate, in nanoseconds */
  constructor(windows: readonly bigint[]) {
    this.#sums = windows.map((window) => ({ window, head: 0, sum: ZERO, common: 1n }));
  }

  /** Whether weights may have no common denominator within the limit of SPEC §2. */
  get isTooFine(): boolean {
    return this.#sums.some(({ common }) => common === TOO_FINE);
  }

  /** What counts as concurrent with what begins now. */
  get goingOn(): StartedWork {
    return { peak: () => ({ n: BigInt(this.#starts.length - this.#goneCount), d: 1n }) };
  }

  /** What counts in a rate. */
  workOf(rate: number): StartedWork {
    const sum = this.#sums[rate] as WindowSum;
    return {
      peak: (from, to) =>
        this.#isSettledBy(from, to)
          ? this.#sumAt(rate, from)
          : this.#peak(sum.window, from, to, ({ weights }) => weights[rate] as Rational),
    };
  }

  add(from: bigint, weights: readonly Rational[]): TimedStart {
    const start = { from, order: this.#order++, weights, isGone: false };
    const at = this.#placeOf(start);
    if (at === this.#starts.length) this.#starts.push(start);
    else this.#starts.splice(at, 0, start);
    for (const [rate, sum] of this.#sums.entries()) {
      const weight = weights[rate] as Rational;
      sum.common = commonOf(sum.common, weight.d);
      if (at < sum.head) sum.head += 1;
      else if (sum.common !== TOO_FINE) sum.sum = addRationals(sum.sum, weight);
    }
    return start;
  }

  remove(start: TimedStart): void {
    const at = this.#placeOf(start);
    start.isGone = true;
    this.#goneCount += 1;
    for (const [rate, sum] of this.#sums.entries())
      if (at >= sum.head && sum.common !== TOO_FINE)
        sum.sum = subtractRationals(sum.sum, start.weights[rate] as Rational);
    const starts = this.#starts;
    while (starts.at(-1)?.isGone === true) {
      starts.pop();
      this.#goneCount -= 1;
    }
    for (const sum of this.#sums) sum.head = Math.min(sum.head, starts.length);
    if (this.#goneCount > FEW && this.#goneCount * 2 > starts.length) this.#dropGone();
  }

  /** The index of a start, or where it goes. */
  #placeOf({ from, order }: TimedStart): number {
    const starts = this.#starts;
    const isBefore = (each: TimedStart): boolean =>
      each.from < from || (each.from === from && each.order < order);
    let [low, high] = [0, starts.length];
    // Nearly all are later than the others.
    if (high > 0 && isBefore(starts[high - 1] as TimedStart)) return high;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (isBefore(starts[middle] as TimedStart)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #dropGone(): void {
    for (const sum of this.#sums) {
      let head = 0;
      for (let i = 0; i < sum.head; i += 1) if (this.#starts[i]?.isGone === false) head += 1;
      sum.head = head;
    }
    this.#starts = this.#starts.filter(({ isGone }) => !isGone);
    this.#goneCount = 0;
  }

  /** Whether none begins after an instant: what goes on only ends from there on. */
  #isSettledBy(from: bigint, to: bigint): boolean {
    const last = this.#starts.at(-1);
    return from < to && (last === undefined || last.from <= from);
  }

  /** The sum of the weights that begin in (at − window, at]; none begins later. */
  #sumAt(rate: number, at: bigint): Rational {
    const sum = this.#sums[rate] as WindowSum;
    const starts = this.#starts;
    const after = at - sum.window;
    for (; sum.head < starts.length; sum.head += 1) {
      const { from, weights, isGone } = starts[sum.head] as TimedStart;
      if (from > after) break;
      if (!isGone) sum.sum = subtractRationals(sum.sum, weights[rate] as Rational);
    }
    for (; sum.head > 0; sum.head -= 1) {
      const { from, weights, isGone } = starts[sum.head - 1] as TimedStart;
      if (from <= after) break;
      if (!isGone) sum.sum = addRationals(sum.sum, weights[rate] as Rational);
    }
    return sum.sum;
  }

  /** Where some begin later: as `withStarted` finds it. */
  #peak(window: bigint, from: bigint, to: bigint, weightOf: (start: TimedStart) => Rational): Rational {
    const timeline = emptyTimeline(window);
    for (const start of this.#starts) {
      if (start.isGone) continue;
      addInterval(timeline, start.from, start.from + window, weightOf(start));
    }
    return peakOverlap(timeline, from, to);
  }
}
