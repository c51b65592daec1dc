/** What rests on authority that was imported is said by every way to a report (SPEC §8, "Imported authority"). */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { requireChecks } from '../../src/rules/report/not-checked.js';
import { decideExitStatus } from '../../src/out/ci/baseline.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { FIXTURES } from '../fixtures/cases.js';

const path = `${FIXTURES}ledgers/imported.jsonl`;
const bytes = readFileSync(path);
const codesOf = ({ not_checked: open }: Awaited<ReturnType<typeof verifyChunks>>): string[] =>
  open.map(({ code }) => code);

it('is required to be absent like any other', async () => {
  const report = await verifyLedger(path);
  expect([report.verdict, report.exit_status]).toEqual(['ok', 0]);
  expect(codesOf(report)).toContain('IMPORTED_AUTHORITY');
  expect(decideExitStatus(requireChecks(report, ['IMPORTED_AUTHORITY']), 0, 'violation')).toBe(2);
});

it('is said from the first record on that rests on it, and not of the grant alone', async () => {
  const ends = [...bytes.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  const told = await Promise.all(
    ends.map(async (end) =>
      codesOf(await verifyChunks(bytes.subarray(0, end))).includes('IMPORTED_AUTHORITY'),
    ),
  );
  expect(told).toEqual([false, false, true, true]);
});
