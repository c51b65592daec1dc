/** The report for people: who signed each grant, and whose record a finding is about. */

import { expect, test } from 'vitest';
import { commandGuide } from '../../src/cli/remedies.js';
import { renderReport, type AnyEvent } from '../../src/api/index.js';
import { checkReport } from '../../src/format/schema/check.js';
import { plainPaint } from '../../src/out/text/guide.js';
import { DIGEST, event, genesis, keyOf, ledger, makeSigner, verify } from '../docs/ledger-kit.js';

const chief = makeSigner();
const agent = makeSigner();
const first = genesis([
  keyOf(chief, { roles: ['authority', 'event'], name: 'the chief' }),
  keyOf(agent, { principals: ['agent:a1'] }),
]);
const decided = { intents: { intent_digest: DIGEST }, policy_id: 'example/1', policy_digest: DIGEST };
const grant = event('authorization', {
  ...decided,
  decision: 'allow',
  decision_code: 'ALLOW',
  authorization: {
    kind: 'grant',
    bounds: { allowed_tools: ['fs.*'], meter_caps: [{ unit: 'usd', amount: { t: 'int', v: '1' } }] },
  },
});
const run = (tool: string): AnyEvent =>
  event('execution', {
    intents: decided.intents,
    auth_event_id: grant.event_id,
    tool_name: tool,
    meter_used: [{ unit: 'usd', amount: { t: 'int', v: '2' } }],
    outcome: 'success',
  });

test('names who signed each grant, and says when nobody known did', async () => {
  const signed = await verify(ledger({ event: first, signers: [chief] }, { event: grant, signers: [chief] }));
  expect(signed.grants[0]?.signers).toEqual([chief.publicKey.keyid]);
  expect(signed.trust.signers[0]).toMatchObject({ keyid: chief.publicKey.keyid, name: 'the chief' });
  expect(renderReport(signed)).toContain(`signed by ${chief.publicKey.keyid} (the chief)`);
  const forged = await verify(ledger({ event: first, signers: [chief] }, { event: grant, signers: [agent] }));
  expect(renderReport(forged)).toContain('signed by no known and entitled key');
});

test('a finding says which record it is about, and how that is shown', async () => {
  const bytes = ledger(
    { event: first, signers: [chief] },
    { event: grant, signers: [chief] },
    { event: run('fs.read'), signers: [agent] },
  );
  const report = await verify(bytes);
  expect(checkReport(report)).toEqual([]);
  expect(report.findings).toMatchObject([
    { code: 'METER_CAP_EXCEEDED', seq: 2, principal_id: 'agent:a1', tool_name: 'fs.read' },
  ]);
  const textOf = (path: string): string =>
    renderReport({ ...report, ledger: { ...report.ledger, paths: [path] } }, plainPaint, commandGuide);
  expect(textOf('-')).toContain('seq 2, agent:a1, fs.read, 2 usd\n');
  expect(textOf('a/b.jsonl')).toContain('seq 2, agent:a1, fs.read, 2 usd: northroot show a/b.jsonl 2\n');
  expect(textOf("it's.jsonl")).toContain(`northroot show 'it'\\''s.jsonl' 2\n`);
  expect(textOf('\u001b[2J')).not.toContain('northroot show');
});

test('a finding about an event without a valid principal or tool names none', async () => {
  const bad = { ...grant, principal_id: 'x'.repeat(500), tool_name: 'a b' };
  const line = JSON.stringify({ event: bad, prev: DIGEST, seq: 1, signatures: [] });
  const report = await verify(ledger({ event: first, signers: [chief] }, line));
  expect(checkReport(report)).toEqual([]);
  for (const finding of report.findings) {
    expect(finding).not.toHaveProperty('principal_id');
    expect(finding).not.toHaveProperty('tool_name');
  }
});
