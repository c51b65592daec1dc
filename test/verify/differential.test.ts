/**
 * All ways to verify a ledger give one report, byte for byte (but for what the way itself adds). What a block was read into, and what was
 * said of it, is overwritten as soon as it is given back: whoever points into it for longer gives another report. The ways run in a
 * process of their own (`differential-main.ts`).
 */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { times } from '../slow.js';
import { bundleVerifier, bundleWays, ROOT } from './differential-bundle.js';
import type { Seen } from './differential-main.js';

const { SEED = '20261125', DIFFERENTIAL_RUNS: BY_HAND, DIFFERENTIAL_MODE } = process.env;
const RUNS = Number(BY_HAND ?? times(600, 10_000));
const MODE = DIFFERENTIAL_MODE ?? (RUNS < 5_000 && BY_HAND === undefined ? 'short' : 'long');
const isBuilt = existsSync(`${ROOT}dist/verify.js`);

const folder = mkdtempSync(join(tmpdir(), 'northroot-differential-'));
const PROGRAM = join(folder, 'ways.mjs');
afterAll(() => rmSync(folder, { recursive: true }));

beforeAll(async () => {
  await bundleWays(PROGRAM);
  if (!isBuilt) return;
  await bundleVerifier('esm', join(folder, 'verify.mjs'));
  await bundleVerifier('iife', join(folder, 'verify.js'));
});

test.skipIf(!isBuilt)('all ways to verify a ledger give one report', { timeout: 7_200_000 }, () => {
  const stdio = ['ignore', BY_HAND === undefined ? 'pipe' : 'inherit', 'pipe'] as const;
  void stdio;
  const { stdout, stderr, status } = spawnSync(process.execPath, [PROGRAM, `${RUNS}`, SEED, folder, MODE], {
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  const lines = stdout.trimEnd().split('\n');
  const seen = JSON.parse(lines.at(-1) as string) as Seen;
  if (BY_HAND !== undefined) console.log(stdout);
  expect(seen.differences).toEqual([]);
  expect(seen.ledgers).toBe(RUNS);
});
