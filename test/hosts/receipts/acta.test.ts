/** Acta receipts: their two shapes, whose key counts and when, links, and what becomes of them. */

import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { expect, it } from 'vitest';
import { acta } from '../../../src/hosts/receipts/index.js';
import { encodeBase58 } from '../../../src/format/key/base58.js';
import { planImport } from '../../../src/hosts/shared/import.js';
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
import { changed } from './samples.js';

const KID = 'sb:issuer:alice';

const PAYLOAD: JsonMembers = {
  type: 'protectmcp:decision',
  tool_name: 'Bash',
  decision: 'allow',
  reason: 'policy_ok',
  request_id: 'req-1',
  issued_at: '2026-03-01T10:00:00.000Z',
  issuer_id: KID,
  spec: 'draft-farley-acta-signed-receipts-04',
};

function hex(text: string, { key }: Signer): string {
  return sign(null, Buffer.from(text), key).toString('hex');
}

function envelope(change: JsonMembers = {}, by: Signer = ALICE, kid = KID): JsonMembers {
  const payload = { ...PAYLOAD, ...change };
  return { payload, signature: { alg: 'EdDSA', kid, sig: hex(jcs(payload), by) } };
}

function flat(change: JsonMembers = {}, by: Signer = ALICE): JsonMembers {
  const receipt = {
    type: 'decision_receipt',
    timestamp: '2026-03-01T10:00:00Z',
    tool: 'Read',
    decision: 'deny',
    request_id: 'req-2',
    ...change,
  };
  return { ...receipt, signature: hex(jcs(receipt), by) };
}

/** Flat too, with what was decided in a payload. */
function structured(change: JsonMembers = {}, by: Signer = ALICE): JsonMembers {
  return flat(
    {
      v: 2,
      algorithm: 'ed25519',
      kid: KID,
      issuer: 'gateway',
      issued_at: '2026-03-01T10:00:00Z',
      payload: { tool: 'http.get', decision: 'allow', request_id: 'req-3' },
      ...change,
    },
    by,
  );
}

function jwks(change: JsonMembers = {}, by: Signer = ALICE): string {
  const jwk = { kty: 'OKP', crv: 'Ed25519', kid: KID, x: by.bytes.toString('base64url'), use: 'sig' };
  return JSON.stringify({ keys: [{ ...jwk, ...change }] });
}

function linkTo(value: Json, prefix = 'sha256:'): string {
  return `${prefix}${createHash('sha256').update(jcs(value)).digest('hex')}`;
}

function codesOf(value: unknown, keys = jwks()): string[] {
  return readReceipts(acta, value, { keys })
    .findings.filter(({ severity }) => severity !== 'info')
    .map(({ code }) => code);
}

it('takes both shapes, each signed over its own bytes, as evidence of a decision and of nothing more', async () => {
  const reading = readReceipts(acta, [envelope(), flat(), structured()], { keys: jwks() });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[3, 0, 0, 0], []]);
  expect(reading.claims.map((claim) => claim.kind)).toEqual(['evidence', 'evidence', 'evidence']);
  expect(reading.observations).toMatchObject([
    { callIds: ['req-1'], tool: 'Bash', decision: 'allow' },
    { callIds: ['req-2'], tool: 'Read', decision: 'deny' },
    { callIds: ['req-3'], tool: 'http.get', decision: 'allow' },
  ]);
  for (const seen of reading.observations) expect(seen).not.toHaveProperty('outcome');
  const files = [jsonFile([envelope(), flat(), structured()])];
  const plan = planImport(acta, files, { aids: { keys: jsonFile(jwks(), 'keys') } });
  expect((await verifyPlan(plan)).verdict).toBe('ok');
  expect(plan.events.map(({ event }) => event.event_type)).toEqual(Array(3).fill('x.acta.decision'));
});

it('reads that a tool ran only from how long it ran, and what was spent exactly', () => {
  const ran = readReceipts(acta, envelope({ tool_duration_ms: 12 }), { keys: jwks() });
  expect(ran.observations).toMatchObject([
    { outcome: 'unknown', meters: [{ unit: 'calls' }, { unit: 'time.ms', amount: { t: 'int', v: '12' } }] },
  ]);
  const spent = envelope({ type: 'scopeblind:spending_authority', amount: 99.5, currency: 'USD' });
  const [claim] = readReceipts(acta, spent, { keys: jwks() }).claims;
  expect(claim).toMatchObject({
    type: 'spending',
    facts: { amount: { unit: 'usd', amount: { t: 'dec', m: '995', s: 1 } } },
  });
  const held = readReceipts(acta, envelope({ decision: 'require_approval' }), { keys: jwks() });
  expect(held.observations[0]).not.toHaveProperty('decision');
});

it('takes no key from a receipt', () => {
  const carried = [
    envelope({ public_key: MALLORY.bytes.toString('hex') }, MALLORY),
    structured({ public_key: MALLORY.bytes.toString('hex') }, MALLORY),
    envelope(
      { verification_jwk: { kty: 'OKP', crv: 'Ed25519', x: MALLORY.bytes.toString('base64url') } },
      MALLORY,
    ),
  ];
  for (const receipt of carried) {
    const bare = readReceipts(acta, receipt);
    expect([standingsOf(bare), bare.findings.map(({ code }) => code)]).toEqual([
      [0, 0, 1, 0],
      ['EMBEDDED_KEY', 'KEY_UNKNOWN'],
    ]);
    expect(bare.claims).toEqual([]);
    expect(errorsOf(readReceipts(acta, receipt, { keys: BOB.pem }))).toEqual(['SIGNATURE_INVALID']);
    expect(standingsOf(readReceipts(acta, receipt, { keys: MALLORY.pem }))).toEqual([1, 0, 0, 0]);
  }
  const another = envelope({ public_key: MALLORY.bytes.toString('hex') });
  expect(codesOf(another)).toEqual(['EMBEDDED_KEY_DIFFERS']);
});

it('knows keys by their id, and says where none is known', () => {
  expect(codesOf(envelope(), jwks({ kid: 'sb:issuer:other' }))).toEqual(['KEY_UNKNOWN']);
  expect(codesOf(envelope(), ALICE.bytes.toString('hex'))).toEqual([]);
  expect(
    codesOf(
      envelope(),
      JSON.stringify({ publicKey: ALICE.bytes.toString('hex'), privateKey: '1'.repeat(64) }),
    ),
  ).toEqual([]);
  expect(codesOf(envelope({}, MALLORY))).toEqual(['SIGNATURE_INVALID']);
  const among = JSON.stringify({
    keys: [{ kty: 'RSA', n: 'x', e: 'AQAB' }, ...(JSON.parse(jwks()) as { keys: [] }).keys],
  });
  expect(codesOf(envelope(), among)).toEqual([]);
});

it.each<[string, JsonMembers, string[]]>([
  ['from its first instant', { valid_from: '2026-03-01T10:00:00Z' }, []],
  ['not before', { valid_from: '2026-03-01T10:00:00.001Z' }, ['KEY_OUTSIDE_WINDOW']],
  ['not at its end', { valid_until: '2026-03-01T12:00:00+02:00' }, ['KEY_OUTSIDE_WINDOW']],
  ['until then', { valid_until: '2026-03-01T10:00:01Z' }, []],
  ['not by a bound without an offset', { valid_until: '2026-04-01T10:00:00' }, ['WINDOW_NOT_APPLICABLE']],
  ['not by a bound that is null', { valid_until: null }, ['WINDOW_NOT_APPLICABLE']],
  [
    'not by an empty window',
    { valid_from: '2026-03-01T10:00:00Z', valid_until: '2026-03-01T10:00:00Z' },
    ['WINDOW_NOT_APPLICABLE'],
  ],
])('holds a key to its window: %s', (_name, window, codes) => {
  expect(codesOf(envelope(), jwks(window))).toEqual(codes);
});

it('says of a key without a window that it was not looked at', () => {
  const reading = readReceipts(acta, [envelope(), envelope({ request_id: 'req-9' })], { keys: jwks() });
  expect(reading.findings.map(({ code, severity }) => `${severity} ${code}`)).toEqual([
    'info WINDOW_NOT_STATED',
  ]);
});

const { payload, signature } = envelope() as { payload: JsonMembers; signature: JsonMembers };
const sig = String(signature['sig']);

it.each<[string, Json, string]>([
  ['a changed payload', { payload: { ...payload, decision: 'deny' }, signature }, 'SIGNATURE_INVALID'],
  ['a member beside the two', { ...envelope(), extra: 1 }, 'SHAPE_UNKNOWN'],
  [
    'one beside the three of the signature',
    { payload, signature: { ...signature, note: 'x' } },
    'SHAPE_UNKNOWN',
  ],
  ['an envelope signed as a flat one', structured({ v: null, type: null }), 'SHAPE_UNKNOWN'],
  [
    'an unknown algorithm',
    { payload, signature: { ...signature, alg: 'ML-DSA-65' } },
    'ALGORITHM_UNSUPPORTED',
  ],
  ['none', { payload, signature: { ...signature, alg: 'none' } }, 'ALGORITHM_UNSUPPORTED'],
  ['the name of another', { payload, signature: { ...signature, alg: 'ES256' } }, 'SIGNATURE_INVALID'],
  ['capital digits', { payload, signature: { ...signature, sig: sig.toUpperCase() } }, 'SIGNATURE_ENCODING'],
  ['half a signature', { payload, signature: { ...signature, sig: sig.slice(64) } }, 'SIGNATURE_ENCODING'],
  ['no signature', { payload }, 'SIGNATURE_MISSING'],
  ['a signature in what is signed', envelope({ signature: null }), 'SIGNATURE_IN_PAYLOAD'],
  ['another issuer', envelope({ issuer_id: 'sb:issuer:bob' }), 'ISSUER_MISMATCH'],
  ['no time of issue', envelope({ issued_at: null }), 'FIELD_MISSING'],
  ['no type', envelope({ type: null }), 'FIELD_MISSING'],
])('finds %s', (_name, receipt, code) => {
  const reading = readReceipts(acta, receipt, { keys: jwks() });
  const isOpen = ['SHAPE_UNKNOWN', 'SIGNATURE_MISSING', 'ALGORITHM_UNSUPPORTED'].includes(code);
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([isOpen ? [0, 0, 1, 0] : [0, 0, 0, 1], [code]]);
  expect([reading.claims, reading.observations]).toEqual([[], []]);
});

it('writes canonical forms as RFC 8785 has them', () => {
  const strange = { 2: 2, 10: 10, '\u20ac': 1, '\ud83d\ude00': 2, '\ufb33': 3, n: 1e21, m: 0.000001, z: -0 };
  expect(codesOf(envelope({ nested: strange }))).toEqual([]);
  const text = JSON.stringify(envelope({ nested: { a: 9_007_199_254_740_992 } }));
  expect(errorsOf(readReceipts(acta, text.replace('740992', '740993'), { keys: jwks() }))).toEqual([
    'NUMBER_NOT_EXACT',
  ]);
});

it('verifies P-256, where the key is one', () => {
  const { privateKey: key, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const { x, y } = publicKey.export({ format: 'jwk' });
  const es = sign('sha256', Buffer.from(jcs(PAYLOAD)), { key, dsaEncoding: 'ieee-p1363' }).toString('hex');
  const receipt = { payload: PAYLOAD, signature: { alg: 'ES256', kid: KID, sig: es } };
  const keys = JSON.stringify({ keys: [{ kty: 'EC', crv: 'P-256', kid: KID, x: x!, y: y! }] });
  expect(codesOf(receipt, keys)).toEqual([]);
  expect(codesOf(receipt)).toEqual(['SIGNATURE_INVALID']);
});

function chain(length: number, issuer: Signer = ALICE): JsonMembers[] {
  const all: JsonMembers[] = [];
  for (let i = 1; i <= length; i++) {
    const before = all.at(-1);
    const link = before === undefined ? {} : { previousReceiptHash: linkTo(before) };
    all.push(envelope({ request_id: `req-${i}`, ...link }, issuer));
  }
  return all;
}

it('follows links over whole receipts, in the order of the file', () => {
  const [one, two, three, four] = chain(4) as [JsonMembers, JsonMembers, JsonMembers, JsonMembers];
  expect(codesOf([one, two, three, four])).toEqual([]);
  expect(codesOf([one, three, four])).toEqual(['CHAIN_LINK']);
  expect(codesOf([one, three, two, four])).toEqual(['CHAIN_ORDER']);
  expect(codesOf([two, three])).toEqual(['CHAIN_PART']);
  const other = envelope({ request_id: 'req-x', previousReceiptHash: linkTo(one) });
  expect(codesOf([one, two, other])).toEqual(['CHAIN_FORK']);
  const elsewhere = chain(3)
    .slice(2)
    .map((receipt) => receipt);
  const foreign = envelope({
    request_id: 'req-y',
    previousReceiptHash: linkTo(envelope({ request_id: 'gone' })),
  });
  expect(codesOf([one, two, ...elsewhere, foreign])).toEqual(['CHAIN_LINK']);
  const signedAgain = {
    ...one,
    signature: { ...(one['signature'] as JsonMembers), kid: KID, sig: hex(jcs(one['payload']), MALLORY) },
  };
  expect(codesOf([signedAgain, two])).toEqual(['SIGNATURE_INVALID', 'CHAIN_LINK']);
});

it.each<[string, Json, string[]]>([
  ['null', null, ['LINK_MALFORMED']],
  ['an empty text', '', ['LINK_MALFORMED']],
  ['another algorithm', linkTo(envelope(), 'sha512:'), ['LINK_MALFORMED']],
  ['capital digits', linkTo(envelope()).toUpperCase(), ['LINK_MALFORMED']],
  ['digits alone', linkTo(envelope(), ''), []],
  ['a digest of the payload alone', linkTo(PAYLOAD), ['CHAIN_LINK']],
])('reads links: %s', (_name, link, codes) => {
  expect(codesOf([envelope(), envelope({ request_id: 'req-2', previousReceiptHash: link })])).toEqual(codes);
});

it('takes files of one receipt each as one log', () => {
  const one = envelope({ request_id: 'one' });
  const two = envelope({ request_id: 'two', previousReceiptHash: linkTo(one) });
  const three = envelope({ request_id: 'three', previousReceiptHash: linkTo(two) });
  const other = envelope({ request_id: 'other' });
  const read = (...values: JsonMembers[]) => {
    const files = values.map((value, index) => jsonFile(value, `${index}.json`));
    const reading = acta.read(files, { aids: { keys: jsonFile(jwks(), 'keys') } });
    return [standingsOf(reading), errorsOf(reading)];
  };
  expect(read(one, two, three)).toEqual([[3, 0, 0, 0], []]);
  expect(read(one, three)).toEqual([[1, 0, 0, 1], ['CHAIN_LINK']]);
  expect(read(other, two)).toEqual([[1, 0, 0, 1], ['CHAIN_LINK']]);
  expect(read(two)).toEqual([[1, 0, 0, 0], []]);
});

it('sees what is missing between two files of one issuer, and lets another begin anywhere', () => {
  const [one, two, three, four, five] = chain(5);
  const read = (...lists: (JsonMembers | undefined)[][]) => {
    const files = lists.map((list, index) => jsonFile(list, `${index}.json`));
    const keys = jsonFile(ALICE.pem, 'keys');
    const reading = acta.read(files, { aids: { keys } });
    const codes = reading.findings.filter(({ severity }) => severity !== 'info').map(({ code }) => code);
    return [standingsOf(reading), codes];
  };
  expect(read([one, two], [three, four, five])).toEqual([[5, 0, 0, 0], []]);
  expect(read([one, two], [four, five])).toEqual([[3, 0, 0, 1], ['CHAIN_GAP']]);
  const other = envelope({ issuer_id: 'sb:issuer:else' }, ALICE, 'sb:issuer:else');
  const next = envelope(
    { issuer_id: 'sb:issuer:else', previousReceiptHash: linkTo(other) },
    ALICE,
    'sb:issuer:else',
  );
  const last = envelope(
    { issuer_id: 'sb:issuer:else', previousReceiptHash: linkTo(next) },
    ALICE,
    'sb:issuer:else',
  );
  expect(read([one, two], [next, last])).toEqual([[4, 0, 0, 0], ['CHAIN_PART']]);
  // What nobody vouches for holds up nothing.
  const forged = chain(3, MALLORY);
  expect(read(forged, [four, five])[1]).toContain('CHAIN_PART');
});

it('says of each chain that its end was not checked', () => {
  const [a, b] = [chain(3), chain(2, BOB)];
  const reading = readReceipts(acta, [...a, ...b], { keys: jwks() });
  expect(reading.findings.filter(({ code }) => code === 'CHAIN_OPEN').length).toBe(2);
});

it('takes null for no link where an early revision is named, and nowhere else', () => {
  const spec = 'draft-farley-acta-signed-receipts-01';
  const first = envelope({ spec, previousReceiptHash: null });
  const second = envelope({ spec, request_id: 'req-2', previousReceiptHash: linkTo(first) });
  const reading = readReceipts(acta, [first, second], { keys: jwks() });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[2, 0, 0, 0], []]);
  expect(reading.findings.map(({ code }) => code)).toContain('LINK_EMPTY');
  expect(codesOf(envelope({ previousReceiptHash: null }))).toEqual(['LINK_MALFORMED']);
});

it.each([
  ['parent_receipt_hash', null],
  ['previous_receipt_hash', ''],
])('follows the links of flat receipts by the name %s', (name, none) => {
  const receipts: JsonMembers[] = [];
  for (let n = 1; n <= 4; n++) {
    const before = receipts.at(-1);
    const link = before === undefined ? none : linkTo(before);
    receipts.push(flat({ receipt_id: `r-${n}`, [name]: link }));
  }
  const [one, two, three, four] = receipts as [JsonMembers, JsonMembers, JsonMembers, JsonMembers];
  expect(codesOf([one, two, three, four], ALICE.pem)).toEqual([]);
  expect(codesOf([one, three, four], ALICE.pem)).toEqual(['CHAIN_LINK']);
  expect(codesOf([one, three, two, four], ALICE.pem)).toEqual(['CHAIN_ORDER']);
  expect(codesOf([two, three], ALICE.pem)).toEqual(['CHAIN_PART']);
  expect(codesOf([one, flat({ receipt_id: 'r-x', [name]: 'sha256:00' })], ALICE.pem)).toEqual([
    'LINK_MALFORMED',
  ]);
});

it('reads receipts that DefenseClaw signed before it added the key, and holds that key to the signer', () => {
  const body = {
    receipt_id: 'dc-1',
    receipt_type: 'defenseclaw:decision',
    tool_name: 'claw:write_file',
    decision: 'deny',
    policy_id: 'production',
    timestamp: '2026-03-01T10:00:00Z',
    previous_receipt_hash: '',
  };
  const claw = (public_key: string, change: JsonMembers = {}) => ({
    ...body,
    ...change,
    signature: hex(jcs(body), ALICE),
    public_key,
  });
  const own = ALICE.bytes.toString('hex');
  expect(codesOf(claw(own), ALICE.pem)).toEqual([]);
  expect(codesOf(claw(MALLORY.bytes.toString('hex')), ALICE.pem)).toEqual(['EMBEDDED_KEY_DIFFERS']);
  expect(codesOf(claw(own, { decision: 'allow' }), ALICE.pem)).toEqual(['SIGNATURE_INVALID']);
  expect(codesOf(claw(own), MALLORY.pem)).toEqual(['SIGNATURE_INVALID']);
  // No signature covers the member: nothing but the one spelling of the key may be in it.
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: ALICE.bytes.toString('base64url') };
  for (const other of [own.toUpperCase(), `${own} `, ALICE.pem, JSON.stringify(jwk), jwk, [own], 7, null]) {
    const carried = { ...claw(own), public_key: other };
    expect(codesOf(carried, ALICE.pem)).toEqual(['SIGNATURE_INVALID']);
  }
  // The key alone proves nothing, as ever.
  expect(standingsOf(readReceipts(acta, claw(own)))).toEqual([0, 0, 1, 0]);
  // Other flat receipts are signed with the key in them.
  const rest = changed(body, ['previous_receipt_hash']);
  const other = { ...rest, signature: hex(jcs(rest), ALICE), public_key: own };
  expect(codesOf(other, ALICE.pem)).toEqual(['SIGNATURE_INVALID']);
});

it('leaves the place in a chain to the receipt that stands best, and says whose it follows', () => {
  const keys = JSON.stringify({ gateway: ALICE.pem, other: BOB.pem });
  const first = flat({ issuer: 'gateway', receipt_id: 'r-1' });
  const next = { issuer: 'gateway', receipt_id: 'r-2', parent_receipt_hash: linkTo(first) };
  const forged = { ...flat({ ...next, receipt_id: 'r-3' }), decision: 'allow' };
  const others = flat({ ...next, receipt_id: 'r-4', issuer: 'other' }, BOB);
  const unknown = flat({ ...next, receipt_id: 'r-5', issuer: 'nobody' }, MALLORY);
  for (const [receipt, codes] of [
    [forged, ['SIGNATURE_INVALID', 'CHAIN_FORK']],
    [others, ['LINK_TO_OTHER_ISSUER', 'CHAIN_FORK']],
    [unknown, ['KEY_UNKNOWN', 'LINK_TO_OTHER_ISSUER', 'CHAIN_FORK']],
  ] as const)
    for (const order of [
      [first, receipt, flat(next)],
      [first, flat(next), receipt],
    ]) {
      expect(codesOf(order, keys)).toEqual(codes);
      expect(standingsOf(readReceipts(acta, order, { keys }))).toEqual([2, 0, 0, 1]);
    }
  expect(codesOf([first, others], keys)).toEqual(['LINK_TO_OTHER_ISSUER']);
});

it('takes no key of somebody else for an issuer whose own key was given, whatever id it is named by', () => {
  const keys = JSON.stringify({ gateway: ALICE.pem, [KID]: BOB.pem });
  expect(codesOf(flat({ issuer: 'gateway', kid: KID }, BOB), keys)).toEqual(['SIGNATURE_INVALID']);
  expect(codesOf(flat({ issuer: 'gateway', kid: KID }), keys)).toEqual([]);
});

it('leaves undecided what is of no known shape, whatever its link is', () => {
  const carried = envelope({ public_key: ALICE.bytes.toString('hex'), previousReceiptHash: null });
  const reading = readReceipts(acta, { _meta: {}, ...carried }, { keys: jwks() });
  expect(standingsOf(reading)).toEqual([0, 0, 1, 0]);
  expect(reading.findings.map(({ code }) => code)).toEqual(['EMBEDDED_KEY', 'SHAPE_UNKNOWN']);
});

it('holds a payload to its own type', () => {
  expect(codesOf(envelope({ decision: 'perhaps' }))).toEqual(['MALFORMED']);
  expect(codesOf(envelope({ tool_name: '' }))).toEqual(['MALFORMED']);
  expect(codesOf(envelope({ type: 'protectmcp:restraint' }))).toEqual(['MALFORMED', 'MALFORMED']);
  expect(codesOf(envelope({ type: 'acme:decision', decision: 'perhaps' }))).toEqual([]);
});

it('leaves an id to the receipt that is verified, wherever it is', () => {
  const genuine = envelope({ receipt_id: 'r1' });
  const forged = envelope({ receipt_id: 'r1', issuer_id: 'other', tool_name: 'Write' }, MALLORY, 'other');
  for (const receipts of [
    [forged, genuine],
    [genuine, forged],
  ]) {
    const reading = readReceipts(acta, receipts, { keys: jwks(), unverified: true });
    expect(standingsOf(reading)).toEqual([1, 0, 0, 1]);
    expect(reading.observations).toMatchObject([{ tool: 'Bash' }]);
  }
});

it('reads types of their own, and the algorithm by either name', () => {
  const grant = { v: 1, type: 'delegation:grant', timestamp: '2026-03-01T10:00:00Z' };
  const signed = { ...grant, signature: hex(jcs(grant), ALICE) };
  const reading = readReceipts(acta, signed, { keys: ALICE.pem });
  expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  expect(reading.claims).toMatchObject([{ kind: 'evidence', type: 'receipt' }]);
  expect(acta.recognises(jsonFile(signed))).toBe(true);
  const other = readReceipts(acta, flat({ alg: 'ML-DSA-65' }), { keys: ALICE.pem });
  expect([standingsOf(other), errorsOf(other)]).toEqual([[0, 0, 1, 0], ['ALGORITHM_UNSUPPORTED']]);
});

it('tells of a key that the key set has as revoked', () => {
  const at = (revoked_at: string) => codesOf(envelope(), jwks({ revoked_at }));
  expect(at('2026-03-01T10:00:00Z')).toEqual(['KEY_REVOKED']);
  expect(at('2026-03-01T10:00:00.001Z')).toEqual([]);
});

it('knows the key that a receipt carries in base58 too', () => {
  const carries = (key: Uint8Array) => codesOf(envelope({ public_key: encodeBase58(key) }));
  expect(carries(ALICE.bytes)).toEqual([]);
  expect(carries(BOB.bytes)).toEqual(['EMBEDDED_KEY_DIFFERS']);
});

it('takes the links of payloads after receipts of earlier revisions', () => {
  const old = envelope({ spec: 'draft-farley-acta-signed-receipts-02' });
  const next = envelope({ request_id: 'req-2', previousReceiptHash: linkTo(old['payload']) });
  const reading = readReceipts(acta, [old, next], { keys: jwks() });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[2, 0, 0, 0], []]);
  expect(codesOf([old, next])).toEqual(['LINK_OF_PAYLOAD']);
});

it('is recognised, and holds for broken files', () => {
  for (const each of [envelope(), flat(), structured()]) expect(acta.recognises(jsonFile(each))).toBe(true);
  expect(acta.recognises(jsonFile({ '@version': 'EP-RECEIPT-v1', payload: {}, signature: {} }))).toBe(false);
  const lines = [...chain(3), flat(), structured()].map((each) => JSON.stringify(each)).join('\n');
  holdsForBrokenFiles(acta, [jsonFile(`${lines}\n`, 'a')]);
});
