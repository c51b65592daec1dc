/** Cycles evidence: what holds, by which key, what its amounts are, and what becomes of it. */

import { createHash, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { cycles } from '../../../src/hosts/receipts/index.js';
import { holdsForBrokenFiles, verifyPlan } from '../samples.js';
import {
  ALICE,
  BOB,
  errorsOf,
  jcs,
  type Json,
  jsonFile,
  type JsonMembers,
  MALLORY,
  readReceipts,
  type Signer,
  standingsOf,
} from './kit.js';

const SERVER = 'https://budget.example/v1';
const ISSUED = 1_772_359_200_000;

function signed(envelope: JsonMembers, { key }: Signer = ALICE): JsonMembers {
  const bare = { ...envelope, evidence_id: '', signature: '' };
  const named = { ...bare, evidence_id: createHash('sha256').update(jcs(bare)).digest('hex') };
  return { ...named, signature: sign(null, Buffer.from(jcs(named)), key).toString('hex') };
}

interface Parts extends JsonMembers {
  readonly [name: string]: Json;
}

function envelope(artifact: string, payload: JsonMembers, more: Parts = {}, by: Signer = ALICE): JsonMembers {
  return signed(
    {
      schema_version: 'cycles-evidence/v0.1',
      artifact_type: artifact,
      server_id: SERVER,
      signer_did: by.bytes.toString('hex'),
      issued_at_ms: ISSUED,
      payload: { [artifact]: payload },
      ...more,
    },
    by,
  );
}

function micro(amount: number, unit = 'USD_MICROCENTS'): JsonMembers {
  return { amount, unit };
}

const ASKED: JsonMembers = {
  idempotency_key: 'key-1',
  subject: { tenant: 'acme', agent: 'researcher' },
  action: { kind: 'model.call', name: 'gpt-x' },
  estimate: micro(2_000_000),
};

function reserve(response: JsonMembers = {}, more: Parts = {}, by: Signer = ALICE): JsonMembers {
  return envelope(
    'reserve',
    {
      request: { ...ASKED, ttl_ms: 30_000 },
      response: {
        decision: 'ALLOW',
        affected_scopes: ['tenant'],
        reservation_id: 'rsv-1',
        reserved: micro(2_000_000),
        ...response,
      },
    },
    more,
    by,
  );
}

function commit(charged = 1_750_000, released = 250_000, more: Parts = {}): JsonMembers {
  return envelope(
    'commit',
    {
      reservation_id: 'rsv-1',
      request: { idempotency_key: 'key-2', actual: micro(charged) },
      response: { status: 'COMMITTED', charged: micro(charged), released: micro(released) },
    },
    { issued_at_ms: ISSUED + 1_000, ...more },
  );
}

function release(more: Parts = {}): JsonMembers {
  return envelope(
    'release',
    {
      reservation_id: 'rsv-1',
      request: { idempotency_key: 'key-3', reason: 'not needed' },
      response: { status: 'RELEASED', released: micro(2_000_000) },
    },
    more,
  );
}

function refusal(): JsonMembers {
  return envelope('error', {
    endpoint: 'POST /v1/reservations',
    http_status: 409,
    request: ASKED,
    response: { error: 'BUDGET_EXCEEDED', message: 'no', request_id: 'req-1' },
  });
}

function jwks(change: Parts = {}, by: Signer = ALICE, ...more: JsonMembers[]): string {
  const x = by.bytes.toString('base64url');
  const jwk = { kty: 'OKP', crv: 'Ed25519', x, kid: 'k1', cycles_nbf_ms: ISSUED - 1, ...change };
  return JSON.stringify({ keys: [jwk, ...more] });
}

function did(kid = 'k1', server = SERVER): string {
  return `did:cycles:${createHash('sha256').update(server).digest('hex')}#${kid}`;
}

it('keeps amounts exactly, and says what was decided, executed and charged', async () => {
  const reading = readReceipts(cycles, [reserve(), commit(), refusal()], { keys: jwks() });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[3, 0, 0, 0], []]);
  expect(reading.claims.map(({ kind }) => kind)).toEqual(['evidence', 'evidence', 'evidence']);
  const facts = reading.claims.map((claim) => (claim.kind === 'evidence' ? claim.facts : {}));
  expect(facts).toContainEqual(
    expect.objectContaining({
      reservation_id: 'rsv-1',
      status: 'COMMITTED',
      amounts: {
        actual: { unit: 'usd', amount: { t: 'dec', m: '175', s: 4 } },
        charged: { unit: 'usd', amount: { t: 'dec', m: '175', s: 4 } },
        released: { unit: 'usd', amount: { t: 'dec', m: '25', s: 4 } },
      },
    }),
  );
  const seen = reading.observations.map(({ callIds, tool, decision, outcome, meters }) => ({
    callIds,
    tool,
    decision,
    outcome,
    meters: meters.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`),
  }));
  expect(seen).toEqual([
    { callIds: ['rsv-1', 'key-1'], tool: 'llm.gpt-x', decision: 'allow', outcome: undefined, meters: [] },
    {
      callIds: ['rsv-1', 'key-2'],
      tool: undefined,
      decision: undefined,
      outcome: 'unknown',
      meters: ['1 calls', '0.0175 usd'],
    },
    { callIds: ['key-1'], tool: 'llm.gpt-x', decision: 'deny', outcome: undefined, meters: [] },
  ]);
  const files = [jsonFile([reserve(), commit(), refusal()])];
  const plan = planImport(cycles, files, { aids: { keys: jsonFile(jwks(), 'keys') } });
  expect((await verifyPlan(plan)).verdict).toBe('ok');
  expect(plan.authority).toMatchObject({ grants: 0, actions: 0 });
});

it.each([
  ['TOKENS', 'tokens'],
  ['CREDITS', 'credits'],
  ['RISK_POINTS', 'risk_points'],
])('counts %s as %s', (unit, meter) => {
  const made = reserve({ reserved: micro(7, unit) });
  const [claim] = readReceipts(cycles, made, { keys: jwks() }).claims;
  expect(claim).toMatchObject({
    facts: { amounts: { reserved: { unit: meter, amount: { t: 'int', v: '7' } } } },
  });
});

it('tries a reservation without deciding anything', () => {
  const dry = envelope('reserve', {
    request: { ...ASKED, dry_run: true },
    response: { decision: 'DENY', affected_scopes: [], reason_code: 'BUDGET_EXCEEDED' },
  });
  const reading = readReceipts(cycles, dry, { keys: jwks() });
  expect([standingsOf(reading), reading.observations]).toEqual([[1, 0, 0, 0], []]);
});

it('tells a key that the server published from one that only the envelope names', () => {
  const bare = readReceipts(cycles, reserve());
  expect([standingsOf(bare), bare.findings.map(({ code }) => code)]).toEqual([[0, 1, 0, 0], ['KEY_STATED']]);
  expect(standingsOf(readReceipts(cycles, reserve(), { keys: ALICE.pem }))).toEqual([1, 0, 0, 0]);
  expect(errorsOf(readReceipts(cycles, reserve(), { keys: BOB.pem }))).toEqual(['SIGNATURE_INVALID']);
  const named = reserve({}, { signer_did: did() });
  expect(errorsOf(readReceipts(cycles, named))).toEqual(['KEY_UNKNOWN']);
  expect(standingsOf(readReceipts(cycles, named, { keys: jwks() }))).toEqual([1, 0, 0, 0]);
});

it('holds the signer that an envelope names to its server and to the key, where keys are pinned too', () => {
  const pinned = (signer_did: string) => {
    const reading = readReceipts(cycles, reserve({}, { signer_did }), { keys: ALICE.pem });
    return [standingsOf(reading), errorsOf(reading)];
  };
  expect(pinned(did())).toEqual([[1, 0, 0, 0], []]);
  const refused = [[0, 0, 0, 1], ['SIGNER_NOT_AUTHORIZED']];
  expect(pinned(did('k1', 'https://other.example/v1'))).toEqual(refused);
  expect(pinned(BOB.bytes.toString('hex'))).toEqual(refused);
});

const OTHER = { kty: 'OKP', crv: 'Ed25519', x: BOB.bytes.toString('base64url'), cycles_nbf_ms: 0 };
const NAMED = { signer_did: did() };

it.each<[string, JsonMembers, string, string[]]>([
  ['from its first millisecond', reserve(), jwks({ cycles_nbf_ms: ISSUED }), []],
  ['not before', reserve(), jwks({ cycles_nbf_ms: ISSUED + 1 }), ['SIGNER_NOT_AUTHORIZED']],
  ['until its last', reserve(), jwks({ cycles_exp_ms: ISSUED + 1 }), []],
  ['not at its end', reserve(), jwks({ cycles_exp_ms: ISSUED }), ['SIGNER_NOT_AUTHORIZED']],
  ['retired, where it was valid then', reserve(), jwks({ cycles_exp_ms: ISSUED + 1, status: 'retired' }), []],
  ['open where its end is null', reserve(), jwks({ cycles_exp_ms: null }), []],
  [
    'not without a beginning',
    reserve(),
    jwks({ cycles_nbf_ms: null }, ALICE, { ...OTHER, kid: 'k2' }),
    ['SIGNER_NOT_AUTHORIZED'],
  ],
  [
    'not for another algorithm',
    reserve(),
    jwks({ alg: 'ES256' }, ALICE, { ...OTHER, kid: 'k2' }),
    ['SIGNER_NOT_AUTHORIZED'],
  ],
  ['not one that the set lacks', reserve(), jwks({}, BOB), ['SIGNER_NOT_AUTHORIZED']],
  [
    'not of a set that names two alike',
    reserve({}, NAMED),
    jwks({}, ALICE, { ...OTHER, kid: 'k1' }),
    ['SIGNER_NOT_AUTHORIZED'],
  ],
  [
    'not one given twice',
    reserve(),
    jwks({}, ALICE, { ...OTHER, kid: 'k2', x: ALICE.bytes.toString('base64url') }),
    ['SIGNER_NOT_AUTHORIZED'],
  ],
  ['not under another name', reserve({}, { signer_did: did('k9') }), jwks(), ['SIGNER_NOT_AUTHORIZED']],
  [
    'not of another server',
    reserve({}, { signer_did: did('k1', 'https://budget.example/v1/') }),
    jwks(),
    ['SIGNER_NOT_AUTHORIZED'],
  ],
  ['and it must have signed', reserve({}, NAMED, BOB), jwks(), ['SIGNATURE_INVALID']],
])('takes a key of the set: %s', (_name, made, keys, codes) => {
  const reading = readReceipts(cycles, made, { keys });
  expect(errorsOf(reading)).toEqual(codes);
  expect(standingsOf(reading)).toEqual(codes.length === 0 ? [1, 0, 0, 0] : [0, 0, 0, 1]);
});

function changed(path: readonly string[], value: Json, from: JsonMembers = reserve()): JsonMembers {
  const [name, ...rest] = path;
  if (name === undefined) return value as JsonMembers;
  return { ...from, [name]: changed(rest, value, (from[name] ?? {}) as JsonMembers) };
}

const AT = ['payload', 'reserve'];

it.each<[string, JsonMembers, string]>([
  [
    'an amount that was changed',
    changed([...AT, 'response', 'reserved', 'amount'], 1),
    'EVIDENCE_ID_MISMATCH',
  ],
  ['another id', changed(['evidence_id'], '0'.repeat(64)), 'EVIDENCE_ID_MISMATCH'],
  [
    'a signature of another envelope',
    { ...reserve(), signature: commit()['signature']! },
    'SIGNATURE_INVALID',
  ],
  ['no signature', changed(['signature'], ''), 'ENVELOPE_SHAPE'],
  ['no id', changed(['evidence_id'], null), 'ENVELOPE_SHAPE'],
  ['a later version', changed(['schema_version'], 'cycles-evidence/v0.2'), 'ENVELOPE_SHAPE'],
  ['a member too many', signed({ ...reserve(), note: 'x' }), 'ENVELOPE_SHAPE'],
  ['a payload of another type', signed(changed(['artifact_type'], 'commit')), 'ENVELOPE_SHAPE'],
  ['two payloads', signed(changed(['payload', 'commit'], {})), 'ENVELOPE_SHAPE'],
  ['a negative amount', reserve({ reserved: micro(-1) }), 'ENVELOPE_SHAPE'],
  ['a part of an amount', reserve({ reserved: micro(0.5) }), 'ENVELOPE_SHAPE'],
  ['another unit', reserve({ reserved: micro(1, 'EUR') }), 'ENVELOPE_SHAPE'],
  ['caps without their decision', reserve({ caps: {} }), 'ENVELOPE_SHAPE'],
  ['their decision without caps', reserve({ decision: 'ALLOW_WITH_CAPS' }), 'ENVELOPE_SHAPE'],
  ['a live denial', reserve({ decision: 'DENY' }), 'ENVELOPE_SHAPE'],
  [
    'a subject of dimensions only',
    signed(changed([...AT, 'request', 'subject'], { dimensions: {} })),
    'ENVELOPE_SHAPE',
  ],
  ['what only the transport adds', reserve({ remaining_ttl_ms: 5 }), 'ENVELOPE_SHAPE'],
  ['an empty trace id', reserve({}, { trace_id: '' }), 'ENVELOPE_SHAPE'],
])('finds %s', (_name, made, code) => {
  const reading = readReceipts(cycles, made, { keys: jwks() });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[0, 0, 0, 1], [code]]);
  expect([reading.claims, reading.observations]).toEqual([[], []]);
});

it('refuses an amount that no double holds, as its signature is over another', () => {
  const text = JSON.stringify(reserve({ reserved: micro(9_007_199_254_740_992) }));
  const other = text.replace('9007199254740992', '9007199254740993');
  expect(errorsOf(readReceipts(cycles, other, { keys: jwks() }))).toEqual(['NUMBER_NOT_EXACT']);
});

it('tells of reservations that are settled twice, or otherwise than they were made, and verifies them all the same', () => {
  const codesOf = (...all: JsonMembers[]): string[] => {
    const reading = readReceipts(cycles, all, { keys: jwks() });
    expect(standingsOf(reading)).toEqual([all.length, 0, 0, 0]);
    return reading.findings.map(({ code }) => code);
  };
  expect(codesOf(reserve(), commit())).toEqual([]);
  expect(codesOf(commit())).toEqual(['RESERVATION_NOT_GIVEN']);
  expect(codesOf(reserve(), commit(), release({ issued_at_ms: ISSUED + 2_000 }))).toEqual(['SETTLED_TWICE']);
  expect(codesOf(reserve(), reserve({}, { issued_at_ms: ISSUED + 1 }))).toEqual(['RESERVATION_REPEATED']);
  expect(codesOf(reserve({}, { issued_at_ms: ISSUED + 9_000 }), commit())).toEqual(['SETTLED_BEFORE']);
  expect(codesOf(reserve(), commit(1_750_000, 1))).toEqual(['AMOUNTS_DIFFER']);
  expect(codesOf(reserve({ reserved: micro(5, 'TOKENS') }), commit())).toEqual(['UNIT_DIFFERS']);
  const elsewhere = { server_id: 'https://other.example' };
  expect(codesOf(reserve({}, elsewhere), commit())).toEqual(['RESERVATION_NOT_GIVEN']);
});

it('takes an envelope once, however often it is given', () => {
  const reading = readReceipts(cycles, [
    reserve(),
    reserve(),
    Object.fromEntries(Object.entries(reserve()).reverse()),
  ]);
  expect(reading.items.map(({ fate }) => fate)).toEqual(['evidence', 'repeated', 'repeated']);
});

it('is recognised, and holds for broken files', () => {
  expect(cycles.recognises(jsonFile(reserve()))).toBe(true);
  expect(cycles.recognises(jsonFile({ schema_version: '1' }))).toBe(false);
  const lines = [reserve(), commit(), release(), refusal()].map((each) => JSON.stringify(each)).join('\n');
  holdsForBrokenFiles(cycles, [jsonFile(`${lines}\n`, 'a')]);
});

it('pins the keys of a set that says no times, whatever ids it has them under', () => {
  const jwk = (by: Signer, kid: string) => ({
    kty: 'OKP',
    crv: 'Ed25519',
    kid,
    x: by.bytes.toString('base64url'),
  });
  const keys = JSON.stringify({ keys: [jwk(ALICE, 'k1'), jwk(BOB, 'k2')] });
  const bySigner = (by: Signer) => standingsOf(readReceipts(cycles, reserve({}, {}, by), { keys }));
  expect([bySigner(ALICE), bySigner(BOB), bySigner(MALLORY)]).toEqual([
    [1, 0, 0, 0],
    [1, 0, 0, 0],
    [0, 0, 1, 0],
  ]);
  // Whoever is named signs: another key of the set is no substitute.
  const named = reserve({}, { signer_did: ALICE.bytes.toString('hex') }, BOB);
  expect(errorsOf(readReceipts(cycles, named, { keys }))).toEqual(['SIGNATURE_INVALID']);
  const did = `did:cycles:${createHash('sha256').update(SERVER).digest('hex')}#k2`;
  expect(standingsOf(readReceipts(cycles, reserve({}, { signer_did: did }, BOB), { keys }))).toEqual([
    1, 0, 0, 0,
  ]);
});
