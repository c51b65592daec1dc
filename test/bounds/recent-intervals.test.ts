/**
 * Intervals that come nearly in order are kept as sums, and others in a tree: whichever way it takes, a timeline says what the list of
 * its intervals says, and what another one says that has all of them in its tree.
 */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Interval } from '../../src/rules/bounds/recent-intervals.js';
import type { SavedNode } from '../../src/rules/bounds/timeline-node.js';
import {
  addInterval,
  emptyTimeline,
  exactOverlap,
  findExcess,
  peakOverlap,
  readTimeline,
  restoreTimeline,
  saveTimeline,
  type Timeline,
} from '../../src/rules/bounds/timeline.js';
import {
  ZERO,
  addRationals,
  compareRationals,
  reduceRational,
  subtractRationals,
  type Rational,
} from '../../src/base/value/rational.js';

const ONE: Rational = { n: 1n, d: 1n };
/** More than is rounded off of a sum, and far less than sums differ by. */
const ROUNDING: Rational = { n: 1n, d: 2n ** 2_000n };

/** The overlap rises only where an interval begins. */
function naivePeak(list: readonly Interval[], from: bigint, to: bigint): Rational {
  const instants = [from, ...list.map((each) => each.from)].filter((x) => from <= x && x < to);
  return instants
    .map((x) => list.filter((each) => each.from <= x && x < each.to))
    .map((within) => within.reduce((total, each) => addRationals(total, each.weight), ZERO))
    .reduce((a, b) => (compareRationals(a, b) < 0 ? b : a), ZERO);
}

/** Nodes that are kept in between, as a file keeps them. */
class Kept {
  readonly #nodes = new Map<number, SavedNode>();
  readonly #length: bigint | undefined;

  constructor(length: bigint | undefined) {
    this.#length = length;
  }

  /** The timeline as it is read again. */
  through(timeline: Timeline): Timeline {
    return restoreTimeline(this.#save(timeline), this.#load, this.#length);
  }

  read(timeline: Timeline): unknown[] {
    return [...readTimeline(this.#save(timeline), this.#load)];
  }

  #save(timeline: Timeline): ReturnType<typeof saveTimeline> {
    return saveTimeline(timeline, 'changes', (node) => this.#nodes.set(node.id, structuredClone(node)));
  }

  readonly #load = (id: number): SavedNode => this.#nodes.get(id)!;
}

function readOf(list: readonly Interval[], length: bigint | undefined): unknown[] {
  const timeline = emptyTimeline(length);
  for (const { from, to, weight } of list) addInterval(timeline, from, to, weight);
  return new Kept(length).read(timeline);
}

/** Instants that mostly rise, and what happens then: whether the timeline is saved and read again. */
const step = fc.record({
  on: fc.oneof({ weight: 6, arbitrary: fc.bigInt(0n, 4n) }, { weight: 1, arbitrary: fc.bigInt(-20n, 60n) }),
  back: fc.oneof({ weight: 4, arbitrary: fc.constant(0n) }, { weight: 1, arbitrary: fc.bigInt(0n, 9n) }),
  length: fc.bigInt(1n, 12n),
  weight: fc
    .tuple(
      fc.oneof(fc.bigInt(1n, 9n), fc.constantFrom(2n ** 52n, 2n ** 53n, 10n ** 38n)),
      fc.constantFrom(1n, 1n, 2n, 3n, 100n, 2n ** 39n, 41n, 10n ** 15n, 10n ** 38n),
    )
    .map(([n, d]) => reduceRational(n, d)),
  isSaved: fc.integer({ min: 0, max: 9 }).map((n) => n === 0),
});
const origin = fc.constantFrom(0n, -5n, 10n ** 18n, 2n ** 63n - 20n, -(2n ** 63n) - 10n, 10n ** 20n);
const steps = fc.array(step, { minLength: 1, maxLength: 40, size: 'max' });

describe.each([
  ['each of one length', 7n],
  ['each of its own length', undefined],
] as const)('intervals nearly in order, %s', (_, length) => {
  test('peaks are those of the list', () => {
    fc.assert(
      fc.property(steps, origin, (list, first) => {
        const kept = new Kept(length);
        const all: Interval[] = [];
        let timeline = emptyTimeline(length);
        let at = first;
        for (const { on, back, length: own, weight, isSaved } of list) {
          at += on;
          const from = at - back;
          const next = { from, to: from + (length ?? own), weight: length === undefined ? ONE : weight };
          const peak = naivePeak(all, from, next.to);
          for (const limit of [ZERO, peak, addRationals(peak, ROUNDING), subtractRationals(peak, ROUNDING)]) {
            const isEnough = (overlap: Rational): boolean => compareRationals(overlap, limit) <= 0;
            const excess = findExcess(timeline, from, next.to, isEnough);
            expect(excess && exactOverlap(timeline, excess)).toEqual(isEnough(peak) ? undefined : peak);
          }
          expect(peakOverlap(timeline, from, next.to)).toEqual(peak);
          addInterval(timeline, from, next.to, next.weight);
          all.push(next);
          if (isSaved) timeline = kept.through(timeline);
        }
        expect(kept.read(timeline)).toEqual(readOf([...all].reverse(), length));
      }),
      { numRuns: 300 },
    );
  });
});

/** A sequence of numbers that is the same in each run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ;) {
    state = (state * 48_271) % 2_147_483_647;
    yield state;
  }
}

/** An assertion takes longer than what it is about: there are many, and one that fails is told. */
function expectTwice(once: Rational, twice: Rational): void {
  const sum = addRationals(once, once);
  if (sum.n !== twice.n || sum.d !== twice.d) expect(sum).toEqual(twice);
}

describe('many of them', () => {
  const SECOND = 1_000_000_000n;
  const SIZE = 12_000;
  const lateness: Record<string, (random: number, n: number) => number> = {
    'in order': () => 0,
    'some late by a few': (random) => (random % 7 === 0 ? random % 50 : 0),
    'some late by many': (random) => (random % 40 === 0 ? random % 1_000 : random % 5),
    'a few later than nearly all': (random, n) => (random % 500 === 0 ? n : 0),
    'in blocks, every two of which have changed places': (_, n) =>
      Math.floor(n / 400) % 2 === 0 ? -400 : 400,
    'in blocks, each in the other order': (_, n) => 2 * (n % 600),
    'in the other order': (_, n) => 2 * n,
  };

  test.each(Object.keys(lateness))('%s: as with all of them in a tree', (kind) => {
    const random = numbers(SIZE);
    for (const length of [50n * SECOND, 3_000n * SECOND, undefined]) {
      const quick = emptyTimeline(length);
      const slow = emptyTimeline();
      for (let n = 0; n < SIZE; n += 1) {
        const from = BigInt(n - lateness[kind](random.next().value, n)) * SECOND;
        const to = from + (length ?? BigInt(1 + (random.next().value % 400)) * SECOND);
        const own = length === undefined ? ONE : reduceRational(BigInt(1 + (n % 1_000)), 1_000n);
        addInterval(quick, from, to, own);
        // Twice as much is not one of those that are kept as sums.
        addInterval(slow, from, to, addRationals(own, own));
        if (n % 3 !== 0) continue;
        expectTwice(peakOverlap(quick, from, to), peakOverlap(slow, from, to));
      }
      expectTwice(
        peakOverlap(quick, -(10n ** 30n), 10n ** 30n),
        peakOverlap(slow, -(10n ** 30n), 10n ** 30n),
      );
    }
  });
});
