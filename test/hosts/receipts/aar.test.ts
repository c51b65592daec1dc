/** Agent Action Receipts: what their rules accept, what they refuse, and what comes of each. */

import { describe, expect, it } from 'vitest';
import { aar } from '../../../src/hosts/receipts/index.js';
import {
  ALICE,
  BOB,
  errorsOf,
  type Json,
  jcs,
  type JsonMembers,
  jsonFile,
  MALLORY,
  readReceipts,
  type Signer,
  signText,
  standingsOf,
} from './kit.js';
import { reportImport } from '../../../src/hosts/shared/import-report.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import { holdsForBrokenFiles } from '../samples.js';
import {
  aarReceipt,
  acr,
  changed,
  digestOfRecord,
  signedAar,
  signedAcr,
  unsignedAar,
  uuid,
} from './samples.js';

const AGENT = 'trader/v1';
const read = (value: unknown, keys?: string) => readReceipts(aar, value, keys === undefined ? {} : { keys });

describe('a receipt', () => {
  it('by a given key is verified, and becomes evidence with what it cost', () => {
    const reading = read(aarReceipt(ALICE), ALICE.pem);
    expect(reading.findings).toEqual([]);
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
    expect(reading.claims).toMatchObject([
      {
        kind: 'evidence',
        id: `receipt:${uuid(1)}`,
        occurredAt: '2026-03-06T12:00:01Z',
        facts: {
          agent: AGENT,
          on_behalf_of: { id: 'user:ada', type: 'user' },
          action: { type: 'api.call', target: 'exchange/orders', method: 'POST' },
          signature: { standing: 'verified' },
        },
      },
    ]);
    expect(reading.observations).toMatchObject([
      {
        callIds: [uuid(1)],
        tool: 'api.call',
        outcome: 'success',
        meters: [{ unit: 'usdc', amount: { t: 'dec', m: '2', s: 2 } }],
      },
    ]);
  });

  it('by the key that it states is signed, but nobody says by whom', () => {
    const reading = read([aarReceipt(ALICE), aarReceipt(ALICE, 2)]);
    expect(reading.findings).toMatchObject([{ code: 'KEY_STATED', severity: 'warning', about: AGENT }]);
    expect(standingsOf(reading)).toEqual([0, 2, 0, 0]);
    expect(reading.claims[0]).toMatchObject({
      id: `own-key:${uuid(1)}`,
      sameAs: [`receipt:${uuid(1)}`],
      facts: { signature: { standing: 'verified_by_its_own_key' } },
    });
  });

  it('that brings another key than is given is refused, with both', () => {
    const reading = read(aarReceipt(MALLORY), JSON.stringify({ [AGENT]: ALICE.pem }));
    expect(reading.findings).toMatchObject([
      { code: 'SIGNATURE_INVALID', actual: expect.stringContaining('another key') as string },
    ]);
    expect(standingsOf(reading)).toEqual([0, 0, 0, 1]);
  });

  it.each([
    ['of an agent without a given key', 'other/v1', [0, 0, 1, 0]],
    ['of the agent under its key id', `${AGENT}#key-1`, [1, 0, 0, 0]],
    ['of the agent', AGENT, [1, 0, 0, 0]],
  ])('does not bring its own key where keys are given: %s', (_, name, standings) => {
    expect(standingsOf(read(aarReceipt(ALICE), JSON.stringify({ [name]: ALICE.pem })))).toEqual(standings);
  });

  it('is not vouched for by the key id of another agent', () => {
    const kid = { ...(unsignedAar(MALLORY)['signature'] as JsonMembers), kid: 'mallory/v1#key-1' };
    const forged = aarReceipt(MALLORY, 1, { signature: kid });
    const keys = JSON.stringify({ 'mallory/v1#key-1': MALLORY.pem });
    expect(errorsOf(read(forged, keys))).toEqual(['KEY_UNKNOWN']);
  });

  it('takes the configuration that an agent publishes for its key', () => {
    const published = {
      specVersion: '1.0',
      agent: { id: AGENT, publicKey: ALICE.bytes.toString('base64url') },
    };
    expect(standingsOf(read(aarReceipt(ALICE), JSON.stringify(published)))).toEqual([1, 0, 0, 0]);
    expect(errorsOf(read(aarReceipt(BOB), JSON.stringify(published)))).toEqual(['SIGNATURE_INVALID']);
  });

  it('by a second key of one agent is refused: one of them is somebody else', () => {
    const reading = read([aarReceipt(ALICE), aarReceipt(MALLORY, 2)]);
    expect(errorsOf(reading)).toEqual(['KEY_CHANGED']);
    expect(standingsOf(reading)).toEqual([0, 1, 0, 1]);
  });

  it('may say that it was done in part', () => {
    const action = { type: 'a', target: 'b', status: 'partial' };
    expect(read(aarReceipt(ALICE, 1, { action })).observations[0]?.outcome).toBe('unknown');
  });

  it('is recognised, and those of other systems are not', () => {
    expect(aar.recognises(jsonFile([aarReceipt(ALICE)]))).toBe(true);
    expect(aar.recognises(jsonFile({ receiptId: 'x' }))).toBe(false);
  });
});

describe('a receipt that was changed', () => {
  const one = aarReceipt(ALICE);
  const cases: readonly (readonly [readonly string[], Json | undefined, string])[] = [
    [['receiptId'], uuid(7), 'SIGNATURE_INVALID'],
    [['agent', 'id'], 'mallory/v1', 'SIGNATURE_INVALID'],
    [['action', 'target'], 'exchange/withdraw', 'SIGNATURE_INVALID'],
    [['cost', 'amount'], '0.01', 'SIGNATURE_INVALID'],
    [['metadata', 'more'], 1, 'SIGNATURE_INVALID'],
    [['signature', 'kid'], 'trader/v1#key-2', 'SIGNATURE_INVALID'],
    [['signature', 'publicKey'], MALLORY.bytes.toString('base64url'), 'SIGNATURE_INVALID'],
    [['signature', 'publicKey'], Buffer.alloc(32).toString('base64url'), 'SIGNATURE_INVALID'],
    [['signature', 'publicKey'], 'short', 'MALFORMED'],
    [['agent', 'publicKey'], MALLORY.bytes.toString('base64url'), 'KEY_CHANGED'],
    [['signature', 'sig'], undefined, 'SIGNATURE_MISSING'],
    [['signature', 'sig'], 'AAAA', 'MALFORMED'],
    [['signature', 'sig'], Buffer.alloc(64).toString('base64url'), 'SIGNATURE_INVALID'],
    [['signature'], undefined, 'SIGNATURE_MISSING'],
    [['signature', 'alg'], 'none', 'ALGORITHM_REFUSED'],
    [['signature', 'alg'], 'HS256', 'ALGORITHM_REFUSED'],
    [['signature', 'alg'], ['Ed25519'], 'MALFORMED'],
    [['signature', 'canonicalization'], 'JSON', 'ALGORITHM_REFUSED'],
    [['action', 'status'], 'ok', 'MALFORMED'],
    [['principal', 'type'], 'god', 'MALFORMED'],
    [['scope', 'permissions'], [], 'MALFORMED'],
    [['inputHash', 'alg'], 'md5', 'MALFORMED'],
    [['outputHash'], undefined, 'MALFORMED'],
    [['timestamp'], '2026-03-06 12:00', 'MALFORMED'],
    [['timestamp'], 1_772_798_400, 'MALFORMED'],
  ];
  it.each(cases)('in %j to %j is refused: %s', (path, value, code) => {
    const reading = read(changed(one, path, value));
    expect(errorsOf(reading)).toContain(code);
    expect(standingsOf(reading)).toEqual([0, 0, 0, 1]);
    expect([reading.claims, reading.observations]).toEqual([[], []]);
  });
});

it('an amount that is none is no meter, and no reason to refuse the receipt', () => {
  for (const amount of ['free', '-1', '1e3']) {
    const reading = read(aarReceipt(ALICE, 1, { cost: { amount, currency: 'USD' } }), ALICE.pem);
    expect(reading.findings).toMatchObject([{ code: 'SHAPE_UNUSUAL', at: { pointer: '/cost/amount' } }]);
    expect(reading.observations[0]?.meters).toEqual([]);
  }
});

it('a signature is over the form without the signature alone', () => {
  const unsigned = unsignedAar(ALICE);
  const other = signedAar(ALICE, changed(unsigned, ['signature', 'kid']));
  const moved = {
    ...unsigned,
    signature: {
      ...(unsigned['signature'] as JsonMembers),
      sig: (other['signature'] as JsonMembers)['sig']!,
    },
  };
  expect(errorsOf(read(moved))).toEqual(['SIGNATURE_INVALID']);
});

it('reads whatever files there are, and every rule that is found is one of its own', () => {
  const receipts = [1, 2, 3].map((n) => aarReceipt(ALICE, n));
  const lines = receipts.map((each) => `${JSON.stringify(each)}\n`).join('');
  holdsForBrokenFiles(aar, [jsonFile(lines, 'r.jsonl'), jsonFile(receipts)]);
});

it('members are in the order of the specification, or in that of its libraries', () => {
  const unsigned = unsignedAar(ALICE, 1, { metadata: { 9: 'a', 10: 'b' } });
  const text = jcs(unsigned);
  const inLibraries = text.replace('{"10":"b","9":"a"}', '{"9":"a","10":"b"}');
  expect(inLibraries).not.toBe(text);
  const signature = unsigned['signature'] as JsonMembers;
  for (const body of [text, inLibraries]) {
    const whole = { ...unsigned, signature: { ...signature, sig: signText(ALICE, body) } };
    expect(standingsOf(read(whole))).toEqual([0, 1, 0, 0]);
  }
});

it('a member that the libraries do not sign cannot be slipped in', () => {
  const sneaked = JSON.stringify(aarReceipt(ALICE)).replace('{', '{"__proto__":{"cost":"0"},');
  expect(errorsOf(read(sneaked))).toEqual(['SIGNATURE_INVALID']);
});

it('either alphabet of base64 is read', () => {
  const one = aarReceipt(ALICE);
  const { sig, ...rest } = one['signature'] as { readonly sig: string } & JsonMembers;
  const padded = { ...one, signature: { ...rest, sig: Buffer.from(sig, 'base64url').toString('base64') } };
  expect(standingsOf(read(padded, ALICE.pem))).toEqual([1, 0, 0, 0]);
});

it('names of any length and script fit an event', () => {
  const long = `${'x'.repeat(255)}😀${'y'.repeat(3_000)}`;
  const agent = { id: long, name: `${long}\u202e\n` };
  const receipts = [
    aarReceipt(ALICE, 1, { receiptId: long, agent }),
    aarReceipt(ALICE, 1, { receiptId: `${long}z`, agent }),
  ];
  const plan = planImport(aar, [jsonFile(receipts)]);
  expect([plan.unfit, plan.events.length]).toEqual([0, 2]);
  expect(errorsOf(read(aarReceipt(ALICE, 1, { receiptId: 'x'.repeat(5_000) })))).toEqual(['MALFORMED']);
});

it('a long text or name is not repeated whole in the report', () => {
  const long = 'x'.repeat(100_000);
  const action = { type: 'a', target: 'b', status: long };
  const receipts = [aarReceipt(ALICE, 1, { action }), aarReceipt(ALICE, 2, { [long]: 0.1234567890123456 })];
  const text = JSON.stringify(receipts).replace(/0\.1234567\d*/, '0.12345678901234567890123');
  const { findings } = reportImport(planImport(aar, [jsonFile(text)]));
  expect(findings?.map(({ code }) => code)).toEqual(expect.arrayContaining(['MALFORMED', 'NUMBER_ROUNDED']));
  expect(JSON.stringify(findings).length).toBeLessThan(10_000);
});

describe('a correction record', () => {
  const root = (by: Signer = ALICE, members: JsonMembers = {}) => signedAcr(by, acr(by, 1, members));
  const correction = (of: JsonMembers, by: Signer = ALICE, members: JsonMembers = {}) =>
    signedAcr(by, {
      ...acr(by, 2, { reason: 'tonnes, not kilograms', trigger: 'check_failed', fix: { type: 'replace' } }),
      supersedes: { receiptId: of['correctionId'] ?? of['receiptId']!, digest: digestOfRecord(of) },
      ...members,
    });

  it('amends a record of its own kind or a receipt, in any order, and is evidence of that', () => {
    const one = root();
    const again = signedAcr(ALICE, {
      ...acr(ALICE, 3, { reason: 'still wrong', trigger: 'human_flagged', fix: { type: 'delete' } }),
      supersedes: { receiptId: uuid(2), digest: digestOfRecord(correction(one)) },
    });
    const reading = read([again, correction(one), one], ALICE.pem);
    expect(reading.findings).toEqual([]);
    expect(standingsOf(reading)).toEqual([3, 0, 0, 0]);
    expect(reading.claims).toMatchObject([
      { type: 'action' },
      { type: 'correction', facts: { trigger: 'check_failed', corrects: { receipt_id: uuid(1) } } },
      { type: 'correction' },
    ]);
    expect(reading.observations).toMatchObject([
      { callIds: [uuid(1)], tool: 'db.write', outcome: 'unknown' },
    ]);
    const receipt = aarReceipt(ALICE, 9);
    const corrected = read([receipt, correction(receipt)], ALICE.pem);
    expect(corrected.findings).toEqual([]);
    expect(corrected.observations).toMatchObject([{ callIds: [uuid(9)], correctedAt: { pointer: '/1' } }]);
    expect(aar.recognises(jsonFile([one]))).toBe(true);
  });

  it('is held to what it amends, signature included', () => {
    const one = root();
    const other = root(ALICE, { timestamp: '2026-09-10T00:00:09Z' });
    const reading = read([other, correction(one)], ALICE.pem);
    expect(errorsOf(reading)).toEqual(['CORRECTED_MISMATCH']);
    expect(standingsOf(reading)).toEqual([1, 0, 0, 1]);
    const alone = read(correction(one), ALICE.pem);
    expect(alone.findings).toMatchObject([{ code: 'CORRECTED_NOT_GIVEN', severity: 'warning' }]);
    const digest = { alg: 'sha512', digest: 'x'.repeat(86) };
    const foreign = correction(one, ALICE, { supersedes: { receiptId: uuid(1), digest } });
    expect(read([one, foreign], ALICE.pem).findings).toMatchObject([{ code: 'CORRECTED_NOT_CHECKED' }]);
  });

  it('is by the agent of the record, not before it, and the only one', () => {
    const one = root();
    const codesOf = (...records: JsonMembers[]) =>
      read(records, ALICE.pem).findings.map(({ code, severity }) => `${severity} ${code}`);
    expect(codesOf(one, correction(one, ALICE, { agent: { id: 'another' } }))).toEqual([
      'warning CORRECTED_BY_OTHER',
    ]);
    expect(codesOf(one, correction(one, ALICE, { timestamp: '2026-09-09T00:00:00Z' }))).toEqual([
      'warning CORRECTED_BEFORE',
    ]);
    const second = correction(one, ALICE, { correctionId: uuid(3) });
    expect(codesOf(one, correction(one), second)).toEqual(['warning CORRECTED_TWICE']);
    const supersedes = { receiptId: uuid(2), digest: { alg: 'sha512', digest: 'x'.repeat(86) } };
    expect(codesOf(correction(one, ALICE, { supersedes }))).toEqual(['error MALFORMED']);
  });

  it('is not broken by a record that is, or that is another agent’s of the same id', () => {
    const one = root();
    const forged = changed(root(), ['timestamp'], '2026-09-10T00:00:05Z');
    const broken = read([forged, correction(one)], ALICE.pem);
    expect(broken.findings.map(({ code }) => code)).toEqual(['SIGNATURE_INVALID', 'CORRECTED_NOT_GIVEN']);
    expect(standingsOf(broken)).toEqual([1, 0, 0, 1]);
    const others = root(ALICE, { agent: { id: 'another' } });
    expect(errorsOf(read([others, correction(one)], ALICE.pem))).toEqual([]);
  });

  it('is signed with an empty sig where it names RFC 8785, and without one in the form of receipts', () => {
    const old = acr(ALICE, 1, {});
    const signature = { ...(old['signature'] as JsonMembers), canonicalization: 'JCS-SORTED-UTF8-NOWS' };
    expect(errorsOf(read(signedAar(ALICE, { ...old, signature }), ALICE.pem))).toEqual([]);
    expect(errorsOf(read(signedAcr(ALICE, { ...old, signature }), ALICE.pem))).toEqual(['SIGNATURE_INVALID']);
    expect(errorsOf(read(signedAar(ALICE, old), ALICE.pem))).toEqual(['SIGNATURE_INVALID']);
    // A receipt is never signed in that form.
    const unsigned = unsignedAar(ALICE);
    const named = { ...(unsigned['signature'] as JsonMembers), canonicalization: 'RFC8785' };
    const receipt = signedAcr(ALICE, { ...unsigned, signature: named });
    expect(errorsOf(read(receipt, ALICE.pem))).toEqual(['ALGORITHM_REFUSED']);
  });

  it('may say that something is not known, and then corrects nothing', () => {
    const rest = ['action', 'fix', 'reason', 'trigger'].reduce(
      (record, name) => changed(record, [name]),
      acr(ALICE, 1, {}),
    );
    const unknown = { ...rest, kind: 'unknown', subject: 'yield of May', note: '' };
    const reading = read(signedAcr(ALICE, unknown), ALICE.pem);
    expect([reading.findings, reading.observations]).toEqual([[], []]);
    expect(reading.claims).toMatchObject([{ type: 'unknown' }]);
    expect(errorsOf(read(signedAcr(ALICE, { ...unknown, fix: { type: 'noop' } }), ALICE.pem))).toEqual([
      'MALFORMED',
    ]);
  });

  it.each<[string, Json | undefined]>([
    ['reason', ''],
    ['reason', undefined],
    ['trigger', 'whim'],
    ['fix', { type: 'ignore' }],
    ['timestamp', '2026-09-10'],
    ['kind', 'action'],
    ['principal', undefined],
    ['agent', { id: '' }],
  ])('is not one with another %s: %j', (name, value) => {
    const changedRecord = changed(correction(root()), [name], value);
    const resigned = signedAcr(ALICE, changed(changedRecord, ['signature', 'sig']));
    expect(errorsOf(read([root(), resigned], ALICE.pem))).toContain('MALFORMED');
  });

  it('that was changed, or is by somebody else, is refused', () => {
    const one = root();
    expect(errorsOf(read([one, changed(correction(one), ['reason'], 'fine')], ALICE.pem))).toEqual([
      'SIGNATURE_INVALID',
    ]);
    expect(errorsOf(read(root(MALLORY), ALICE.pem))).toEqual(['SIGNATURE_INVALID']);
    expect(standingsOf(read(one))).toEqual([0, 1, 0, 0]);
  });
});
