/**
 * The code itself, explored: every order of what a small world can do, through the real evaluator, writer and verifier, and in each state
 * the invariants. `EXPLORE_STATES` sets how many states of the full world are looked at, breadth first; `EXPLORE_TRACE` replays one way.
 */

import { describe, expect, it } from 'vitest';
import { Alive } from './alive.js';
import { type Exploration, explore, replay, walk } from './explore.js';
import { FULL, LARGE, WHOLE, worldOf } from './worlds.js';
import { times } from '../slow.js';

const TRACE = process.env['EXPLORE_TRACE'];
const STATES = Number(process.env['EXPLORE_STATES'] ?? times(400, 20_000));

const SEEDS = Array.from(
  { length: Number(process.env['EXPLORE_SEEDS'] ?? times(3, 100)) },
  (_, index) => index + 1,
);
const WALK_LENGTH = 60;

function say(text: string): void {
  if (process.env['EXPLORE_STATES'] !== undefined) process.stdout.write(`${text}\n`);
}

function describeRun(run: Exploration, beganMs: number): string {
  const seconds = Math.round((Date.now() - beganMs) / 1000);
  const { user, system } = process.cpuUsage();
  const cpu = Math.round((user + system) / 1e6);
  const memory = Math.round(process.memoryUsage().rss / 2 ** 20);
  return `${JSON.stringify(run, undefined, 1)}\n${seconds} s, ${cpu} s of a processor, ${memory} MiB`;
}

describe.runIf(TRACE !== undefined)('one way', () => {
  it('is replayed', async () => {
    const { steps, broken } = await replay(worldOf(FULL), TRACE as string);
    process.stdout.write(`${steps.join('\n')}\n${JSON.stringify(broken, undefined, 1)}\n`);
    expect(broken).toEqual({});
  });
});

describe.runIf(TRACE === undefined)('the invariants hold', () => {
  it.each(Object.entries(WHOLE))('in every state: %s', async (_, plan) => {
    const run = await explore(worldOf(plan));
    expect(run.found).toBeUndefined();
    expect(run.isWhole).toBe(true);
  });

  it(`in the first ${STATES} states of the full world`, async () => {
    const beganMs = Date.now();
    const onProgress = (states: number, depth: number): void => say(`${states} states, depth ${depth}`);
    const run = await explore(worldOf(FULL), { maxStates: STATES, onProgress });
    say(describeRun(run, beganMs));
    expect(run.found).toBeUndefined();
    expect(run.states).toBeGreaterThanOrEqual(STATES);
  });

  it.runIf(process.env['EXPLORE_LARGE'] === '1')('in every state of the large world', async () => {
    const beganMs = Date.now();
    const onProgress = (states: number, depth: number): void => say(`${states} states, depth ${depth}`);
    const run = await explore(worldOf(LARGE), { onProgress });
    say(describeRun(run, beganMs));
    expect(run.found).toBeUndefined();
    expect(run.isWhole).toBe(true);
  });

  it.each(SEEDS)('on a way through the full world, for programs that stay too: seed %i', async (seed) => {
    const world = worldOf(FULL);
    const alive = new Alive(world, await world.begin());
    const { found } = await walk(world, seed, WALK_LENGTH, async (from, { act, state }) => {
      const answer = await alive.follow(from, state, act);
      if (act?.kind === 'answer') expect(answer).toEqual(act.answer);
      expect(alive.node).toBe(state.node);
    });
    expect(found).toBeUndefined();
  });
});
