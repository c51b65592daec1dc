/**
 * Whole ledgers, changed at random, have the same report by the fast way (the scanner, blocks of any size, signatures by tables, other
 * threads) as by the one that defines what is right: every line examined fully, every signature by node:crypto.
 */

import { afterEach, expect, test, vi } from 'vitest';
import { streamSource } from '../../src/log/fs/source.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import { buildReport } from '../../src/rules/report/report.js';
import type { BatchVerifier, BatchVerifierOptions } from '../../src/fast/signature/batch-verifier.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { rememberKeys } from '../../src/fast/blocks/known-keys.js';
import { runVerification, type VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { makeRandom } from '../ledger/scan-kit.js';
import { times } from '../slow.js';
import { fixtureOrigins, makeOrigin, mutateLedger, type Origin } from './mutation-kit.js';
import { inChunks, rememberingBackend } from './support.js';

// One for all ledgers: small ones alone have too few signatures for tables.
vi.mock('../../src/fast/signature/batch-verifier.js', async (load) => {
  const real = await load<{ BatchVerifier: new (options: BatchVerifierOptions) => BatchVerifier }>();
  const shared = new real.BatchVerifier({});
  return {
    ...real,
    BatchVerifier: function () {
      return shared;
    },
  };
});

const SEED = Number(process.env['SEED'] ?? 20_261_123);
const COUNT = Number(process.env['COUNT'] ?? times(100, 100_000));
/** One of so many is also verified with other threads. */
const THREADED = times(50, 250);
/** So many ledgers made here are changed again and again, and replaced one after the other. */
const MADE = 50;
const NOW = '2026-11-22T00:00:00Z';

afterEach(() => useFastPath(true));

async function reportOf(source: LedgerSource, options: VerifyOptions): Promise<string> {
  const stream: string[] = [];
  const result = await runVerification(source, {
    now: NOW,
    threads: 1,
    ...options,
    onFinding: ({ code, at }) => stream.push(`${at.line} ${code}`),
  });
  return JSON.stringify({ report: buildReport(result), stream });
}

test('ledgers with anything changed have one report', { timeout: 7_200_000 }, async () => {
  const random = makeRandom(SEED);
  const below = (end: number): number => Math.floor(random() * end);
  const fixtures = fixtureOrigins(16_000);
  const codes = new Set<string>();
  const verdicts: Record<string, number> = {};
  const fast = rememberKeys(defaultBackend);
  let slow = rememberingBackend();
  const made: Origin[] = [];
  for (let n = 0; n < COUNT; n += 1) {
    if (n % 2_000 === 0) slow = rememberingBackend();
    if (n % 10 === 0) made[(n / 10) % MADE] = makeOrigin(random);
    const origins = n % 2 === 0 ? fixtures : made;
    const origin = origins[below(origins.length)];
    const bytes = mutateLedger(origin, random() < 0.5 ? fixtures : made, random);
    const where = `ledger ${n} of seed ${SEED}, from ${origin.name}:\n${bytes.toString('base64')}`;
    const stream = (): LedgerSource => streamSource(inChunks(bytes, bytes.length || 1), '-');
    useFastPath(false);
    const expected = await reportOf(stream(), { ...origin.options(), backend: slow });
    useFastPath(true);
    const sizes = Array.from({ length: 1 + below(3) }, () => 1 + below(random() < 0.5 ? 300 : 8_000));
    const chunked = streamSource(inChunks(bytes, ...sizes), '-');
    if ((await reportOf(chunked, { ...origin.options(), backend: fast })) !== expected)
      expect.fail(`the fast way differs: ${where}`);
    if (n % THREADED === 0) {
      // The size that it claims makes other threads worth while.
      const large = { ...streamSource(inChunks(bytes, 700, 1_500), '-'), size: 1e9 };
      if ((await reportOf(large, { ...origin.options(), threads: 2 })) !== expected)
        expect.fail(`other threads differ: ${where}`);
    }
    const { report } = JSON.parse(expected) as { report: { verdict: string; findings: { code: string }[] } };
    verdicts[report.verdict] = (verdicts[report.verdict] ?? 0) + 1;
    for (const { code } of report.findings) codes.add(code);
  }
  if (process.env['SLOW'] === '1')
    console.log(`seed ${SEED}, ${COUNT} ledgers, ${codes.size} codes`, verdicts);
  // Changes reach the rules behind ids, chain and signatures.
  if (COUNT < 100) return;
  expect(codes.size).toBeGreaterThan(COUNT >= 300 ? 55 : 20);
  // Of fewer, chance decides.
  if (COUNT < 300) return;
  const asked = ['ACTION_EXPIRED', 'METER_UNREPORTED', 'RELEASE_OF_STARTED', 'REQUEST_REPEATED'];
  expect(asked.filter((code) => !codes.has(code))).toEqual([]);
  expect(verdicts['ok'] ?? 0).toBeGreaterThan(COUNT / 100);
  expect(verdicts['violation'] ?? 0).toBeGreaterThan(COUNT / 100);
});
