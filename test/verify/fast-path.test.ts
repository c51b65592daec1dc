/** Whether scannable records are read the fast path or all are examined fully changes nothing that is said of a ledger. */

import { afterEach, expect, test } from 'vitest';
import { useFastPath } from '../../src/fast/scan/scanned-line.js';
import { ROW_WIDTH, scanRecord } from '../../src/fast/scan/scan.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { VerifiedRecord } from '../../src/rules/verify/verified-record.js';
import { CASES, FIXTURES, fixtureBytes, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { linesOf, rememberingBackend } from './support.js';

const backend = rememberingBackend();

afterEach(() => useFastPath(true));

/** What a follower may keep of a record. */
function keptOf({ examined, grantIds, verdict, signatures, findings }: VerifiedRecord): () => unknown {
  return () => ({
    ...{ grantIds, verdict, signatures, findings: findings.map(({ code, context }) => ({ code, context })) },
    json: examined?.json(),
    ...{ seq: examined?.seq, type: examined?.type, toolName: examined?.toolName, prev: examined?.prev },
    ...{ eventId: examined?.eventId, ledgerId: examined?.ledgerId, previousId: examined?.previousId },
    outline: examined?.wellFormed === true ? { ...examined.outline() } : undefined,
  });
}

test.each(sample(CASES, 120))(
  '$ledger $trust $witness_policy $checkpoints $predecessor $now',
  async (fixture) => {
    const now = fixture.now ?? '2026-11-22T00:00:00Z';
    const path = `${FIXTURES}${fixture.ledger}`;
    const reportOf = async (isFast: boolean, follow: boolean): Promise<string> => {
      useFastPath(isFast);
      const options = { backend, ...optionsOf(fixture), now };
      const kept: (() => unknown)[] = [];
      const onRecord = (record: VerifiedRecord): undefined => {
        kept.push(keptOf(record));
      };
      const report = await verifyLedger(path, follow ? { ...options, onRecord } : options);
      return JSON.stringify({ report, kept: kept.map((show) => show()) }, (_, value: unknown) =>
        typeof value === 'bigint' ? `${value}n` : value,
      );
    };
    expect(await reportOf(true, false)).toBe(await reportOf(false, false));
    expect(JSON.parse(await reportOf(true, true))).toEqual(JSON.parse(await reportOf(false, true)));
  },
);

/** The events that the fast path knows; grants are read from the event. */
function isMeant(line: Buffer): boolean {
  const { event } = JSON.parse(line.toString()) as { event: Record<string, unknown> };
  const { event_type: type, authorization } = event;
  if (type === 'authorization') return (authorization as { kind: string }).kind === 'action';
  return !['genesis', 'key', 'checkpoint', 'attestation'].includes(type as string);
}

test.each(['agent-run', 'pipeline-1000', 'bound', 'authority', 'multi-signature'])(
  'every action, execution, adjustment and extension event of %s is usual',
  (name) => {
    const rows = new Int32Array(ROW_WIDTH);
    const isUsual = (line: Buffer): boolean => scanRecord(line, 0, line.length, rows, 0);
    const lines = linesOf(fixtureBytes(`ledgers/${name}.jsonl`));
    expect(lines.filter(isMeant).length).toBeGreaterThan(0);
    expect(lines.filter(isMeant).filter((line) => !isUsual(line))).toEqual([]);
    expect(lines.filter(isUsual).every(isMeant)).toBe(true);
  },
);
