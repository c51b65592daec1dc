/** What exports say of approvals and revocations, and which leave them out. */

import { expect, test } from 'vitest';
import {
  exportCsv,
  exportDsse,
  exportFocus,
  exportJournal,
  exportOcsf,
  exportOtlp,
  verifyLedger,
  writeSarif,
} from '../../src/api/index.js';
import { readJournal } from '../../src/api/export.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { csvObjects, MemorySink, pick } from '../table/kit.js';
import { bytesSource } from '../bytes-source.js';

const LEDGER = 'ledgers/approvals-and-revocations.jsonl';
const bytes = fixtureBytes(LEDGER);
const source = (): ReturnType<typeof bytesSource> => bytesSource(bytes, 'ledger.jsonl');
const events = bytes
  .toString()
  .trimEnd()
  .split('\n')
  .map((line) => (JSON.parse(line) as { event: Record<string, unknown> }).event);
const idAt = (seq: number): string =>
  `sha-256:${(events[seq] as { event_id: { b64: string } }).event_id.b64}`;
const sinks = (): Record<'events' | 'meters' | 'verification', MemorySink> => ({
  events: new MemorySink(),
  meters: new MemorySink(),
  verification: new MemorySink(),
});

test('tables have which call was approved by whom, what used that up, and what was withdrawn how', async () => {
  const { events: table, ...rest } = sinks();
  await exportCsv(source(), { events: table, ...rest });
  const rows = csvObjects(table.text);
  const of = (type: string): (string | undefined)[][] =>
    rows
      .filter((row) => row['event_type'] === type)
      .map((row) =>
        pick(row, 'seq', 'principal_id', 'decision', 'tool_name', 'effect', 'in_flight', 'reason'),
      );
  expect(of('approval')).toEqual([
    ['2', 'human:ada', 'approve', 'fs.read', '', '', ''],
    ['4', 'human:ada', 'approve', 'fs.read', '', '', ''],
  ]);
  expect(of('revocation').map(([seq, , ...cells]) => [seq, ...cells])).toEqual([
    ['3', '', '', 'suspend', 'finish', 'ON_CALL'],
    ['5', '', '', 'resume', '', 'ON_CALL'],
    ['10', '', '', 'revoke', 'stop', 'ON_CALL'],
  ]);
  expect(
    rows.filter((row) => row['approval_event_ids'] !== '').map((row) => row['approval_event_ids']),
  ).toEqual([idAt(2), idAt(4)]);
  expect(rows[2]?.['grant_event_id']).toBe(idAt(1));
});

test('spans and OCSF events have each of them', async () => {
  const [otlp, ocsf] = [new MemorySink(), new MemorySink()];
  await exportOtlp(source(), otlp);
  await exportOcsf(source(), ocsf);
  const { resourceSpans } = JSON.parse(otlp.text) as {
    resourceSpans: {
      scopeSpans: {
        spans: { name: string; attributes: { key: string; value: { stringValue?: string } }[] }[];
      }[];
    }[];
  };
  const spans = resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
  expect(
    spans.map(({ name }) => name).filter((name) => !/^(grant|authorize|execute_tool)/.test(name)),
  ).toEqual(['approve fs.read', 'suspend', 'approve fs.read', 'resume', 'revoke']);
  const attributes = spans.find(({ name }) => name === 'revoke')?.attributes ?? [];
  expect(Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue]))).toMatchObject({
    'northroot.in_flight': 'stop',
    'northroot.reason': 'ON_CALL',
    'northroot.grant_event_id': idAt(1),
  });
  const named = ocsf.text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { activity_name: string; api: { operation: string } })
    .map(({ activity_name: name, api }) => [name, api.operation]);
  expect([2, 3, 5, 10].map((seq) => named[seq])).toEqual([
    ['Approve', 'fs.read'],
    ['Update', 'suspend grant'],
    ['Update', 'resume grant'],
    ['Delete', 'revoke grant'],
  ]);
});

test('FOCUS has no row of them, as they cost nothing', async () => {
  const [costs, verification] = [new MemorySink(), new MemorySink()];
  await exportFocus(source(), { costs, verification });
  expect(
    csvObjects(costs.text).filter((row) => [idAt(2), idAt(10)].includes(row['x_EventId'] ?? '')),
  ).toEqual([]);
});

test('journals and envelopes have them as they are', async () => {
  const [journal, dsse] = [new MemorySink(), new MemorySink()];
  await exportJournal(source(), journal);
  const held: string[] = [];
  for await (const { payload } of readJournal([journal.bytes])) held.push(Buffer.from(payload).toString());
  for (const seq of [2, 3, 5, 10]) {
    const event = { ...events[seq] };
    delete event['payload_digest'];
    expect(held).toContain(canonicalText(event as never));
  }
  await exportDsse(source(), dsse);
  const payloads = dsse.text
    .trimEnd()
    .split('\n')
    .map((line) => Buffer.from((JSON.parse(line) as { payload: string }).payload, 'base64').toString());
  for (const seq of [2, 3, 5, 10]) expect(payloads).toContain(canonicalText(events[seq] as never));
});

test.each([
  ['broken/approval-missing-tool.jsonl', 'APPROVAL_MISSING'],
  ['broken/grant-revoked-approved.jsonl', 'GRANT_REVOKED'],
])('SARIF has what lacks approval, and what was withdrawn: %s', async (name, code) => {
  const sink = new MemorySink();
  await writeSarif(sink, await verifyLedger(bytesSource(fixtureBytes(name), 'broken.jsonl')));
  const { runs } = JSON.parse(sink.text) as { runs: { results: { ruleId: string; level: string }[] }[] };
  expect(runs[0]?.results.filter(({ ruleId }) => ruleId === code).map(({ level }) => level)).toEqual([
    'error',
  ]);
});
