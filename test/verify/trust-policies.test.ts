/** What trust policies and witness policies demand of checkpoints: met, not met, met by what the user holds, and no way around them. */

import { describe, expect, test } from 'vitest';
import { formatPublicKeyAs } from '../../src/format/key/public-key.js';
import type { NoteSignature } from '../../src/format/note/signed-note.js';
import type { Report } from '../../src/rules/report/report.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { GenesisEvent, Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import type { Signer } from '../../src/format/signature/signer.js';
import { draftTrustPolicy } from '../../src/rules/trust/draft-policy.js';
import { parseTrustPolicy } from '../../src/rules/trust/trust-policy.js';
import { parseWitnessPolicy, type WitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import type { Anchor } from '../../src/rules/verify/anchors.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { bare, brief, genesis, keyOf, makeSigner, note } from '../docs/ledger-kit.js';
import { LedgerMaker, ORIGIN, attestationOf, keyEvent, logLine, witnessLine } from './seal-kit.js';
import { rememberingBackend } from './support.js';

const backend = rememberingBackend();
const [a, b, w1, w2, w3] = Array.from({ length: 5 }, () => makeSigner()) as [
  Signer,
  Signer,
  Signer,
  Signer,
  Signer,
];
const ALL: Key['roles'] = ['event', 'checkpoint', 'admin'];
const all = (signer: Signer): Key => keyOf(signer, { roles: ALL });
const witnessKey = (signer: Signer, n: number): Key =>
  keyOf(signer, { roles: ['witness'], name: `w${n}.example` });
const WITNESS_KEYS = [witnessKey(w1, 1), witnessKey(w2, 2), witnessKey(w3, 3)];

function policy(require: TrustPolicy['require'], ...keys: readonly Key[]): VerifyOptions {
  return {
    trust: { trust_version: '1', keys: [all(a), ...keys], ...(require === undefined ? {} : { require }) },
  };
}

const vkey = (signer: Signer, n: number): string =>
  formatPublicKeyAs(signer.publicKey, 'cosigner', `w${n}.example`);
const logVkey = (signer: Signer): string => formatPublicKeyAs(signer.publicKey, 'vkey', ORIGIN);

function witnesses(...lines: readonly string[]): { readonly witnessPolicy: WitnessPolicy } {
  return { witnessPolicy: parseWitnessPolicy(Buffer.from(lines.map((line) => `${line}\n`).join(''))) };
}

const verify = (maker: LedgerMaker, options: VerifyOptions): Promise<Report> =>
  verifyLedger(maker.bytes, { backend, ...options });

const codes = async (maker: LedgerMaker, options: VerifyOptions): Promise<string[]> =>
  (await verify(maker, options)).findings.map(brief);

function begun(more: object = {}): LedgerMaker {
  const maker = new LedgerMaker();
  maker.append(genesis([all(a), all(b)], more), a);
  return maker;
}

const cosign =
  (...numbers: readonly number[]) =>
  (text: string): NoteSignature[] =>
    numbers.flatMap((n) => witnessLine(`w${n}.example`, [w1, w2, w3][n - 1])(text));

/** Genesis and a checkpoint by these keys and witnesses. */
function sealed(keys: readonly Signer[], ...numbers: readonly number[]): LedgerMaker {
  const maker = begun();
  const text = maker.text();
  maker.append(maker.checkpoint([...logLine(...keys)(text), ...cosign(...numbers)(text)]), a);
  return maker;
}

function held(maker: LedgerMaker, lines: (text: string) => NoteSignature[]): { checkpoints: Anchor[] } {
  const text = maker.text();
  return {
    checkpoints: [{ name: 'kept', note: Buffer.from(formatNote({ text, signatures: lines(text) })) }],
  };
}

describe('a checkpoint', () => {
  const demand = policy({ checkpoints: 'required' });

  test('is due at once where the user demands it, and after genesis where that promises it', async () => {
    const promised = begun({ signing: { events: 'required', checkpoints: 'required' } });
    expect(await codes(begun(), demand)).toEqual(['CHECKPOINT_MISSING in 2']);
    expect(await codes(promised, {})).toEqual([]);
    promised.append(note(1), a);
    expect(await codes(promised, {})).toEqual(['CHECKPOINT_MISSING in 3']);
    expect(await codes(promised, policy({ checkpoints: 'optional' }))).toEqual([]);
    // Any other demand on checkpoints is one for checkpoints.
    for (const require of [{ checkpoint_quorum: 1 }, { checkpoint_max_age_seconds: 60 }]) {
      expect(await codes(begun(), policy({ checkpoints: 'optional', ...require }))).toEqual([
        'CHECKPOINT_MISSING in 2',
      ]);
    }
  });

  test('may be one that the user holds', async () => {
    const maker = begun();
    expect(await codes(maker, { ...demand, ...held(maker, logLine(a)) })).toEqual([]);
    expect(await codes(maker, { ...demand, ...held(maker, logLine(w1)) })).toEqual([
      'CHECKPOINT_MISSING in 2',
    ]);
    const quorum = policy({ checkpoint_quorum: 2 }, all(b));
    expect(await codes(maker, { ...quorum, ...held(maker, logLine(a, b)) })).toEqual([]);
    expect(await codes(maker, { ...quorum, ...held(maker, logLine(a)) })).toEqual([
      'CHECKPOINT_MISSING in 2',
    ]);
    const threshold = policy({ witness_threshold: 1 }, ...WITNESS_KEYS);
    const cosigned = (text: string) => [...logLine(a)(text), ...cosign(2)(text)];
    expect(await codes(maker, { ...threshold, ...held(maker, cosigned) })).toEqual([]);
  });

  test('is no way out for bare events, and nothing is demanded of nothing', async () => {
    const report = await verifyLedger(bare(note(1)), demand);
    expect(report.findings.map(brief)).toEqual(['CHECKPOINT_MISSING in 2']);
    const empty = await verifyLedger(Buffer.alloc(0), demand);
    expect(empty).toMatchObject({ verdict: 'undecided', findings: [] });
  });

  test('must be of the log of the policies, by a key that they know', async () => {
    const maker = begun();
    maker.append(maker.checkpoint(logLine(b)(maker.text())), a);
    expect(await codes(maker, demand)).toEqual(['KEY_UNKNOWN in 2', 'CHECKPOINT_MISSING in 3']);
    expect(await codes(maker, policy({ checkpoints: 'required' }, keyOf(b)))).toEqual([
      'KEY_NOT_FOR_ROLE in 2',
      'CHECKPOINT_MISSING in 3',
    ]);
    // The witness policy may know the log's key where the trust policy does not.
    const known = witnesses(`log ${logVkey(b)}`, 'quorum none');
    expect(await codes(maker, { ...demand, ...known })).toEqual([]);
    expect(await codes(sealed([a]), known)).toEqual(['CHECKPOINT_MISSING in 2']);
  });
});

describe('the number of keys', () => {
  const demand = policy({ checkpoint_quorum: 2 });

  test('counts the keys that the policy pins, and none that admins added', async () => {
    expect(await codes(sealed([a]), demand)).toEqual(['CHECKPOINT_MISSING in 2']);
    // The second is no key of the policy.
    expect(await codes(sealed([a, b]), demand)).toEqual(['CHECKPOINT_MISSING in 2']);
    expect(await codes(sealed([a, b]), policy({ checkpoint_quorum: 2 }, all(b)))).toEqual([]);
    const maker = begun();
    maker.append(keyEvent('add', all(b)), a);
    maker.seal(a, b);
    expect(await codes(maker, demand)).toEqual(['CHECKPOINT_MISSING in 3']);
    expect(await codes(maker, policy({ checkpoint_quorum: 1 }))).toEqual([]);
  });

  test('may be reached by an attestation, from whose place on it is', async () => {
    const maker = begun();
    const first = maker.seal(a);
    maker.append(attestationOf(first, logLine(b)), a);
    const demands = policy({ checkpoint_quorum: 2, max_unsealed_records: 0 }, all(b));
    expect(await codes(maker, demands)).toEqual(['TAIL_UNSEALED info in 2']);
    maker.append(note(1), a);
    expect(await codes(maker, demands)).toEqual(['TAIL_UNSEALED in 2']);
    // A checkpoint that too few signed seals, but not for this policy.
    maker.seal(a);
    expect(await codes(maker, demands)).toEqual(['TAIL_UNSEALED in 2', 'CHECKPOINT_MISSING warning in 5']);
  });
});

describe('witnesses', () => {
  test('count for a threshold when the policy pins them, whoever else cosigned', async () => {
    const two = policy({ witness_threshold: 2 }, ...WITNESS_KEYS.slice(0, 2));
    expect(await codes(sealed([a]), two)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 1), two)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 1, 3), two)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 1, 2), two)).toEqual([]);
    expect(await codes(sealed([a], 3, 2, 1), two)).toEqual([]);
  });

  test('count for nothing under another name, and not without the log', async () => {
    const maker = begun();
    const text = maker.text();
    const renamed = witnessLine('other.example', w1)(text);
    maker.append(maker.checkpoint([...logLine(a)(text), ...renamed]), a);
    const one = policy({ witness_threshold: 1 }, ...WITNESS_KEYS);
    expect(await codes(maker, one)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([], 1), one)).toEqual(['KEY_UNKNOWN in 2', 'CHECKPOINT_MISSING in 3']);
  });

  test('make up the quorum of a file, by its groups', async () => {
    const lines = [1, 2, 3].map((n) => `witness W${n} ${vkey([w1, w2, w3][n - 1], n)}`);
    const nested = witnesses(...lines, 'group any 1 W1 W2', 'group both all any W3', 'quorum both');
    expect(await codes(sealed([a], 1, 2), nested)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 3), nested)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 2, 3), nested)).toEqual([]);
    const none = witnesses(...lines, 'quorum none');
    expect(await codes(begun(), none)).toEqual([]);
  });

  test('count for nothing under a held note of the empty tree, of a fork or of another log', async () => {
    const one = policy({ witness_threshold: 1, checkpoint_quorum: 1 }, ...WITNESS_KEYS);
    const signed = (text: string): NoteSignature[] => [...logLine(a)(text), ...cosign(1)(text)];
    const sound = begun();
    const fork = begun();
    fork.append(note(1), a);
    const longer = begun();
    longer.append(note(2), a);
    const cases: readonly [LedgerMaker, LedgerMaker, string][] = [
      [new LedgerMaker(), sound, 'CHECKPOINT_MISSING'],
      [fork, longer, 'FORKED'],
    ];
    for (const [noted, ledger, code] of cases) {
      const options = { ...one, ...held(noted, signed) };
      const report = await verify(ledger, options);
      expect(report.verdict).toBe('invalid');
      expect(report.findings.map((finding) => finding.code)).toContain(code);
      expect(report.findings.map((finding) => finding.code)).toContain('CHECKPOINT_MISSING');
      expect(report.not_checked.map((item) => item.code)).toContain('CHECKPOINTS');
    }
    const report = await verify(sound, { ...one, ...held(sound, signed) });
    expect(report.verdict).toBe('ok');
  });

  test('are required by both policies, and both must be met', async () => {
    const file = witnesses(`witness W1 ${vkey(w1, 1)}`, 'quorum W1');
    const both = { ...policy({ witness_threshold: 1 }, witnessKey(w2, 2)), ...file };
    expect(await codes(sealed([a], 1), both)).toEqual(['WITNESS_QUORUM in 2']);
    expect(await codes(sealed([a], 2), both)).toEqual(['WITNESS_QUORUM in 2']);
    const report = await verify(sealed([a], 1, 2), both);
    expect(report.findings).toEqual([]);
    expect(report.checkpoints.signers?.map(({ name, role }) => `${role} ${name}`).sort()).toEqual([
      `log ${ORIGIN}`,
      'witness w1.example',
      'witness w2.example',
    ]);
    expect(report.not_checked.map(({ code }) => code)).toEqual(['TRUNCATION']);
  });

  test('whose cosignature is wrong make the ledger invalid, once for both policies', async () => {
    const maker = begun();
    const text = maker.text();
    const [line] = cosign(1)(text) as [NoteSignature];
    const signature = Uint8Array.from(line.signature, (byte, at) => (at === 20 ? byte ^ 1 : byte));
    maker.append(maker.checkpoint([...logLine(a)(text), { ...line, signature }]), a);
    const file = witnesses(`witness W1 ${vkey(w1, 1)}`, 'quorum W1');
    const both = { ...policy({ witness_threshold: 1 }, witnessKey(w1, 1)), ...file };
    expect(await codes(maker, both)).toEqual(['CHECKPOINT_SIGNATURE_INVALID in 2', 'WITNESS_QUORUM in 2']);
  });
});

test('a policy that its caller changes is read anew by each verification', async () => {
  const pinned = { ...all(a), principals: ['agent:*'] };
  const options: VerifyOptions = { trust: { trust_version: '1', keys: [pinned] } };
  const maker = begun();
  maker.append(note(1, { principal_id: 'agent:a1' }), a);
  const judged = async (): Promise<string[]> =>
    (await codes(maker, options)).filter((code) => /in 2$/.test(code));
  expect(await judged()).toEqual([]);
  pinned.principals[0] = 'human:*';
  expect(await judged()).toEqual(['KEY_NOT_FOR_PRINCIPAL in 2']);
  pinned.principals[0] = 'agent:a1';
  expect(await judged()).toEqual([]);
});

test('a policy drafted from any genesis can be read, and asks for what that promises', async () => {
  const keys = [
    all(a),
    witnessKey(w1, 1),
    keyOf(w2, { roles: ['event', 'witness'] }),
    keyOf(w3, { roles: ['witness'], name: 'w 3' }),
    keyOf(makeSigner('p256'), { roles: ['witness', 'checkpoint'], name: 'p.example' }),
  ];
  const first = genesis(keys, { signing: { events: 'required', checkpoints: 'required' } });
  const draft = draftTrustPolicy(first as unknown as GenesisEvent);
  const trust = parseTrustPolicy(Buffer.from(JSON.stringify(draft)));
  expect(trust.keys.map(({ roles }) => roles)).toEqual([ALL, ['witness'], ['event'], [], ['checkpoint']]);
  const maker = new LedgerMaker();
  maker.append(first, a);
  expect(await codes(maker, { trust })).toEqual(['CHECKPOINT_MISSING in 2']);
  maker.seal(a);
  expect(await codes(maker, { trust })).toEqual([]);
});

describe('how old a checkpoint may be', () => {
  const TIME = '2026-01-02T00:00:00Z';
  const age = policy({ checkpoint_max_age_seconds: 60 });

  test('applies to the last one that meets the policies', async () => {
    const maker = sealed([a]);
    const late = { occurred_at: '2026-01-02T01:00:00Z' };
    maker.append(maker.checkpoint(logLine(b)(maker.text()), late), a);
    expect(await codes(maker, { ...age, now: TIME })).toEqual([
      'KEY_UNKNOWN in 3',
      'TAIL_UNSEALED info in 2',
    ]);
    expect(await codes(maker, { ...age, now: late.occurred_at })).toContain('CHECKPOINT_MISSING in 2');
    maker.append(maker.checkpoint(logLine(a)(maker.text()), late), a);
    expect(await codes(maker, { ...age, now: late.occurred_at })).toEqual(['KEY_UNKNOWN in 3']);
  });

  test('is unknown for one that the user holds, and for a record without a signature', async () => {
    const maker = begun({ signing: { events: 'optional', checkpoints: 'optional' } });
    const kept = held(maker, logLine(a));
    expect(await codes(maker, { ...age, now: TIME, ...kept })).toEqual(['CHECKPOINT_MISSING in 2']);
    maker.append(maker.checkpoint(logLine(a)(maker.text())));
    expect(await codes(maker, { ...age, now: TIME })).toEqual(['CHECKPOINT_MISSING in 2']);
    expect(await codes(maker, policy(undefined))).toEqual([]);
  });

  test('applies to the present where no time is given', async () => {
    expect(await codes(sealed([a]), age)).toEqual(['CHECKPOINT_MISSING in 2']);
    const maker = begun();
    const now = new Date().toISOString();
    maker.append(maker.checkpoint(logLine(a)(maker.text()), { occurred_at: now }), a);
    expect(await codes(maker, age)).toEqual([]);
  });
});
