/** A parent and a child that spends its slice, in every order: nothing is spent twice, and what is made wrong is found. */

import { expect, it } from 'vitest';
import { SliceWorld } from './slices.js';

it('counts in the parent whatever a child spends, in every state', async () => {
  const { found, states, answers } = await new SliceWorld().explore();
  expect(found).toBeUndefined();
  if (process.env['EXPLORE_STATES'] !== undefined)
    process.stdout.write(`${states} states: ${JSON.stringify(answers)}\n`);
  expect(Object.keys(answers)).toEqual(
    expect.arrayContaining([
      'child ALLOW',
      'child GRANT_REVOKED',
      'parent ALLOW',
      'parent RESERVATION_OVER_CAP',
    ]),
  );
});

it.each([
  ['a slice is spent that was not begun', 'not-begun', 'SLICE_NOT_FOUND'],
  ['a slice is settled that can still be spent', 'not-stopped', 'calls were begun'],
] as const)('finds it where %s', async (_, weakness, broken) => {
  const { found } = await new SliceWorld(weakness).explore(broken);
  expect(found?.broken).toContain(broken);
  expect(found?.steps[0]).toBe('the child grants the slice');
});
