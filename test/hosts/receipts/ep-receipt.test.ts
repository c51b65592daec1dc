/** EP receipts: what holds, what does not, and what becomes of both. */

import { expect, it } from 'vitest';
import { createHash } from 'node:crypto';
import { planImport } from '../../../src/hosts/shared/import.js';
import { epReceipt } from '../../../src/hosts/receipts/index.js';
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
  signText,
  standingsOf,
} from './kit.js';

const PAYLOAD: JsonMembers = {
  receipt_id: 'ep_1',
  issuer: 'ep:org:acme',
  issued_at: '2026-03-01T10:00:00Z',
  claim: { action: 'payment.release', outcome: 'allow_with_signoff', approver: 'operator:cfo' },
  context: { amount: 50_000, currency: 'USD', tags: ['a', 'ü'] },
};

function made(payload: JsonMembers = PAYLOAD, by: Signer = ALICE): JsonMembers {
  const value = signText(by, jcs(payload));
  return { '@version': 'EP-RECEIPT-v1', payload, signature: { algorithm: 'Ed25519', value } };
}

/** The key as the protocol's own tools write it. */
function spkiOf({ bytes }: Signer): string {
  return Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes]).toString('base64url');
}

function hashed(...parts: readonly (string | number)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(typeof part === 'number' ? Buffer.of(part) : part);
  return hash.digest('hex');
}

function anchored(change: JsonMembers = {}, payload = PAYLOAD): JsonMembers {
  const leaf = hashed(0, jcs(payload));
  const [one, other] = [hashed('one'), hashed('other')];
  const root = hashed(1, other, hashed(1, leaf, one));
  const merkle_proof = [
    { hash: one, position: 'right' },
    { hash: other, position: 'left' },
  ];
  const anchor = { alg: 'EP-MERKLE-v2', leaf_hash: leaf, merkle_proof, merkle_root: root, ...change };
  return { ...made(payload), anchor };
}

const keys = ALICE.pem;

it('takes what a given key signed as evidence, whatever the order of members', async () => {
  const { payload, ...rest } = made() as { payload: JsonMembers };
  const backwards = { ...rest, payload: Object.fromEntries(Object.entries(payload).reverse()) };
  for (const document of [made(), backwards]) {
    const reading = readReceipts(epReceipt, document, { keys });
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
    expect(reading.claims).toMatchObject([
      {
        kind: 'evidence',
        id: 'receipt:ep_1',
        occurredAt: '2026-03-01T10:00:00Z',
        facts: {
          outcome: 'allow_with_signoff',
          approver: 'operator:cfo',
          action: 'payment.release',
          signature: { standing: 'verified' },
        },
      },
    ]);
    expect(reading.observations).toMatchObject([
      { callIds: ['ep_1'], tool: 'payment.release', decision: 'allow', meters: [] },
    ]);
    expect(reading.observations[0]).not.toHaveProperty('outcome');
  }
  const plan = planImport(epReceipt, [jsonFile(made())], { aids: { keys: jsonFile(keys, 'keys') } });
  const { report } = { report: await verifyPlan(plan) };
  expect(report.verdict).toBe('ok');
  expect(plan.events.map(({ event }) => event.event_type)).toEqual(['x.ep-receipt.receipt']);
});

it('knows the key in the forms in which the protocol gives it', () => {
  const published = {
    version: '1.1',
    operator_signing_keys: { 'ep-signing-key-1': { public_key: spkiOf(ALICE), algorithm: 'Ed25519' } },
    keys: { someone: { public_key: spkiOf(BOB), algorithm: 'Ed25519' } },
    historical_keys: { someone: [{ public_key: spkiOf(MALLORY), algorithm: 'Ed25519' }] },
  };
  for (const form of [spkiOf(ALICE), JSON.stringify(published), `ep:org:acme ${spkiOf(ALICE)}`]) {
    expect(standingsOf(readReceipts(epReceipt, made(), { keys: form }))).toEqual([1, 0, 0, 0]);
  }
  const other = readReceipts(epReceipt, made(PAYLOAD, MALLORY), { keys: JSON.stringify(published) });
  expect(errorsOf(other)).toEqual(['SIGNATURE_INVALID']);
  const own = made({ ...PAYLOAD, issuer: 'someone' }, MALLORY);
  expect(standingsOf(readReceipts(epReceipt, own, { keys: JSON.stringify(published) }))).toEqual([
    1, 0, 0, 0,
  ]);
});

it('calls nothing verified without a key, and says of a key that a receipt brings who chose it', () => {
  const bare = readReceipts(epReceipt, made());
  expect([standingsOf(bare), errorsOf(bare), bare.claims]).toEqual([[0, 0, 1, 0], ['KEY_UNKNOWN'], []]);
  const asked = readReceipts(epReceipt, made(), { unverified: true });
  expect([errorsOf(asked), asked.claims.map(({ id }) => id)]).toEqual([[], ['unverified:ep_1']]);
  const brought = { ...made(PAYLOAD, MALLORY), public_key: spkiOf(MALLORY) };
  const own = readReceipts(epReceipt, brought);
  expect([standingsOf(own), own.findings.map(({ code }) => code)]).toEqual([[0, 1, 0, 0], ['KEY_STATED']]);
  expect(own.claims.map(({ id }) => id)).toEqual(['own-key:ep_1']);
  const against = readReceipts(epReceipt, brought, { keys });
  expect([standingsOf(against), errorsOf(against)]).toEqual([[0, 0, 0, 1], ['SIGNATURE_INVALID']]);
});

const { payload, signature } = made() as { payload: JsonMembers; signature: JsonMembers };
const longer = Array.from({ length: 21 }, () => ({ hash: hashed('x'), position: 'left' }));

it.each<[string, Json, string]>([
  ['a changed payload', { ...made(), payload: { ...payload, receipt_id: 'ep_2' } }, 'SIGNATURE_INVALID'],
  [
    'a changed member deep in it',
    { ...made(), payload: { ...payload, context: { amount: 50_001, currency: 'USD', tags: ['a', 'ü'] } } },
    'SIGNATURE_INVALID',
  ],
  [
    'another normal form of its text',
    {
      ...made(),
      payload: { ...payload, context: { amount: 50_000, currency: 'USD', tags: ['a', 'u\u0308'] } },
    },
    'SIGNATURE_INVALID',
  ],
  ['no signature', { '@version': 'EP-RECEIPT-v1', payload }, 'PROOF_MISSING'],
  ['an empty one', { ...made(), signature: { ...signature, value: '' } }, 'PROOF_MISSING'],
  ['no algorithm', { ...made(), signature: { value: signature['value']! } }, 'PROOF_MISSING'],
  [
    'another algorithm',
    { ...made(), signature: { ...signature, algorithm: 'none' } },
    'ALGORITHM_UNSUPPORTED',
  ],
  [
    'a padded signature',
    { ...made(), signature: { ...signature, value: `${String(signature['value'])}==` } },
    'SIGNATURE_ENCODING',
  ],
  ['a short one', { ...made(), signature: { ...signature, value: 'bm90' } }, 'SIGNATURE_ENCODING'],
  ['a signature of another artifact', { ...made(), '@version': 'EP-ATTRIBUTION-v1' }, 'VERSION_UNSUPPORTED'],
  ['a later version', { ...made(), '@version': 'EP-RECEIPT-v2' }, 'VERSION_UNSUPPORTED'],
  ['an amount that is no whole number', made({ ...PAYLOAD, context: { amount: 0.5 } }), 'NUMBER_NOT_SAFE'],
  ['one beyond the safe ones', made({ ...PAYLOAD, context: { amount: 2 ** 53 } }), 'NUMBER_NOT_SAFE'],
  ['an unbound anchor', anchored({ leaf_hash: hashed('y') }), 'ANCHOR_UNBOUND'],
  ['an anchor of the earlier kind', anchored({ alg: null }), 'ANCHOR_LEGACY'],
  ['an anchor with another root', anchored({ merkle_root: hashed('z') }), 'ANCHOR_MISMATCH'],
  ['an anchor with too long a path', anchored({ merkle_proof: longer }), 'ANCHOR_MISMATCH'],
  ['an anchor of which a part is gone', anchored({ merkle_root: null }), 'ANCHOR_INCOMPLETE'],
  [
    'the anchor of another receipt',
    { ...made({ ...PAYLOAD, receipt_id: 'ep_9' }), anchor: anchored()['anchor']! },
    'ANCHOR_UNBOUND',
  ],
])('finds %s', (_name, document, code) => {
  const reading = readReceipts(epReceipt, document, { keys });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[0, 0, 0, 1], [code]]);
  expect([reading.claims, reading.observations]).toEqual([[], []]);
});

it('reads the text of numbers, which a signature over doubles does not tell apart', () => {
  const text = JSON.stringify(made()).replace('50000', '50000.000000000000000001');
  expect(errorsOf(readReceipts(epReceipt, text, { keys }))).toEqual(['NUMBER_NOT_SAFE']);
  for (const same of ['5e4', '50000.0']) {
    const reading = readReceipts(epReceipt, JSON.stringify(made()).replace('50000', same), { keys });
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  }
  const twice = JSON.stringify(made()).replace('"payload":{', '"payload":{"receipt_id":"ep_0",');
  expect(errorsOf(readReceipts(epReceipt, twice, { keys }))).toEqual(['DUPLICATE_KEY']);
});

it('takes an anchor that leads from this payload to its root, and keeps the root', () => {
  const reading = readReceipts(epReceipt, anchored(), { keys });
  expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  expect(reading.claims[0]).toMatchObject({
    facts: { anchor_root: expect.stringMatching(/^[0-9a-f]{64}$/) },
  });
});

it('takes receipts of a bundle, each once, and no second one of an id', () => {
  const bundle = {
    '@version': 'EP-BUNDLE-v1',
    documents: [made(), made(), made({ ...PAYLOAD, subject: 'other' })],
  };
  const reading = readReceipts(epReceipt, bundle, { keys });
  expect([standingsOf(reading), errorsOf(reading)]).toEqual([[1, 0, 0, 1], ['ID_REUSED']]);
  expect(reading.items.map(({ fate }) => fate)).toEqual(['evidence', 'repeated', 'dropped']);
});

it('verifies what states no time, and needs one to record it', () => {
  const timeless = Object.fromEntries(Object.entries(PAYLOAD).filter(([name]) => name !== 'issued_at'));
  const reading = readReceipts(epReceipt, made(timeless), { keys });
  expect([standingsOf(reading), reading.claims]).toEqual([[1, 0, 0, 0], []]);
  expect(reading.items).toMatchObject([{ fate: 'dropped', reason: 'TIME_NOT_STATED' }]);
});

it('is recognised, and holds for broken files', () => {
  expect(epReceipt.recognises(jsonFile(made()))).toBe(true);
  expect(epReceipt.recognises(jsonFile({ payload: {}, signature: {} }))).toBe(false);
  holdsForBrokenFiles(epReceipt, [jsonFile(made(), 'a'), jsonFile(anchored(), 'b')]);
});
