/** How a ledger stands on one screen: the same facts as its report, and where its records begin and end in time. */

import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { verifyLedger } from '../../src/api/index.js';
import { readLedgerStatus } from '../../src/log/read/status.js';
import { renderStatus } from '../../src/out/text/status.js';

const RUN = 'fixtures/ledgers/agent-run.jsonl';
const OVERDRAWN = 'fixtures/broken/meter-cap-exceeded.jsonl';
const lines = readFileSync(RUN, 'utf8').trimEnd().split('\n');
const timeOf = (line = ''): string =>
  (JSON.parse(line) as { event: { occurred_at: string } }).event.occurred_at;

async function* chunked(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array, void, void> {
  const buffer = new Uint8Array(size);
  for (let at = 0; at < bytes.length; at += size) {
    // The buffer is used again, as that of a file is.
    const part = bytes.subarray(at, at + size);
    buffer.set(part);
    yield await Promise.resolve(buffer.subarray(0, part.length));
  }
}

describe('the status of a ledger', () => {
  it.each([RUN, OVERDRAWN, 'fixtures/broken/prev-mismatch.jsonl'])(
    'agrees with the report on %s',
    async (path) => {
      const [status, report] = [await readLedgerStatus(path), await verifyLedger(path)];
      const { ledger, verdict, exit_status, checkpoints, open_authorizations, not_checked, findings_total } =
        report;
      const same = {
        ledger,
        verdict,
        exit_status,
        checkpoints,
        open_authorizations,
        not_checked,
        findings_total,
      };
      expect(status).toMatchObject(same);
      expect(status.worst_finding).toEqual(report.findings[0] ?? null);
      expect(renderStatus(status).split('\n').length).toBeLessThan(40);
    },
  );

  it('says from when to when, however it is read', async () => {
    const expected = { first: timeOf(lines[0]), last: timeOf(lines.at(-1)) };
    const bytes = readFileSync(RUN);
    for (const size of [1, 700, bytes.length]) {
      expect((await readLedgerStatus(chunked(bytes, size))).period).toEqual(expected);
    }
    expect((await readLedgerStatus(Buffer.from(`${lines[0]}\n`))).period).toEqual({
      first: expected.first,
      last: expected.first,
    });
    expect((await readLedgerStatus(Buffer.from('x\n'))).period).toBeNull();
    expect((await readLedgerStatus(Buffer.alloc(0))).period).toBeNull();
  });

  it('says who may sign, and what nearly is used up by grants that are in force', async () => {
    const status = await readLedgerStatus(OVERDRAWN, { now: '2026-01-01T00:00:04Z' });
    expect(status.keys).toMatchObject([{ since_seq: 0, revoked_at_seq: null, records: 4 }]);
    expect(status).toMatchObject({ grants: 1, scarce: [{ grant_seq: 1, meter: { unit: 'usd' } }] });
    const later = await readLedgerStatus(RUN, { now: '2036-01-01T00:00:04Z' });
    expect(later).toMatchObject({ grants: 0, scarce: [] });
  });

  it('knows its options', async () => {
    const options = { policy: {} } as object;
    await expect(readLedgerStatus(RUN, options)).rejects.toThrow(TypeError);
  });
});
