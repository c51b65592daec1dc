/** Audit records and receipts of 2026.9, in samples that were made for these tests in the shape of that version's exports. */

import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { HostFile } from '../../../src/hosts/shared/host.js';
import { countsOf, fileOf, findingsOf, imported } from './kit.js';

function sample(name: string): HostFile {
  return { name, bytes: readFileSync(new URL(`samples/${name}`, import.meta.url)) };
}

const AUDIT = 'audit-2026.9.made-by-us.json';
const RECEIPTS = 'receipts-2026.9.made-by-us.jsonl';
const CALL = '0d6f6c1e-0f3a-4a57-9a4b-6d3f3a1f2b10/sha256:';

it('takes audit records oldest first, and only what finished for executions', async () => {
  const { plan, account, report } = await imported([sample(AUDIT)]);
  expect(account.total).toEqual({ items: 10, mapped: 5, evidence: 5, repeated: 0, dropped: 0 });
  const claims = plan.reading.claims.flatMap((claim) =>
    claim.kind === 'evidence' ? [] : [[claim.id.replace(CALL, '').replace(/(:.{4}).*/, '$1'), claim]],
  );
  expect(claims.map(([, claim]) => claim)).toMatchObject([
    { kind: 'execution', tool: 'read', outcome: 'success', endedAt: '2026-11-21T22:26:40.055Z' },
    { kind: 'execution', tool: 'exec', outcome: 'failure', errorCode: 'TOOL_FAILED' },
    { kind: 'action', tool: 'exec', decision: 'deny', decisionCode: 'OPENCLAW_TOOL_BLOCKED' },
    { kind: 'execution', tool: 'web_fetch', outcome: 'unknown' },
    { kind: 'execution', tool: 'openclaw.message.send', outcome: 'success' },
  ]);
  expect(countsOf(plan.findings)).toEqual({ 'OC-11 DECISION_NOT_RECORDED': 3 });
  expect(report.findings.map(({ code }) => code)).toContain('AUTH_NOT_FOUND');
  expect(plan.reading.items[0]).toMatchObject({ at: { file: AUDIT, pointer: '/events/0' } });
});

it('takes a receipt for a decision only where it was enforced', async () => {
  const { plan, account } = await imported([sample(RECEIPTS), sample(AUDIT)]);
  expect(account.byFile.get(RECEIPTS)).toEqual({ items: 4, mapped: 2, evidence: 2, repeated: 0, dropped: 0 });
  expect(plan.reading.claims.filter(({ id }) => id.startsWith('receipt:receipt-'))).toMatchObject([
    {
      decision: 'allow',
      decisionCode: 'OPENCLAW_PLUGIN_HOOK_ALLOWED',
      policyId: 'plugin-hook:before-tool-call',
    },
    { kind: 'evidence', facts: { coverage: 'attribution-only', outcome: 'allowed' } },
    { kind: 'evidence', facts: { coverage: 'unattributed', outcome: 'not-applicable' } },
    { decision: 'deny', decisionCode: 'OPENCLAW_PLUGIN_HOOK_BLOCKED' },
  ]);
  expect(countsOf(plan.findings)).toEqual({
    'OC-11 DECISION_NOT_ENFORCED': 1,
    'OC-11 DECISION_NOT_RECORDED': 2,
  });
  const read = plan.reading.claims.find((claim) => claim.kind === 'execution' && claim.tool === 'read');
  expect(read).toMatchObject({ authorization: 'receipt:receipt-1' });
});

it('reads the same records from a page, an array and lines', async () => {
  const page = JSON.parse(Buffer.from(sample(AUDIT).bytes).toString()) as { events: object[] };
  const forms = [
    sample(AUDIT),
    fileOf('array.json', JSON.stringify(page.events)),
    fileOf('page.json', JSON.stringify(page)),
  ];
  const ids = await Promise.all(
    forms.map(async (file) => (await imported([file])).plan.events.map(({ event }) => event.event_id.b64)),
  );
  expect(ids[1]).toEqual(ids[0]);
  expect(ids[2]).toEqual(ids[0]);
  const lines = fileOf('lines.jsonl', page.events.map((row) => `${JSON.stringify(row)}\n`).join(''));
  expect((await imported([lines])).account.total).toMatchObject({ items: 10, mapped: 5, evidence: 5 });
});

it('takes a record that two pages have once', async () => {
  const { account } = await imported([sample(AUDIT), { ...sample(AUDIT), name: 'again.json' }]);
  expect(account.total).toMatchObject({ items: 20, repeated: 10 });
});

it('keeps receipts as rows of their table have them', async () => {
  const [first] = Buffer.from(sample(RECEIPTS).bytes).toString().split('\n');
  const row = JSON.stringify({ receipt_id: 'receipt-1', run_id: 'r', receipt_json: first });
  const { account } = await imported([fileOf('rows.jsonl', `${row}\n`)]);
  expect(account.total).toMatchObject({ items: 1, mapped: 1 });
});

it('names a call id that is no fingerprint', () => {
  const text = Buffer.from(sample(AUDIT).bytes).toString();
  const plain = text.replace(/"sha256:[0-9a-f]{64}"/, '"call_d"');
  expect(findingsOf([fileOf('a.json', plain)])).toEqual(
    expect.arrayContaining(['OC-8 FINGERPRINT_INVALID', 'OC-7 START_MISSING']),
  );
});
