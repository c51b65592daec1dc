/** What rests on authority that was imported is said by every way to a report (SPEC §8, "Imported authority"). */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { requireChecks } from '../../src/rules/report/not-checked.js';
import { decideExitStatus } from '../../src/out/ci/baseline.js';
import { verifyChunks } from '../../src/rules/report/verify-chunks.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { event } from '../docs/ledger-kit.js';
import { execution, grant, unsigned, usd } from '../docs/grant-kit.js';
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

it('is said of a credit that lowered what counts as used, and not of one that changed nothing', async () => {
  const own = grant();
  const told = async (meters: object): Promise<boolean> => {
    const credit = event('adjustment', {
      principal_id: 'service:billing',
      grant_event_id: own.event_id,
      direction: 'credit',
      meters,
      reason: 'BILL',
      source: { system: 'bank', id: 'B-1' },
    });
    const report = await verifyChunks(unsigned(own, execution(own, 2), credit, execution(own, 1)));
    return codesOf(report).includes('IMPORTED_AUTHORITY');
  };
  const uncapped = [{ unit: 'tokens', amount: { t: 'int', v: '1' } }];
  expect([await told(usd(1)), await told(usd(0)), await told(uncapped)]).toEqual([true, false, false]);
});
