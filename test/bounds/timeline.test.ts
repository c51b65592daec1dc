/** `timeline.ts` against a list of intervals, `tool-set.ts` against the patterns one by one and against what they mean. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Interval } from '../../src/rules/bounds/recent-intervals.js';
import type { SavedNode } from '../../src/rules/bounds/timeline-node.js';
import {
  addInterval,
  emptyTimeline,
  fitsWindows,
  peakOverlap,
  readTimeline,
  restoreTimeline,
  saveTimeline,
  type TimelineStep,
} from '../../src/rules/bounds/timeline.js';
import { allowsTool, coversPattern, makeToolSet } from '../../src/rules/bounds/tool-set.js';
import {
  ZERO,
  addRationals,
  compareRationals,
  reduceRational,
  type Rational,
} from '../../src/base/value/rational.js';
import {
  coversToolPattern,
  isToolName,
  isToolPattern,
  matchesToolPattern,
} from '../../src/base/value/tool.js';
import { times } from '../slow.js';

const key = fc.oneof(fc.bigInt(-3n, 12n), fc.bigInt(-(10n ** 20n), 10n ** 20n));
const weight = fc
  .tuple(fc.bigInt(0n, 9n), fc.constantFrom(1n, 1n, 2n, 3n, 7n, 10n ** 38n))
  .map(([n, d]) => reduceRational(n, d));
/** Ends in any order: an interval may be empty, or end before it begins. */
const interval = fc.record({ from: key, to: key, weight });

/** The overlap rises only where an interval begins: its peak in [from, to) is at `from` or at one of those. */
function naivePeak(list: readonly Interval[], from: bigint, to: bigint): Rational {
  if (from >= to) return ZERO;
  const instants = [from, ...list.map((each) => each.from).filter((x) => from <= x && x < to)];
  return instants
    .map((x) =>
      list
        .filter((each) => each.from <= x && x < each.to)
        .reduce((total, each) => addRationals(total, each.weight), ZERO),
    )
    .reduce((a, b) => (compareRationals(a, b) < 0 ? b : a));
}

/** What a timeline of these intervals says once it is saved. */
function readAll(list: readonly Interval[]): TimelineStep[] {
  const timeline = emptyTimeline();
  for (const { from, to, weight: own } of list) addInterval(timeline, from, to, own);
  const nodes = new Map<number, SavedNode>();
  const saved = saveTimeline(timeline, 'all', (node) => nodes.set(node.id, node));
  return [...readTimeline(saved, (id) => nodes.get(id)!)];
}

describe('timeline', () => {
  test('an empty one has no overlap', () => {
    expect(peakOverlap(emptyTimeline(), 0n, 10n)).toEqual(ZERO);
  });

  test('says the same of the same intervals, in whatever order they came', () => {
    fc.assert(
      fc.property(fc.array(interval, { maxLength: 25 }), (list) => {
        const steps = readAll(list);
        expect(readAll([...list].reverse())).toEqual(steps);
        for (const { at, overlap } of steps) expect(overlap).toEqual(naivePeak(list, at, at + 1n));
        const kept = list.filter(({ from, to, weight: own }) => from < to && own.n > 0n);
        const isStep = (at: bigint): boolean =>
          compareRationals(naivePeak(kept, at - 1n, at), naivePeak(kept, at, at + 1n)) !== 0 ||
          kept.some(({ from, weight: own }) => from === at && own.d > 1n);
        const ends = kept.flatMap(({ from, to }) => [from, to]).filter(isStep);
        expect(new Set(steps.map(({ at }) => at))).toEqual(new Set(ends));
      }),
    );
  });

  test('says the same of rounded amounts, also where nothing changes at the first instant of a node', () => {
    const all = { from: -1n, to: 1_000n, weight: { n: 1n, d: 41n } };
    const list = Array.from({ length: 200 }, (_, n): Interval => {
      return { from: BigInt(n), to: BigInt(n + 1), weight: { n: 2n, d: 1n } };
    });
    const [even, odd] = [0n, 1n].map((rest) => list.filter(({ from }) => from % 2n === rest));
    const steps = readAll([all, ...list]);
    expect(readAll([all, ...even, ...odd])).toEqual(steps);
    expect(steps.map(({ at }) => at)).toEqual([-1n, 0n, 200n, 1_000n]);
  });

  test('its peaks are those of the list of its intervals, at every step', () => {
    const query = fc.record({ from: key, to: key });
    fc.assert(
      fc.property(
        fc.array(interval, { maxLength: 25 }),
        fc.array(query, { minLength: 1, maxLength: 4 }),
        (list, queries) => {
          const timeline = emptyTimeline();
          list.forEach(({ from, to, weight: own }, count) => {
            addInterval(timeline, from, to, own);
            const added = list.slice(0, count + 1);
            for (const asked of [...queries, { from, to }]) {
              expect(peakOverlap(timeline, asked.from, asked.to)).toEqual(
                naivePeak(added, asked.from, asked.to),
              );
            }
          });
        },
      ),
      { numRuns: 1_000 },
    );
  });

  /** The overlap by instant, from a list of intervals. */
  function naiveSteps(list: readonly Interval[]): { readonly at: bigint; readonly overlap: Rational }[] {
    const changes = new Map<bigint, Rational>();
    for (const { from, to, weight: own } of list) {
      changes.set(from, addRationals(changes.get(from) ?? ZERO, own));
      changes.set(to, addRationals(changes.get(to) ?? ZERO, { n: -own.n, d: own.d }));
    }
    let overlap = ZERO;
    const inOrder = [...changes].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return inOrder.map(([at, change]) => ({ at, overlap: (overlap = addRationals(overlap, change)) }));
  }

  function peakOfSteps(steps: ReturnType<typeof naiveSteps>, from: bigint, to: bigint): Rational {
    const peak = { n: 0n, d: 1n };
    return steps.reduce<Rational>((max, { at, overlap }, index) => {
      const next = steps[index + 1]?.at;
      const isWithin = at < to && (next === undefined || next > from);
      return isWithin && compareRationals(overlap, max) > 0 ? overlap : max;
    }, peak);
  }

  const SECOND = 1_000_000_000n;
  const orders: Record<string, (n: number, size: number) => number> = {
    'in order': (n) => n,
    backwards: (n, size) => size - n,
    mixed: (n, size) => (n * 7_919) % size,
    'from both ends': (n, size) => (n % 2 === 0 ? n : size - n),
  };
  const scales: Record<string, (n: number) => bigint> = {
    seconds: (n) => BigInt(n) * SECOND,
    'milliseconds, unevenly': (n) => BigInt(n * 40_000 + ((n * 31) % 977)) * 1_000_000n,
    nanoseconds: (n) => BigInt(n) * SECOND * 3_600n + BigInt((n * 7_907) % 1_000_003),
    'centuries apart': (n) => BigInt(n) * 10n ** 18n + 1n,
  };
  const weights: Record<string, (n: number) => Rational> = {
    one: () => ({ n: 1n, d: 1n }),
    cents: (n) => reduceRational(BigInt(n % 500) + 1n, 100n),
    'many digits': (n) => reduceRational(BigInt(n) ** 3n + 1n, 10n ** 30n),
    'without a common denominator': (n) => ({ n: 1n, d: 10n ** 38n + BigInt(2 * (n % 8) + 1) }),
  };

  test.each(
    Object.keys(orders).flatMap((order) =>
      Object.keys(scales).map((scale, index) => [order, scale, Object.keys(weights)[index]] as const),
    ),
  )('%s, in %s, weights of %s: the same as the list, also when it was saved', (order, scale, kind) => {
    const size = 700;
    const list: Interval[] = [];
    const nodes = new Map<number, SavedNode>();
    let timeline = emptyTimeline();
    for (let n = 0; n < size; n += 1) {
      const at = scales[scale](orders[order](n, size));
      // Long, short, and of one length.
      const length = n % 5 === 0 ? 10n ** BigInt(n % 20) : 3_600n * SECOND * 50n;
      list.push({ from: at, to: at + length, weight: weights[kind](n) });
      const { from, to, weight: own } = list.at(-1)!;
      addInterval(timeline, from, to, own);
      if (n % 175 !== 174) continue;
      const steps = naiveSteps(list);
      for (const [first, last] of [
        [from, to],
        [from - length, from],
        [-(10n ** 30n), 10n ** 30n],
        [to, to + 1n],
        [list[n >> 1].from - 7n, list[n >> 2].to + 7n],
      ] as const)
        expect(peakOverlap(timeline, first, last)).toEqual(peakOfSteps(steps, first, last));
      const put = (node: SavedNode): unknown => nodes.set(node.id, structuredClone(node));
      const saved = saveTimeline(timeline, 'changes', put);
      const load = (id: number): SavedNode => nodes.get(id)!;
      const said = [...readTimeline(saved, load)].map(({ at: x, overlap }) => ({ at: x, overlap }));
      const isStep = ({ overlap }: { readonly overlap: Rational }, i: number): boolean =>
        compareRationals(overlap, steps[i - 1]?.overlap ?? ZERO) !== 0;
      const wanted = steps.filter(isStep);
      const lasting = new Set(wanted.map(({ at: x }) => x));
      expect(said.filter(({ at: x }) => lasting.has(x))).toEqual(wanted);
      // What a saved timeline goes on with is what it was.
      if (n % 350 === 349) timeline = restoreTimeline(saved, load);
    }
  });

  test.each([60n, undefined])('what begins where as much ends is not kept (length %s)', (length) => {
    const timeline = emptyTimeline(length);
    for (let n = 0n; n < 10_000n; n += 1n) addInterval(timeline, n, n + 60n, { n: 2n, d: 1n });
    let kept = 0;
    saveTimeline(timeline, 'all', (node) => {
      kept += 'keys' in node ? node.keys.length : 0;
    });
    expect(peakOverlap(timeline, 0n, 20_000n)).toEqual({ n: 120n, d: 1n });
    expect(kept).toBeLessThan(250);
  });

  test('the order in which intervals are added does not matter', () => {
    fc.assert(
      fc.property(
        fc
          .array(interval, { maxLength: 40 })
          .chain((list) =>
            fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
          ),
        key,
        key,
        ([list, shuffled], from, to) => {
          const peaks = [list, shuffled].map((order) => {
            const timeline = emptyTimeline();
            for (const each of order) addInterval(timeline, each.from, each.to, each.weight);
            return peakOverlap(timeline, from, to);
          });
          expect(peaks[0]).toEqual(peaks[1]);
        },
      ),
    );
  });

  /** Pairwise without a common factor, but for the powers of two: 39 digits each, 324, 200. */
  const fine = fc.constantFrom(
    ...Array.from({ length: 14 }, (_, n) => 10n ** 38n + BigInt(2 * n + 1)),
    2n ** 1074n,
    2n ** 660n,
    3n,
  );
  const start = fc.record({ at: fc.bigInt(0n, 40n), d: fine });

  /** Whether the starts in each (x − window, x] have a common denominator of at most 400 digits, x being one of them. */
  function naiveFit(starts: readonly { readonly at: bigint; readonly d: bigint }[], window: bigint): boolean {
    const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? a : gcd(b, a % b));
    return starts.every(({ at: x }) => {
      const within = starts.filter(({ at }) => x - window < at && at <= x);
      return within.reduce((common, { d }) => (common / gcd(common, d)) * d, 1n) < 10n ** 400n;
    });
  }

  test('what fits into its windows is what each of them can hold, at every step', () => {
    const met = { fits: 0, refused: 0 };
    fc.assert(
      fc.property(fc.array(start, { maxLength: 40, size: 'max' }), fc.bigInt(1n, 12n), (list, window) => {
        const timeline = emptyTimeline();
        const kept: { at: bigint; d: bigint }[] = [];
        for (const next of list) {
          const { at, d } = next;
          const fits = fitsWindows(timeline, at, window, { n: 1n, d });
          expect(fits).toBe(naiveFit([...kept, next], window));
          met[fits ? 'fits' : 'refused'] += 1;
          if (!fits) continue;
          kept.push(next);
          addInterval(timeline, at, at + window, { n: 1n, d });
        }
        // What is held is not what all of them have in common.
        expect(peakOverlap(timeline, -(10n ** 30n), 10n ** 30n).d < 10n ** 400n).toBe(true);
      }),
      { numRuns: 300 },
    );
    expect(Math.min(met.fits, met.refused)).toBeGreaterThan(100);
  });
});

const letter = fc.constantFrom('a', 'b', '.');
const toolName = fc
  .oneof(
    { weight: 8, arbitrary: fc.string({ unit: letter, minLength: 1, maxLength: 4 }) },
    { weight: 1, arbitrary: fc.constantFrom(126, 127, 128).map((length) => 'a'.repeat(length)) },
  )
  .filter(isToolName);
const toolPattern = fc
  .oneof(
    toolName,
    toolName.map((name) => `${name}*`),
    fc.constant('*'),
  )
  .filter(isToolPattern);
const patterns = fc.array(toolPattern, { maxLength: 6 });

describe('tool set', () => {
  test('allows what one of its patterns matches', () => {
    fc.assert(
      fc.property(patterns, toolName, (list, tool) => {
        expect(allowsTool(makeToolSet(list), tool)).toBe(
          list.some((pattern) => matchesToolPattern(pattern, tool)),
        );
      }),
      { numRuns: times(1_000, 30_000) },
    );
  });

  test('covers what one of its patterns covers', () => {
    fc.assert(
      fc.property(patterns, toolPattern, (list, child) => {
        // A pattern that matches no name at all lies within everything, even within nothing.
        const isEmpty = child.length > 128;
        const covered = isEmpty || list.some((pattern) => coversToolPattern(pattern, child));
        expect(coversPattern(makeToolSet(list), child)).toBe(covered);
      }),
      { numRuns: times(1_000, 30_000) },
    );
  });

  test('a pattern covers another exactly when it matches all that the other matches', () => {
    const letters = ['a', 'b', '.'];
    const longer = (names: string[]): string[] => names.flatMap((name) => letters.map((end) => name + end));
    const lengths = [letters, longer(letters), longer(longer(letters)), longer(longer(longer(letters)))];
    const tools = lengths.flat().filter(isToolName);
    // Shorter than the longest of the names, so that no two of them match the same ones by chance.
    const short = toolPattern.filter((pattern) => pattern.length <= 3);
    fc.assert(
      fc.property(short, short, (parent, child) => {
        const inside = tools.filter((tool) => matchesToolPattern(child, tool));
        const isWithin = inside.every((tool) => matchesToolPattern(parent, tool));
        expect(coversToolPattern(parent, child)).toBe(isWithin);
        expect(coversPattern(makeToolSet([parent]), child)).toBe(isWithin);
      }),
      { numRuns: times(800, 20_000) },
    );
  });

  test.each([
    ['fs.*', 'fs.read', true],
    ['fs.*', 'fs.', false],
    ['fs.*', 'fs', false],
    ['fs.', 'fs.', true],
    ['fs.', 'fs.read', false],
    ['*', 'a', true],
    ['fs*', 'fs.', true],
  ])('%s matches %s: %s', (pattern, tool, expected) => {
    expect(allowsTool(makeToolSet([pattern]), tool)).toBe(expected);
  });
});
