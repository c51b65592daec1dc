/**
 * The code itself, explored: every order of what a small world can do, through the real evaluator, writer and verifier, and in each state
 * the invariants. `EXPLORE_STATES` sets how many states of the full world are looked at, breadth first; `EXPLORE_TRACE` replays one way.
 */

import { describe, expect, it } from 'vitest';
import { type Exploration, explore, replay, walk } from './explore.js';
import { FULL, WHOLE, worldOf } from './worlds.js';

const TRACE = process.env['EXPLORE_TRACE'];
const STATES = Number(process.env['EXPLORE_STATES'] ?? 2_000);

const WALKS = 40;
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

  it(`on ${WALKS} ways through the full world`, async () => {
    const world = worldOf(FULL);
    for (let seed = 1; seed <= WALKS; seed += 1) expect(await walk(world, seed, WALK_LENGTH)).toBeUndefined();
  });
});
