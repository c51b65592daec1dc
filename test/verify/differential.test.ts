/**
 * All ways to verify a ledger give one report, byte for byte (but for what the way itself adds). What a block was read into, and what was
 * said of it, is overwritten as soon as it is given back: whoever points into it for longer gives another report. The ways run in a
 * process of their own (`differential-main.ts`).
 */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { times } from '../slow.js';
import { bundleVerifier, bundleWays } from './differential-bundle.js';
import type { Seen } from './differential-main.js';

const { SEED = '20261125', DIFFERENTIAL_RUNS: BY_HAND } = process.env;
const RUNS = Number(BY_HAND ?? times(90, 10_000));
/** Long ledgers besides those that are among them. */
const MORE = BY_HAND === undefined ? 5 : 0;
const HOW = RUNS > 5_000 ? 'seldom' : 'often';

const folder = mkdtempSync(join(tmpdir(), 'northroot-differential-'));
const program = join(folder, 'ways.mjs');
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  await bundleWays(program);
  await bundleVerifier('esm', join(folder, 'verify.mjs'));
  await bundleVerifier('iife', join(folder, 'verify.js'));
});

test('all ways to verify a ledger give one report', { timeout: 7_200_000 }, () => {
  const args = [program, RUNS, SEED, MORE, folder, HOW].map(String);
  const output = BY_HAND === undefined ? 'pipe' : 'inherit';
  // In a run by hand it is seen how far it is.
  const { stdout, stderr, status } = spawnSync(process.execPath, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', output],
    maxBuffer: 2 ** 28,
  });
  expect(status, stderr ?? '').toBe(0);
  const seen = JSON.parse(stdout) as Seen;
  if (BY_HAND !== undefined) console.log(seen);
  expect(seen.differences).toEqual([]);
  expect(seen.ledgers).toBe(RUNS + MORE);
  if (BY_HAND !== undefined) return;
  expect(seen.refused).toBeGreaterThan(RUNS);
  expect(seen.ok).toBeGreaterThan(RUNS / 10);
  expect(Object.keys(seen.ways).sort()).toEqual(WAYS);
});

/** What is found must have been looked for in each of them. */
const WAYS = [
  '2 threads',
  'a bundle of all records',
  'a file',
  'a file that grew',
  'a stream',
  'a writer',
  'a writer with an index',
  'blocks',
  'bundled for a browser',
  'chunks',
  'gone on from',
  'ids in temporary files',
  'one chunk',
  'parts',
  'records told',
  'the command, --part and --merge',
  'the command, a file, 2 threads',
  'the command, standard input',
  'the command, with --state',
  'the status by the index',
  'threads of their own',
];
