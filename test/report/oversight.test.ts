/** What the texts say of approvals and revocations: who approved what was used, what was withdrawn, what still ran. */

import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type EventHistory, verifyLedger } from '../../src/api/index.js';
import { explainEvent } from '../../src/log/read/event-history.js';
import { readLedgerStatus } from '../../src/log/read/status.js';
import { renderEventHistory } from '../../src/out/text/event-history.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { renderReport } from '../../src/out/text/report.js';
import { renderStatus } from '../../src/out/text/status.js';
import { bytesSource } from '../bytes-source.js';

const bytes = readFileSync(
  new URL('../../fixtures/ledgers/approvals-and-revocations.jsonl', import.meta.url),
);
const source = () => bytesSource(bytes, 'ledger.jsonl');
const report = await verifyLedger(source());

async function tell(seq: number): Promise<{ history: EventHistory; text: string }> {
  const line = JSON.parse(bytes.toString().split('\n')[seq]) as {
    event: { event_id: { b64: string } };
  };
  const eventId = `sha-256:${line.event.event_id.b64}`;
  const history = await explainEvent(() => Promise.resolve(source()), { eventId });
  return { history, text: renderEventHistory(history, plainPaint) };
}

test('the report says who approved what was used, and what was withdrawn by whom', () => {
  const text = renderReport(report);
  expect(text).toContain('approvals (2, 2 used)\n  seq 2  human:ada approved fs.read, used by sha-256:');
  expect(text).toContain('revocations (3)\n  seq 3  human:owner suspended grant sha-256:');
  expect(text).toMatch(
    /seq 10 {2}human:owner revoked grant sha-256:\S+, allowed actions stop\n {4}signed by /,
  );
});

test('a grant that is withdrawn says so, in the report and in the status', async () => {
  expect(report.grants[0]?.withdrawn).toMatchObject({ effect: 'revoke', seq: 10 });
  expect(renderReport(report)).toContain('2 executions, revoked: out of force since seq 10\n');
  const status = await readLedgerStatus(source());
  expect(status).toMatchObject({ grants: 0, withdrawn: 1 });
  expect(renderStatus(status)).toContain('1 grant revoked or suspended');
});

test('an action and its execution show the approval that was used up', async () => {
  for (const seq of [8, 11]) {
    const { history, text } = await tell(seq);
    expect(history.approvals.map((each) => each.seq)).toEqual([4]);
    expect(text).toMatch(/approval seq 4 {2}.*\n {2}by {9}human:ada\n {2}when {7}2026-01-01T00:00:04Z\n/);
  }
});

test('an approval shows the action that used it', async () => {
  const { history, text } = await tell(4);
  expect(history.used_by?.seq).toBe(8);
  expect(text).toContain('used by seq 8');
});

test('a grant shows when it was withdrawn, and what was recorded after the stop', async () => {
  const { history, text } = await tell(1);
  expect(history.withdrawals.map((each) => each.seq)).toEqual([3, 5, 10]);
  expect(history.after_stop.map((each) => each.seq)).toEqual([11]);
  expect(text).toContain('approvals  * needs 1 of human:*');
  expect(text).toContain('recorded after the stop seq 11');
});
