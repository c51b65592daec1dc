/** Real coding agents under a budget of two calls, with scripted models: `npm run test:live`. Skipped, and said so, where they cannot run. */

import { rmSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import { CAN_ISOLATE, findObstacle, HOSTS, type LiveHost, LiveRun } from './run-host.js';

const obstacle = findObstacle();
if (obstacle !== undefined) console.warn(`skipped: ${obstacle}`);
const COMMANDS = ['echo 1 > one.txt', 'echo 2 > two.txt', 'echo 3 > three.txt'];

describe.skipIf(obstacle !== undefined).each(Object.keys(HOSTS) as LiveHost[])('%s', (host) => {
  let live: LiveRun | undefined;
  const start = (calls: number): LiveRun => (live = new LiveRun(host, calls));
  afterEach(() => live?.remove());

  it('runs two calls of three', async () => {
    const run = start(2);
    const { files, said } = await run.run(COMMANDS);
    expect(files, said).toEqual(['one.txt', 'two.txt']);
    expect(
      run.records().map((each) => each.replace(/ ?(?:action )?\S*(?:Bash|shell)\S* ?/, ' ').trim()),
    ).toEqual(['allow', 'success', 'allow', 'success', 'deny']);
    expect(run.northroot('verify', run.ledger)).toMatch(/^ok /);
  });

  it('runs nothing without its ledger', async () => {
    const run = start(9);
    rmSync(run.ledger);
    const { files, said } = await run.run(COMMANDS);
    expect(files, said).toEqual([]);
  });

  it('charges a call within which its session broke off', async () => {
    const run = start(1);
    const first = await run.run(['echo 1 > one.txt; kill -TERM $PPID; sleep 9'], 'first');
    expect(first.files, first.said).toEqual(['one.txt']);
    const second = await run.run(['echo 2 > two.txt'], 'second');
    expect(second.files, second.said).toEqual([]);
    expect(run.northroot('verify', run.ledger)).toMatch(/^ok /);
  });

  it('runs what it would run without northroot, once that is taken out', async () => {
    const run = start(0);
    run.northroot('hook', 'uninstall', host);
    const { files, said } = await run.run(COMMANDS);
    expect(files, said).toEqual(['one.txt', 'three.txt', 'two.txt']);
  });
});

describe.skipIf(obstacle !== undefined)('codex', () => {
  it('does not get back the call of a command that runs on', async () => {
    const run = new LiveRun('codex', 1);
    try {
      const first = await run.run(['echo 1 > one.txt; sleep 99'], 'first');
      expect(first.files, first.said).toEqual(['one.txt']);
      const second = await run.run(['echo 2 > two.txt'], 'second');
      expect(second.files, second.said).toEqual([]);
      expect(run.northroot('verify', run.ledger)).toMatch(/^ok /);
    } finally {
      run.remove();
    }
  });
});

describe.skipIf(obstacle !== undefined || !CAN_ISOLATE)('claude-code', () => {
  it('shares one budget between two sessions', async () => {
    const run = new LiveRun('claude-code', 3);
    try {
      const ends = await Promise.all([run.run(COMMANDS, 'one'), run.run(COMMANDS, 'two')]);
      expect(ends.flatMap(({ files }) => files)).toHaveLength(3);
      expect(run.records().filter((each) => each.includes('success'))).toHaveLength(3);
      expect(run.northroot('verify', run.ledger)).toMatch(/^ok /);
    } finally {
      run.remove();
    }
  });
});
