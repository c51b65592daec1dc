/** What is made wrong at a door is found, by the fewest steps that show it; and each invariant can be broken so. */

import { expect, it } from 'vitest';
import { INVARIANTS } from '../invariants.js';
import { explore, type Found, replay } from './explore.js';
import { WEAK, worldOf } from './worlds.js';

it.each(Object.entries(WEAK))('%s', async (_, { plan, invariant }) => {
  const { found } = await explore(worldOf(plan), { until: invariant });
  const { trace, steps, broken } = found as Found;
  if (process.env['EXPLORE_STATES'] !== undefined)
    process.stdout.write(`${invariant}: ${steps.join('; ')}\n`);
  expect(Object.keys(broken)).toContain(invariant);
  // The same way shows the same, but for the ids of records, which are drawn.
  const again = await replay(worldOf(plan), trace);
  expect(again.steps).toEqual(steps);
  expect(Object.keys(again.broken)).toEqual(Object.keys(broken));
});

it('shows that each invariant can fail', () => {
  const shown = new Set(Object.values(WEAK).map(({ invariant }) => invariant));
  expect([...shown].sort()).toEqual(Object.keys(INVARIANTS).sort());
});
