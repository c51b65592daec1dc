/** What is made wrong at the doors of writers and gates is found within few seeds, and a seed is repeated exactly. */

import { expect, it } from 'vitest';
import { findBroken, type InvariantName } from '../invariants.js';
import { type Frailty, type Scenario, simulate } from './world.js';

const SEEDS = 60;

/** What finds it, and what fails meanwhile. */
const CAUGHT: Record<Frailty, Omit<Scenario, 'seed'> & { readonly invariant: InvariantName }> = {
  'no-compare': { invariant: 'one-chain' },
  'answers-early': { invariant: 'durable-before-told' },
  'believes-in-success': { invariant: 'durable-before-told' },
  'resends-blindly': { invariant: 'one-chain' },
  'forgets-position': { invariant: 'acknowledged-or-told', mode: 'async' },
  'forgets-requests': { invariant: 'one-answer' },
};

it.each(Object.keys(CAUGHT) as Frailty[])('%s is found', async (frailty) => {
  const { invariant, ...scenario } = CAUGHT[frailty];
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const { history } = await simulate({ ...scenario, seed, frailty });
    if (findBroken(history)[invariant] !== undefined) return;
  }
  expect.fail(`not found in ${SEEDS} seeds`);
});

it.each([1, 3, 7, 12])('seed %i leads to the same trace each time', async (seed) => {
  const [one, other] = [await simulate({ seed }), await simulate({ seed })];
  expect(other.trace).toEqual(one.trace);
});
