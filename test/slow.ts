/**
 * Exhaustive tests look at a sample, the same in every run; with `SLOW=1` at all there is. With `WITHOUT_FAST=1` at a quarter of the
 * sample: the way without `src/fast` is what the other is held against in each run.
 */

const SLOW = process.env['SLOW'] === '1';
const WITHOUT_FAST = process.env['WITHOUT_FAST'] === '1';

/** `slow` under SLOW=1, else `usual` or its part: how often something random, or that repeats itself, is tried. */
export function times(usual: number, slow: number): number {
  if (SLOW) return slow;
  return WITHOUT_FAST ? Math.ceil(usual / 4) : usual;
}

/** All of them under SLOW=1, else at most `count`: the first, the last and such between as are about equally far apart. */
export function sample<T>(all: readonly T[], count: number): readonly T[] {
  if (SLOW || all.length <= count) return all;
  if (count === 1) return all.slice(0, 1);
  return Array.from({ length: count }, (_, n) => all[Math.round((n * (all.length - 1)) / (count - 1))]);
}

/** The numbers from 0 on, all below `end` under SLOW=1, else a sample of them. */
export function samplePositions(end: number, count: number): readonly number[] {
  return sample([...Array(end).keys()], count);
}

/** Whether a part of `length` bytes is looked at: each that is cut at one side alone, one in eight of the others; all under SLOW=1. */
export function isSampledPart(start: number, end: number, length: number): boolean {
  return SLOW || start === 0 || end === length || (5 * start + end) % 8 === 0;
}
