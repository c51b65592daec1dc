/** Exhaustive tests look at a sample, the same in every run; with `SLOW=1` at all there is. */

const SLOW = process.env['SLOW'] === '1';

/** `slow` under SLOW=1, else `usual`: how often something random, or that repeats itself, is tried. */
export function times(usual: number, slow: number): number {
  return SLOW ? slow : usual;
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
