/** Signed receipts of each format against a ledger: what either lacks, what differs, and what nobody vouches for. */

import { createHash, sign } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { canonicalText } from '../../../src/base/json/canonicalize.js';
import { aar, acta, agentReceipts, cycles, epReceipt } from '../../../src/hosts/receipts/index.js';
import { eventsOfClaims } from '../../../src/hosts/shared/claims.js';
import type { Host } from '../../../src/hosts/shared/host.js';
import { readSource, recogniseHost } from '../../../src/hosts/shared/reconcile-sources.js';
import { reconcileLedger } from '../../../src/hosts/shared/reconcile.js';
import { HOSTS } from '../../../src/hosts/shared/registry.js';
import { plainFile, plainHost } from '../plain-host.js';
import { ALICE, jcs, jsonFile, type JsonMembers, MALLORY, type Signer, signText } from './kit.js';
import { acr, digestOfRecord, receipt, signedAcr, unsignedAar, uuid } from './samples.js';

const T = 1_777_629_600_000;

/** Bare events of calls that were allowed and went well, for a quarter of a dollar each. */
function ledgerOf(...calls: readonly JsonMembers[]): Buffer {
  const lines = calls.map((call) => ({ ms: T, allow: true, ran: 'success', usd: 0.25, ...call }));
  const { events } = eventsOfClaims(plainHost.read([plainFile(...lines)]).claims, { system: 'plain' });
  return Buffer.from(events.map(({ event }) => `${canonicalText(event as never)}\n`).join(''));
}

async function reconcile(
  ledger: Buffer,
  host: Host,
  receipts: unknown,
  keys: string | undefined = ALICE.pem,
) {
  const aids = keys === undefined ? {} : { aids: { keys: jsonFile(keys, 'keys') } };
  const report = await reconcileLedger(ledger, [readSource(host, [jsonFile(receipts)], aids)]);
  const states = Object.entries(report.calls).filter(([name, n]) => n > 0 && name !== 'total');
  const codes = report.findings.map(({ code }) => code);
  const notChecked = report.not_checked.map(({ code }) => code);
  return { report, states: Object.fromEntries(states), codes, notChecked };
}

function acta1(payload: JsonMembers, by: Signer = ALICE): JsonMembers {
  const whole = {
    type: 'protectmcp:decision',
    issued_at: '2026-05-01T10:00:00Z',
    issuer_id: 'k',
    ...payload,
  };
  const sig = sign(null, Buffer.from(jcs(whole)), by.key).toString('hex');
  return { payload: whole, signature: { alg: 'EdDSA', kid: 'k', sig } };
}

function ep1(payload: JsonMembers): JsonMembers {
  const whole = { issued_at: '2026-05-01T10:00:00Z', ...payload };
  const signature = { algorithm: 'Ed25519', value: signText(ALICE, jcs(whole)) };
  return { '@version': 'EP-RECEIPT-v1', payload: whole, signature };
}

function cycles1(artifact: string, payload: JsonMembers): JsonMembers {
  const bare = {
    schema_version: 'cycles-evidence/v0.1',
    artifact_type: artifact,
    server_id: 'https://budget.example/v1',
    signer_did: ALICE.bytes.toString('hex'),
    issued_at_ms: T,
    payload: { [artifact]: payload },
    evidence_id: '',
    signature: '',
  };
  const named = { ...bare, evidence_id: createHash('sha256').update(jcs(bare)).digest('hex') };
  return { ...named, signature: sign(null, Buffer.from(jcs(named)), ALICE.key).toString('hex') };
}

function money(amount: number): JsonMembers {
  return { amount, unit: 'USD_MICROCENTS' };
}

/** A reservation of an id, and what was charged for it. */
function cyclesCall(id: string, charged: number): JsonMembers[] {
  return [
    cycles1('reserve', {
      request: {
        idempotency_key: `try-${id}`,
        subject: { tenant: 'acme' },
        action: { kind: 'tool.call', name: 'fetch' },
        estimate: money(30_000_000),
      },
      response: { decision: 'ALLOW', affected_scopes: [], reservation_id: id, reserved: money(30_000_000) },
    }),
    cycles1('commit', {
      reservation_id: id,
      request: { idempotency_key: `end-${id}`, actual: money(charged) },
      response: { status: 'COMMITTED', charged: money(charged), released: money(30_000_000 - charged) },
    }),
  ];
}

function aar1(n: number): JsonMembers {
  const unsigned = unsignedAar(ALICE, n, { cost: { amount: '0.25', currency: 'USD' } });
  const signature = { ...(unsigned['signature'] as JsonMembers), sig: signText(ALICE, jcs(unsigned)) };
  return { ...unsigned, signature };
}

it('that were corrected are told of, and agree all the same', async () => {
  const one = aar1(1);
  const correction = acr(ALICE, 2, { reason: 'tonnes', trigger: 'check_failed', fix: { type: 'replace' } });
  const supersedes = { receiptId: uuid(1), digest: digestOfRecord(one) };
  const ledger = ledgerOf({ id: uuid(1), tool: 'api.call', params: { n: 1 } });
  const told = await reconcile(ledger, aar, [one, signedAcr(ALICE, { ...correction, supersedes })]);
  expect(told.states).toEqual({ corroborated: 1 });
  expect(told.codes).toEqual(['SOURCE_CORRECTED']);
});

describe('receipts of each format', () => {
  it('confirm what the ledger has, and show what it lacks', async () => {
    const budget = await reconcile(
      ledgerOf({ id: 'r1', tool: 'fetch' }, { id: 'r3', tool: 'fetch' }),
      cycles,
      [...cyclesCall('r1', 25_000_000), ...cyclesCall('r2', 25_000_000)],
    );
    expect(budget.states).toEqual({ corroborated: 1, source_only: 2, ledger_only: 1 });
    expect(budget.codes).toEqual(['EXECUTION_NOT_IN_LEDGER', 'NOT_IN_SOURCES', 'DECISION_NOT_IN_LEDGER']);
    expect(budget.report.agreed).toMatchObject({ tool: 1, decision: 1, execution: 1, meters: 1 });

    const decided = await reconcile(ledgerOf({ id: 'd1', tool: 'Bash', ran: null }), acta, [
      acta1({ request_id: 'd1', tool_name: 'Bash', decision: 'allow' }),
      acta1({ request_id: 'd2', tool_name: 'Bash', decision: 'allow' }),
      acta1({ request_id: 'd3', tool_name: 'Bash', decision: 'allow', tool_duration_ms: 4 }),
    ]);
    expect(decided.states).toEqual({ corroborated: 1, source_only: 2 });
    expect(decided.codes).toEqual(['EXECUTION_NOT_IN_LEDGER', 'DECISION_NOT_IN_LEDGER']);

    const approved = await reconcile(
      ledgerOf({ id: 'e1', tool: 'payment.release', allow: true, ran: null }),
      epReceipt,
      [
        ep1({ receipt_id: 'e1', claim: { action: 'payment.release', outcome: 'allow' } }),
        ep1({ receipt_id: 'e2', claim: { action: 'payment.release', outcome: 'deny' } }),
      ],
    );
    expect(approved.states).toEqual({ corroborated: 1, source_only: 1 });
    expect(approved.codes).toEqual(['DECISION_NOT_IN_LEDGER']);

    const acted = await reconcile(ledgerOf({ id: uuid(1), tool: 'api.call', params: { n: 1 } }), aar, [
      aar1(1),
      aar1(2),
    ]);
    expect(acted.states).toEqual({ corroborated: 1, source_only: 1 });
    expect(acted.codes).toEqual(['EXECUTION_NOT_IN_LEDGER']);

    const chained = await reconcile(
      ledgerOf({ id: `act_${uuid(1)}`, tool: 'filesystem.file.read', params: { path: '/tmp/1' } }),
      agentReceipts,
      receipt(ALICE),
    );
    expect(chained.states).toEqual({ corroborated: 1 });
  });

  it('contradict amounts, tools and decisions', async () => {
    const dearer = await reconcile(
      ledgerOf({ id: 'r1', tool: 'fetch' }),
      cycles,
      cyclesCall('r1', 25_000_001),
    );
    expect(dearer.codes).toEqual(['METERS_DIFFER']);
    expect(dearer.report.findings[0]).toMatchObject({ expected: '0.25 usd', actual: '0.25000001 usd' });
    expect(dearer.report.meters).toContainEqual(
      expect.objectContaining({
        unit: 'usd',
        ledger: '0.25',
        sources: [expect.objectContaining({ difference: '-0.00000001' })],
      }),
    );
    const other = [acta1({ request_id: 'd1', tool_name: 'Write', decision: 'deny' })];
    expect((await reconcile(ledgerOf({ id: 'd1', tool: 'Bash' }), acta, other)).codes).toEqual([
      'TOOL_DIFFERS',
      'RAN_THOUGH_DENIED',
    ]);
  });
});

it('compares nothing with a receipt that is broken or that nobody vouches for, and says so', async () => {
  const ledger = ledgerOf({ id: 'd1', tool: 'Bash' });
  const forged = acta1({ request_id: 'd1', tool_name: 'Bash', decision: 'deny' }, MALLORY);
  const refused = await reconcile(ledger, acta, forged);
  expect(refused.states).toEqual({ ledger_only: 1 });
  expect(refused.codes).toEqual(['SOURCE_INVALID', 'NOT_IN_SOURCES']);
  expect(refused.notChecked).toContain('RECEIPTS_UNVERIFIED');
  const keyless = await reconcile(ledger, acta, forged, '');
  expect([keyless.states, keyless.notChecked.includes('RECEIPTS_UNVERIFIED')]).toEqual([
    { ledger_only: 1 },
    true,
  ]);
  const stated = await reconcileLedger(ledger, [readSource(cycles, [jsonFile(cyclesCall('d1', 1))])]);
  expect(stated.not_checked.map(({ code }) => code)).toContain('RECEIPTS_BY_OWN_KEY');
});

it('takes the keys of one format before those of all', () => {
  const value = acta1({ request_id: 'd1', tool_name: 'Bash', decision: 'allow' });
  const keys = { keys: jsonFile(MALLORY.pem, 'keys'), 'acta-keys': jsonFile(ALICE.pem, 'own') };
  expect(acta.read([jsonFile(value)], { aids: keys }).receipts).toMatchObject({ verified: 1 });
  const others = { keys: jsonFile(ALICE.pem, 'keys'), 'cycles-keys': jsonFile(MALLORY.pem, 'other') };
  expect(() => acta.read([jsonFile(value)], { aids: others })).toThrow(RangeError);
});

it('recognises each format, and none for another', () => {
  const formats: readonly (readonly [string, unknown])[] = [
    ['agent-receipts', receipt(ALICE)],
    ['aar', aar1(1)],
    ['ep-receipt', ep1({ receipt_id: 'e1' })],
    ['cycles', cyclesCall('r1', 1)[0]],
    ['acta', acta1({ request_id: 'd1', tool_name: 'Bash', decision: 'allow' })],
  ];
  for (const [name, value] of formats) expect(recogniseHost(jsonFile(value), HOSTS).name).toBe(name);
});
