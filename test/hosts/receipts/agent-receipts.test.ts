/** Agent Receipts: what their rules accept, what they refuse, and what comes of each. */

import { describe, expect, it } from 'vitest';
import { agentReceipts } from '../../../src/hosts/receipts/index.js';
import { formatPublicKeyAs, makePublicKey } from '../../../src/format/key/public-key.js';
import { holdsForBrokenFiles, verifyPlan } from '../samples.js';
import { planImport } from '../../../src/hosts/shared/import.js';
import {
  ALICE,
  BOB,
  errorsOf,
  type JsonMembers,
  jcs,
  jsonFile,
  MALLORY,
  readReceipts,
  sha256Hex,
  type Signer,
  signText,
  standingsOf,
} from './kit.js';
import { AGENT, chainOf, changed, hashOf, receipt, signed, unsignedReceipt, uuid } from './samples.js';

const read = (value: unknown, by = ALICE, unverified = false) =>
  readReceipts(agentReceipts, value, { unverified, keys: by.pem });
const SUBJECT = 'credentialSubject';

describe('a chain that is whole', () => {
  const chain = chainOf(ALICE, 3);

  it('is verified, and becomes evidence that keeps what the receipts are about', () => {
    const reading = read(chain);
    expect(errorsOf(reading)).toEqual([]);
    expect(standingsOf(reading)).toEqual([3, 0, 0, 0]);
    expect(reading.items.map(({ fate }) => fate)).toEqual(['evidence', 'evidence', 'evidence']);
    expect(reading.claims[1]).toMatchObject({
      kind: 'evidence',
      id: `receipt:urn:receipt:${uuid(2)}`,
      occurredAt: '2026-05-01T10:00:02Z',
      principalId: 'agent:agent-receipts/did:agent:builder',
      facts: {
        receipt_digest: { form: 'rfc8785', value: hashOf(chain[1]) },
        chain: { chain_id: 'chain_one', sequence: '2', previous: hashOf(chain[0]) },
        signature: { standing: 'verified' },
      },
    });
    expect(reading.observations[1]).toMatchObject({
      callIds: [`act_${uuid(2)}`, `urn:receipt:${uuid(2)}`],
      tool: 'filesystem.file.read',
      outcome: 'success',
      paramsDigest: { alg: 'sha-256' },
    });
  });

  it('says that nothing shows where an open chain ends, and nothing of one that was ended', () => {
    expect(read(chain).findings.map(({ code }) => code)).toEqual(['CHAIN_OPEN']);
    const last = receipt(ALICE, {
      n: 4,
      previous: hashOf(chain[2]),
      link: { terminal: true, status: 'complete' },
    });
    expect(read([...chain, last]).findings).toEqual([]);
  });

  it('may be in any order, in lines, or a list of a member, and gives the same events', () => {
    const idsOf = (file: unknown) => {
      const options = { aids: { keys: jsonFile(ALICE.pem, 'keys') } };
      return planImport(agentReceipts, [jsonFile(file)], options).events.map(
        ({ event }) => event.event_id.b64,
      );
    };
    const ids = idsOf(chain);
    expect(ids).toHaveLength(3);
    const [a, b, c] = chain;
    expect(idsOf([c, a, b])).toEqual(ids);
    expect(idsOf(chain.map((each) => `${JSON.stringify(each)}\n`).join(''))).toEqual(ids);
    expect(idsOf(JSON.stringify({ receipts: chain }, null, 2))).toEqual(ids);
    expect(idsOf(chain.map((each) => JSON.parse(jcs(each)) as unknown))).toEqual(ids);
  });

  it('fits a ledger, which it does not break', async () => {
    const options = { aids: { keys: jsonFile(ALICE.pem, 'keys') } };
    const plan = planImport(agentReceipts, [jsonFile(chain)], options);
    expect(plan.unfit).toBe(0);
    expect(plan.authority).toMatchObject({ grants: 0, actions: 0, credits: 0 });
    const { findings } = await verifyPlan(plan);
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('is recognised, also where it is broken', () => {
    for (const value of [chain, chain[0], { receipts: chain }, changed(chain[0], ['proof'])])
      expect(agentReceipts.recognises(jsonFile(value))).toBe(true);
    expect(agentReceipts.recognises(jsonFile({ type: ['VerifiableCredential'] }))).toBe(false);
  });
});

describe('a receipt that was changed', () => {
  const one = receipt(ALICE);
  it.each([
    [['issuer', 'id'], 'did:agent:other', 'SIGNATURE_INVALID'],
    [[SUBJECT, 'principal', 'id'], 'did:user:eve', 'SIGNATURE_INVALID'],
    [[SUBJECT, 'action', 'type'], 'filesystem.file.delete', 'SIGNATURE_INVALID'],
    [[SUBJECT, 'outcome', 'status'], 'failure', 'SIGNATURE_INVALID'],
    [[SUBJECT, 'unheard_of'], 'x', 'SIGNATURE_INVALID'],
    [['proof', 'proofValue'], `u${signText(MALLORY, 'x')}`, 'SIGNATURE_INVALID'],
    [['proof', 'type'], 'RsaSignature2018', 'PROOF_TYPE'],
    [['proof', 'type'], 'DataIntegrityProof', 'PROOF_TYPE'],
    [['proof', 'proofPurpose'], 'authentication', 'MALFORMED'],
    [['proof', 'proofValue'], 'u', 'MALFORMED'],
    [['proof', 'proofValue'], `z${signText(ALICE, 'x')}`, 'MALFORMED'],
    [['proof', 'proofValue'], `u${signText(ALICE, 'x')}AA`, 'MALFORMED'],
    [['proof', 'created'], undefined, 'MALFORMED'],
    [['proof'], undefined, 'SIGNATURE_MISSING'],
    [['proof'], null, 'SIGNATURE_MISSING'],
    [['version'], '1.0.0', 'MALFORMED'],
    [['version'], 5, 'MALFORMED'],
    [['type'], ['AgentReceipt'], 'MALFORMED'],
    [['@context'], ['https://example.com/v1'], 'MALFORMED'],
    [['id'], undefined, 'MALFORMED'],
    [['issuanceDate'], '2026-05-01T10:00:01', 'MALFORMED'],
    [[SUBJECT, 'action', 'timestamp'], 'yesterday', 'MALFORMED'],
    [[SUBJECT, 'action', 'risk_level'], 'none', 'MALFORMED'],
    [[SUBJECT, 'action', 'parameters_hash'], 'sha256:AB', 'MALFORMED'],
    [[SUBJECT, 'chain', 'previous_receipt_hash'], undefined, 'MALFORMED'],
    [[SUBJECT, 'chain', 'previous_receipt_hash'], 'sha256:00', 'MALFORMED'],
    [[SUBJECT, 'chain', 'sequence'], 1.5, 'MALFORMED'],
    [[SUBJECT, 'chain', 'sequence'], -1, 'MALFORMED'],
    [[SUBJECT, 'chain', 'terminal'], false, 'MALFORMED'],
    [[SUBJECT, 'chain', 'status'], 'complete', 'MALFORMED'],
    [[SUBJECT, 'outcome', 'status'], 'done', 'MALFORMED'],
  ] as const)('in %j to %j is refused, with its place: %s', (path, value, code) => {
    const reading = read(changed(one, path, value));
    expect(errorsOf(reading)).toContain(code);
    expect(standingsOf(reading)).toEqual([0, 0, 0, 1]);
    expect([reading.claims, reading.observations]).toEqual([[], []]);
    const [finding] = reading.findings.filter((each) => each.code === code);
    expect(finding.at.file).toBe('receipts.json');
    if (code === 'MALFORMED')
      expect(finding).toMatchObject({
        expected: expect.any(String) as string,
        actual: expect.any(String) as string,
      });
  });

  it('is told of with what is expected and found', () => {
    const { findings } = read([changed(one, [SUBJECT, 'action', 'risk_level'], 'none')]);
    expect(findings.filter(({ severity }) => severity === 'error')).toMatchObject([
      {
        code: 'MALFORMED',
        at: { file: 'receipts.json', pointer: '/0/credentialSubject/action/risk_level' },
        expected: 'low, medium, high, critical',
        actual: 'none',
      },
    ]);
  });
});

describe('a chain that was tampered with', () => {
  const chain = chainOf(ALICE, 4);
  const [a, b, c, d] = chain as [JsonMembers, JsonMembers, JsonMembers, JsonMembers];

  it.each([
    ['a receipt is missing', [a, c, d], 'CHAIN_GAP', [1, 0, 1, 1]],
    ['the first is missing', [b, c, d], 'CHAIN_START', [0, 0, 2, 1]],
    [
      'one is signed again without its predecessor',
      [a, b, receipt(ALICE, { n: 3 }), d],
      'CHAIN_LINK',
      [2, 0, 1, 1],
    ],
    [
      'there are two of one place',
      [a, b, receipt(ALICE, { n: 9, sequence: 2, previous: hashOf(a) }), c],
      'CHAIN_FORK',
      [2, 0, 1, 1],
    ],
    [
      'one was changed',
      [a, changed(b, [SUBJECT, 'outcome', 'status'], 'failure'), c, d],
      'SIGNATURE_INVALID',
      [1, 0, 2, 1],
    ],
    [
      'one is by another key',
      [a, receipt(MALLORY, { n: 2, previous: hashOf(a) })],
      'SIGNATURE_INVALID',
      [1, 0, 0, 1],
    ],
    [
      'it begins with what it should not',
      [receipt(ALICE, { previous: hashOf(d) }), b],
      'CHAIN_START',
      [0, 0, 1, 1],
    ],
    ['it begins later', [receipt(ALICE, { n: 2 })], 'CHAIN_START', [0, 0, 0, 1]],
    [
      'one follows the last',
      [a, receipt(ALICE, { n: 2, previous: hashOf(a), link: { terminal: true } }), c],
      'CHAIN_AFTER_END',
      [2, 0, 0, 1],
    ],
    [
      'another issuer continues it',
      [
        a,
        receipt(ALICE, {
          n: 2,
          previous: hashOf(a),
          issuer: 'did:agent:other',
          method: 'did:agent:other#key-1',
        }),
      ],
      'ISSUER_CHANGED',
      [1, 0, 0, 1],
    ],
    [
      'it is spliced into another',
      [a, receipt(ALICE, { n: 2, chain: 'chain_two', previous: hashOf(a) })],
      'CHAIN_SPLICED',
      [1, 0, 0, 1],
    ],
  ] as const)('is found where %s', (_, receipts, code, standings) => {
    const reading = read(receipts);
    expect(errorsOf(reading)).toContain(code);
    expect(standingsOf(reading)).toEqual(standings);
  });

  it('a receipt alone is verified, and its place said not to be', () => {
    const reading = read(c);
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
    expect(reading.findings).toMatchObject([
      { code: 'CHAIN_PART', severity: 'warning' },
      { code: 'CHAIN_OPEN' },
    ]);
  });

  it('chains beside each other are each their own', () => {
    const other = chainOf(ALICE, 2, { n: 50, chain: 'chain_two' });
    expect(standingsOf(read([a, other[0], b, other[1]]))).toEqual([4, 0, 0, 0]);
  });

  it('what comes after a break is taken only when asked for, and marked', () => {
    const reading = read([a, c, d], ALICE, true);
    expect(reading.claims).toMatchObject([
      { id: `receipt:urn:receipt:${uuid(1)}`, facts: { signature: { standing: 'verified' } } },
      {
        id: `unverified:urn:receipt:${uuid(4)}`,
        facts: { signature: { standing: 'not_verified', reason: 'AFTER_BREAK' } },
      },
    ]);
    expect(errorsOf(reading)).toEqual(['CHAIN_GAP']);
  });

  it('the same receipt twice is once; another under its id is refused', () => {
    const twice = read([a, a, b]);
    expect([standingsOf(twice), twice.items.map(({ fate }) => fate)]).toEqual([
      [2, 0, 0, 0],
      ['evidence', 'repeated', 'evidence'],
    ]);
    const reused = read([a, receipt(ALICE, { n: 1, chain: 'chain_two' })]);
    expect(errorsOf(reused)).toEqual(['ID_REUSED']);
    expect(standingsOf(reused)).toEqual([1, 0, 0, 1]);
  });
});

describe('keys', () => {
  const one = receipt(ALICE);
  const jwk = { kty: 'OKP', crv: 'Ed25519', x: ALICE.bytes.toString('base64url') };
  const did = formatPublicKeyAs(makePublicKey('ed25519', ALICE.bytes), 'did');

  it.each([
    ['a PEM', ALICE.pem],
    ['several of them', `${BOB.pem}${ALICE.pem}`],
    ['hexadecimal digits', ALICE.bytes.toString('hex')],
    ['a line with a name', `# keys\n${AGENT} ${ALICE.bytes.toString('base64url')}\n`],
    ['names with their keys', JSON.stringify({ [`${AGENT}#key-1`]: ALICE.pem, 'did:agent:other': BOB.pem })],
    ['multibase', JSON.stringify({ [AGENT]: `u${ALICE.bytes.toString('base64url')}` })],
    ['a JWK', JSON.stringify(jwk)],
    ['a JWKS', JSON.stringify({ keys: [{ ...jwk, kid: AGENT }] })],
    [
      'a DID document',
      JSON.stringify({ id: AGENT, verificationMethod: [{ id: '#key-1', publicKeyMultibase: did.slice(8) }] }),
    ],
  ])('are read from %s', (_, keys) => {
    expect(standingsOf(readReceipts(agentReceipts, one, { keys }))).toEqual([1, 0, 0, 0]);
  });

  it.each([
    ['none is given', undefined, 'KEY_UNKNOWN', [0, 0, 1, 0]],
    [
      'that of another issuer is',
      JSON.stringify({ 'did:agent:other': ALICE.pem }),
      'KEY_UNKNOWN',
      [0, 0, 1, 0],
    ],
    ['another key of the issuer is', JSON.stringify({ [AGENT]: BOB.pem }), 'SIGNATURE_INVALID', [0, 0, 0, 1]],
    ['the file holds none', 'no key at all', 'KEYS_UNREADABLE', [0, 0, 1, 0]],
    ['it is empty', '', 'KEYS_UNREADABLE', [0, 0, 1, 0]],
    ['one of small order is', JSON.stringify({ [AGENT]: '00'.repeat(32) }), 'KEYS_UNREADABLE', [0, 0, 1, 0]],
  ])('are not found where %s', (_, keys, code, standings) => {
    const reading = readReceipts(agentReceipts, one, keys === undefined ? {} : { keys });
    expect(errorsOf(reading)).toContain(code);
    expect(standingsOf(reading)).toEqual(standings);
    expect(reading.claims).toEqual([]);
  });

  it('without one the receipts are taken only when asked for, and never called verified', () => {
    const reading = readReceipts(agentReceipts, one, { unverified: true });
    expect(errorsOf(reading)).toEqual([]);
    expect(reading.findings).toMatchObject([
      { code: 'KEY_UNKNOWN', severity: 'warning' },
      { code: 'CHAIN_OPEN' },
    ]);
    expect(reading.claims).toMatchObject([
      {
        id: `unverified:urn:receipt:${uuid(1)}`,
        facts: { signature: { standing: 'not_verified', reason: 'KEY_UNKNOWN' } },
      },
    ]);
    expect(reading.items).toMatchObject([{ fate: 'evidence', reason: 'UNVERIFIED' }]);
  });

  it('that are the name of the issuer need no other word, and are nobody else’s', () => {
    const own = receipt(ALICE, { issuer: did, method: `${did}#${did.slice(8)}` });
    expect(standingsOf(readReceipts(agentReceipts, own))).toEqual([1, 0, 0, 0]);
    const forged = receipt(MALLORY, { issuer: did, method: `${did}#${did.slice(8)}` });
    expect(errorsOf(readReceipts(agentReceipts, forged))).toEqual(['SIGNATURE_INVALID']);
    const mallorys = formatPublicKeyAs(makePublicKey('ed25519', MALLORY.bytes), 'did');
    const swapped = receipt(MALLORY, { method: mallorys });
    expect(errorsOf(readReceipts(agentReceipts, swapped))).toEqual(['KEY_UNKNOWN']);
    const named = JSON.stringify({ [AGENT]: ALICE.pem, 'did:agent:mallory': MALLORY.pem });
    const borrowed = receipt(MALLORY, { method: 'did:agent:mallory' });
    expect(errorsOf(readReceipts(agentReceipts, borrowed, { keys: named }))).toEqual(['SIGNATURE_INVALID']);
  });

  describe('that are handed over', () => {
    const fingerprint = ({ bytes }: Signer) => `sha256:${sha256Hex(bytes)}`;
    const rotation = {
      event_type: 'key_rotated',
      new_public_key: `u${BOB.bytes.toString('base64url')}`,
      old_key_fingerprint: fingerprint(ALICE),
      new_key_fingerprint: fingerprint(BOB),
      old_algorithm: 'ed25519',
      new_algorithm: 'ed25519',
      signed_with: 'old',
    };
    const chainWith = (own: JsonMembers, by = ALICE, next = BOB) => {
      const first = receipt(ALICE);
      const second = receipt(by, { n: 2, previous: hashOf(first), subject: { keyRotation: own } });
      return [first, second, receipt(next, { n: 3, previous: hashOf(second) })];
    };

    it('sign what follows', () => {
      const reading = read(chainWith(rotation));
      expect(errorsOf(reading)).toEqual([]);
      expect(standingsOf(reading)).toEqual([3, 0, 0, 0]);
      expect(reading.observations).toHaveLength(2);
    });

    it.each([
      ['the new key signs the handover itself', chainWith(rotation, BOB), 'SIGNATURE_INVALID'],
      ['the old one goes on signing', chainWith(rotation, ALICE, ALICE), 'SIGNATURE_INVALID'],
      [
        'it is not of the key before',
        chainWith({ ...rotation, old_key_fingerprint: fingerprint(BOB) }),
        'ROTATION_INVALID',
      ],
      [
        'the new key is another',
        chainWith({ ...rotation, new_public_key: `u${MALLORY.bytes.toString('base64url')}` }),
        'ROTATION_INVALID',
      ],
      ['it is to another algorithm', chainWith({ ...rotation, new_algorithm: 'rsa' }), 'ROTATION_INVALID'],
      [
        'it is to a key of small order',
        chainWith({
          ...rotation,
          new_public_key: `u${Buffer.alloc(32).toString('base64url')}`,
          new_key_fingerprint: `sha256:${sha256Hex(Buffer.alloc(32))}`,
        }),
        'ROTATION_INVALID',
      ],
    ])('do not where %s', (_, chain, code) => {
      const reading = read(chain);
      expect(errorsOf(reading)).toContain(code);
      expect(standingsOf(reading)[0]).toBeLessThan(3);
    });
  });
});

describe('what the canonical form does to values', () => {
  const withRuntime = (text: string, spelled = text) => {
    const plain = unsignedReceipt({ members: { issuer: { id: AGENT, runtime: { n: 'HERE' } } } });
    const proof = (signed(plain, ALICE)['proof'] ?? {}) as JsonMembers;
    const body = jcs(plain).replace('"HERE"', text);
    const whole = { ...plain, proof: { ...proof, proofValue: `u${signText(ALICE, body)}` } };
    return JSON.stringify(whole).replace('"HERE"', spelled);
  };

  it.each([
    ['1', '1.0'],
    ['1', '1e0'],
    ['1e+21', '1e21'],
    ['0', '-0'],
    ['0.000001', '1e-6'],
    ['"é"', '"\\u00e9"'],
    ['"\\u0007"', '"\\u0007"'],
    ['{"a":1,"b":2}', '{"b":2,"a":1}'],
    ['{"😀":1,"ﬁ":2}', '{"ﬁ":2,"😀":1}'],
    ['{"10":1,"9":2,"__proto__":3}', '{"__proto__":3,"9":2,"10":1}'],
  ])('%s is what %s is signed as', (canonical, spelled) => {
    const reading = read(withRuntime(canonical, spelled));
    expect(errorsOf(reading)).toEqual([]);
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  });

  it.each([
    ['another form of é', withRuntime('"é"', '"e\\u0301"'), 'SIGNATURE_INVALID'],
    ['a number beyond doubles', withRuntime('1', '1e999'), 'NO_CANONICAL_FORM'],
    ['a member twice', withRuntime('{"a":1}', '{"a":2,"a":1}'), 'DUPLICATE_KEY'],
    ['a lone surrogate', withRuntime('"x"', '"\\ud800"'), 'LONE_SURROGATE'],
    ['nesting without end', withRuntime('1', '['.repeat(100) + ']'.repeat(100)), 'NESTING_TOO_DEEP'],
    ['too long a receipt', withRuntime(`"${'x'.repeat(1_100_000)}"`), 'RECEIPT_TOO_LONG'],
  ])('refuses %s', (_, text, code) => {
    const reading = read(text);
    expect(errorsOf(reading)).toContain(code);
    expect(reading.claims).toEqual([]);
  });

  it('tells of digits that no signature covers', () => {
    const reading = read(withRuntime('10000000000000000', '10000000000000001'));
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
    expect(reading.findings).toMatchObject([
      { code: 'NUMBER_ROUNDED', at: { pointer: '/issuer/runtime/n' } },
      { code: 'CHAIN_OPEN' },
    ]);
  });

  it('takes members that are null for none, as the libraries of the format do', () => {
    const plain = unsignedReceipt();
    const nulled = changed(plain, [SUBJECT, 'outcome', 'error'], null);
    const { proof } = signed(plain, ALICE) as { proof: JsonMembers };
    for (const value of [{ ...nulled, proof }, signed(nulled, ALICE)]) {
      const reading = read(value);
      expect([standingsOf(reading), errorsOf(reading)]).toEqual([[1, 0, 0, 0], []]);
      expect(reading.findings).toMatchObject([{ code: 'SHAPE_UNUSUAL' }, { code: 'CHAIN_OPEN' }]);
      expect(reading.claims[0]).toMatchObject({ facts: { receipt_digest: { value: hashOf(plain) } } });
    }
  });
});

describe('what receipts say besides', () => {
  it.each([
    ['a try again', { action: { idempotency_key: 'k1' } }, 2, 'OPERATION_REPEATED'],
    ['a call without its end', { outcome: { status: 'pending' } }, 1, 'CALL_WITHOUT_END'],
    ['events that were dropped', { action: { emitter_metadata: { drop_count: 3 } } }, 1, 'EVENTS_DROPPED'],
    ['a trusted timestamp', { action: { trusted_timestamp: 'MIIB' } }, 1, 'TIMESTAMP_NOT_CHECKED'],
    ['a later version', { members: { version: '0.9.0' } }, 1, 'VERSION_UNKNOWN'],
    [
      'a parent that is not there',
      { subject: { delegation: { parent_chain_id: 'c', parent_receipt_id: 'r', delegator: { id: 'x' } } } },
      1,
      'DELEGATION_NOT_FOUND',
    ],
  ] as const)('is told of, and breaks nothing: %s', (_, wanted, length, code) => {
    const reading = read(chainOf(ALICE, length, wanted));
    expect(errorsOf(reading)).toEqual([]);
    expect(reading.findings.map((each) => each.code)).toContain(code);
    expect(standingsOf(reading)).toEqual([length, 0, 0, 0]);
  });

  it('each version has its context', () => {
    const context = (name: string) => ['https://www.w3.org/ns/credentials/v2', name];
    const codes = (version: string, own: string) =>
      read(chainOf(ALICE, 1, { members: { version, '@context': context(own) } })).findings.map(
        ({ code }) => code,
      );
    expect(codes('0.6.0', 'https://agentreceipts.ai/context/v3')).toEqual(['CHAIN_OPEN']);
    expect(codes('0.6.0', 'https://agentreceipts.ai/context/v2')).toEqual(['CHAIN_OPEN', 'SHAPE_UNUSUAL']);
  });

  it('an authorization that had ended is a violation', () => {
    const authorization = {
      scopes: ['x'],
      granted_at: '2026-05-01T09:00:00Z',
      expires_at: '2026-05-01T09:30:00Z',
    };
    const reading = read(receipt(ALICE, { subject: { authorization } }));
    expect(reading.findings).toContainEqual(
      expect.objectContaining({ code: 'AUTHORIZATION_EXPIRED', class: 'violation', severity: 'error' }),
    );
    // It is intact evidence of something that was not allowed, and is kept.
    expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  });

  it('a delegation is held against its parent', () => {
    const parent = receipt(ALICE);
    const delegation = (delegator: string) => ({
      delegation: {
        parent_chain_id: 'chain_one',
        parent_receipt_id: parent['id']!,
        delegator: { id: delegator },
      },
    });
    const child = (by: string) =>
      receipt(ALICE, { n: 2, sequence: 1, chain: 'chain_two', subject: delegation(by) });
    const codes = (value: unknown) => read(value).findings.map(({ code }) => code);
    expect(codes([parent, child(AGENT)])).toEqual(['CHAIN_OPEN', 'CHAIN_OPEN']);
    expect(codes([parent, child('did:agent:other')])).toContain('DELEGATION_INVALID');
  });

  it('a tool is named by itself where the receipt does', () => {
    const tools = [
      { tool_name: 'read_file' },
      { type: 'unknown', target: { system: 'shell.run' } },
      { type: 'com.acme.crm.create' },
    ].map((action) => read(receipt(ALICE, { action })).observations[0]?.tool);
    expect(tools).toEqual(['read_file', 'shell.run', 'com.acme.crm.create']);
    expect(errorsOf(read(receipt(ALICE, { action: { type: 'unknown' } })))).toEqual(['MALFORMED']);
  });
});

it('keeps no contents', () => {
  const secret = 'the launch code is 7';
  const reading = read(
    receipt(ALICE, {
      outcome: { status: 'failure', error: secret },
      subject: { intent: { prompt_preview: secret } },
      action: { parameters_disclosure: { code: secret } },
    }),
  );
  expect(standingsOf(reading)).toEqual([1, 0, 0, 0]);
  expect(JSON.stringify(reading.claims.map((claim) => ({ ...claim, bytes: undefined })))).not.toContain(
    secret,
  );
});

it('reads whatever files there are, and every rule that is found is one of its own', () => {
  const lines = (receipts: readonly JsonMembers[]) =>
    jsonFile(receipts.map((each) => `${JSON.stringify(each)}\n`).join(''), 'r.jsonl');
  const own = formatPublicKeyAs(makePublicKey('ed25519', ALICE.bytes), 'did');
  const chain = chainOf(ALICE, 3, { issuer: own, method: own });
  holdsForBrokenFiles(agentReceipts, [lines(chain), lines(chainOf(BOB, 2)), jsonFile(chain)]);
});

describe('a key that an issuer names otherwise than by did:key', () => {
  const jwk = (by: Signer) => ({ kty: 'OKP', crv: 'Ed25519', x: by.bytes.toString('base64url') });
  const didJwk = (by: Signer) => `did:jwk:${Buffer.from(JSON.stringify(jwk(by))).toString('base64url')}`;

  it('is that of its did:jwk, and nobody else can sign for it', () => {
    const issuer = didJwk(ALICE);
    const own = receipt(ALICE, { issuer, method: `${issuer}#0` });
    expect(standingsOf(readReceipts(agentReceipts, own))).toEqual([1, 0, 0, 0]);
    const forged = receipt(MALLORY, { issuer, method: `${issuer}#0` });
    expect(errorsOf(readReceipts(agentReceipts, forged))).toEqual(['SIGNATURE_INVALID']);
    // Nor by a key that was given for everybody; one that was given for this name is another matter.
    const given = (keys: string, by: Signer) =>
      standingsOf(readReceipts(agentReceipts, receipt(by, { issuer, method: `${issuer}#0` }), { keys }));
    expect([given(MALLORY.pem, ALICE), given(MALLORY.pem, MALLORY)]).toEqual([
      [1, 0, 0, 0],
      [0, 0, 0, 1],
    ]);
    expect(given(JSON.stringify({ [issuer]: MALLORY.pem }), MALLORY)).toEqual([1, 0, 0, 0]);
    const broken = receipt(ALICE, { issuer: 'did:jwk:AAAA', method: 'did:jwk:AAAA#0' });
    expect(errorsOf(readReceipts(agentReceipts, broken))).toEqual(['KEY_UNKNOWN']);
  });

  it('is that of the given document of its did:web, if it is for assertions', () => {
    const issuer = 'did:web:agents.example.com:builder';
    const wanted = { issuer, method: `${issuer}#sign` };
    const method = (id: string, by: Signer) => ({ id, type: 'JsonWebKey', publicKeyJwk: jwk(by) });
    const agreement = { kty: 'OKP', crv: 'X25519', x: BOB.bytes.toString('base64url') };
    const document = {
      id: issuer,
      verificationMethod: [
        method('#sign', ALICE),
        method(`${issuer}#login`, BOB),
        { id: '#seal', publicKeyJwk: agreement },
      ],
      authentication: [`${issuer}#login`],
      assertionMethod: ['#sign'],
    };
    const read = (by: Signer, keys: object, from = wanted) => {
      const reading = readReceipts(agentReceipts, receipt(by, from), { keys: JSON.stringify(keys) });
      return [standingsOf(reading), errorsOf(reading)];
    };
    const verified = [[1, 0, 0, 0], []];
    expect(read(ALICE, document)).toEqual(verified);
    expect(read(ALICE, [document])).toEqual(verified);
    expect(read(ALICE, { didDocument: document })).toEqual(verified);
    expect(read(ALICE, { id: issuer, assertionMethod: [method('#sign', ALICE)] })).toEqual(verified);
    const login = { issuer, method: `${issuer}#login` };
    expect(read(BOB, document, login)).toEqual([[0, 0, 0, 1], ['SIGNATURE_INVALID']]);
    expect(read(ALICE, { ...document, id: 'did:web:other.example' })[0]).toEqual([0, 0, 1, 0]);
    // A document speaks of its own DID alone, of each key by one id, and a relation may be without its list.
    const foreign = { id: 'did:web:other.example', verificationMethod: [method(`${issuer}#sign`, MALLORY)] };
    expect(read(MALLORY, foreign)).toEqual([[0, 0, 1, 0], ['KEY_UNKNOWN']]);
    const twice = [method('#sign', ALICE), method(`${issuer}#sign`, MALLORY), method('#login', BOB)];
    for (const by of [ALICE, MALLORY])
      expect(read(by, { id: issuer, verificationMethod: twice })[0]).toEqual([0, 0, 0, 1]);
    const embedded = { ...document, assertionMethod: ['#sign', method('#sign', MALLORY)] };
    expect(read(MALLORY, embedded)[0]).toEqual([0, 0, 1, 0]);
    expect(read(BOB, { ...document, assertionMethod: '#sign' }, login)[1]).toEqual(['SIGNATURE_INVALID']);
    expect(read(ALICE, { ...document, assertionMethod: '#sign' })).toEqual(verified);
  });

  it.each([
    ['revoked', '2999-01-01T00:00:00Z', []],
    ['revoked', '2001-01-01T00:00:00+01:00', ['KEY_ENDED']],
    ['expires', '2001-01-01T00:00:00Z', ['KEY_ENDED']],
    ['revoked', 'last year', ['KEY_ENDED']],
    ['expires', true, ['KEY_ENDED']],
    ['revoked', null, []],
  ])('signs nothing after its method was %s, %s', (name, end, expected) => {
    const issuer = 'did:web:agents.example.com:builder';
    const ended = { id: '#sign', publicKeyJwk: jwk(ALICE), [name]: end };
    const signed = receipt(ALICE, { issuer, method: `${issuer}#sign` });
    const errors = (...methods: object[]) => {
      const keys = JSON.stringify({ id: issuer, verificationMethod: methods });
      return errorsOf(readReceipts(agentReceipts, signed, { keys }));
    };
    expect(errors(ended)).toEqual(expected);
    expect(errors({ ...ended, id: '#old' }, { id: '#sign', publicKeyJwk: jwk(ALICE) })).toEqual([]);
  });
});

it('takes the type of early versions, and of no later one', () => {
  const early = (version: string) =>
    receipt(ALICE, {
      members: {
        version,
        type: ['VerifiableCredential', 'AIActionReceipt'],
        '@context': ['https://www.w3.org/ns/credentials/v2', 'https://agentreceipts.ai/context/v1'],
      },
    });
  const read = (version: string) => readReceipts(agentReceipts, early(version), { keys: ALICE.pem });
  expect([errorsOf(read('0.1.0')), errorsOf(read('0.3.0'))]).toEqual([[], ['MALFORMED']]);
});

it('says that a trusted timestamp was not checked, whatever it is', () => {
  for (const token of ['MIIC', { token: 'MIIC' }]) {
    const stamped = receipt(ALICE, { action: { trusted_timestamp: token } });
    const reading = readReceipts(agentReceipts, stamped, { keys: ALICE.pem });
    expect(reading.findings.map(({ code }) => code)).toContain('TIMESTAMP_NOT_CHECKED');
  }
});
