/** What is asked of a ledger for many items at once. */

import { expect, it } from 'vitest';
import { inGroups, tryInGroups } from '../../src/base/in-groups.js';

const ITEMS = Array.from({ length: 1_200 }, (_, n) => n);

/** Fails for the first of each hundred. */
function failing(): { readonly done: number[]; readonly act: (item: number) => Promise<number> } {
  const done: number[] = [];
  const act = async (item: number): Promise<number> => {
    await Promise.resolve();
    if (item % 100 === 7) throw new RangeError(`item ${item}`);
    return done.push(item);
  };
  return { done, act };
}

it('what fails for one keeps no other from being done, in whichever group', async () => {
  const rest = new Set(ITEMS.filter((item) => item % 100 !== 7));
  const first = failing();
  await expect(inGroups(ITEMS, first.act)).rejects.toThrow(/^item 7$/);
  expect(new Set(first.done)).toEqual(rest);
  const second = failing();
  const ends = await tryInGroups(ITEMS, second.act);
  expect(ends.flatMap(({ status }, item) => (status === 'rejected' ? [item] : []))).toEqual(
    ITEMS.filter((item) => !rest.has(item)),
  );
  expect(new Set(second.done)).toEqual(rest);
});

it('after an abort no further group begins', async () => {
  const controller = new AbortController();
  const { done, act } = failing();
  const stopping = async (item: number): Promise<number> => {
    if (item === 3) controller.abort(new Error('stopped'));
    return act(item);
  };
  await expect(inGroups(ITEMS, stopping, controller.signal)).rejects.toThrow('stopped');
  expect(Math.max(...done)).toBe(499);
});
