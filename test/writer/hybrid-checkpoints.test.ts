/** Checkpoints whose notes are signed with Ed25519 and ML-DSA-44, and policies that ask for both. */

import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { formatPublicKey, formatPublicKeyAs } from '../../src/format/key/public-key.js';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { cosignNote, makeNoteKey } from '../../src/format/note/note-key.js';
import { formatSignatureLine, parseNote, type NoteSignature } from '../../src/format/note/signed-note.js';
import { openLedgerSource } from '../../src/log/fs/source.js';
import { makeProof } from '../../src/proof/make-proof.js';
import { parseProofKey } from '../../src/proof/proof-keys.js';
import { verifyProof } from '../../src/proof/verify-proof.js';
import { LedgerView } from '../../src/log/read/ledger-view.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { parseTrustPolicy } from '../../src/rules/trust/trust-policy.js';
import { parseWitnessPolicy } from '../../src/rules/trust/witness-policy.js';
import { attestCheckpoint } from '../../src/proof/witness/attest.js';
import type { CheckpointResult, Ledger } from '../../src/log/writer/ledger.js';
import { codeOf, draft, NOON, openLedger, readRecords, signer, temporaryFolder } from './support.js';

const ORIGIN = 'example.com/tests/writer';
const SECONDS = Date.parse(NOON) / 1000;

const pqSigner = createSigner(generatePrivateKey('ml-dsa-44'));
const pqWitness = createSigner(generatePrivateKey('ml-dsa-44'));

function entry({ publicKey }: Signer, roles: Key['roles'], name?: string): Key {
  return {
    keyid: publicKey.keyid,
    public_key: formatPublicKey(publicKey),
    roles,
    principals: ['*'],
    ...(name === undefined ? {} : { name }),
  };
}

const LOG_KEYS = [entry(signer, ['event', 'checkpoint', 'admin']), entry(pqSigner, ['checkpoint'])];
const WITNESS = entry(pqWitness, ['witness'], 'w.example/pq');

function policyOf(keys: readonly Key[], require: TrustPolicy['require']): TrustPolicy {
  return parseTrustPolicy(
    Buffer.from(JSON.stringify({ trust_version: '1', origins: [ORIGIN], keys, require })),
  );
}

/** A ledger with the keys of {@link LOG_KEYS} and a checkpoint whose note `noteSigners` sign. */
async function seal(
  noteSigners: readonly Signer[],
): Promise<{ path: string; ledger: Ledger; made: CheckpointResult }> {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, {
    create: { origin: ORIGIN, keys: LOG_KEYS },
    checkpoints: true,
    noteSigners,
  });
  await ledger.append({ event: draft(1) });
  return { path, ledger, made: await ledger.checkpoint() };
}

async function codesOf(path: string, trust: TrustPolicy, witnesses?: string): Promise<string[]> {
  const witnessPolicy = witnesses === undefined ? undefined : parseWitnessPolicy(Buffer.from(witnesses));
  const { verdict, findings } = await verifyLedger(path, {
    trust,
    ...(witnessPolicy === undefined ? {} : { witnessPolicy }),
  });
  return [verdict, ...findings.filter(({ severity }) => severity === 'error').map(({ code }) => code)];
}

const lineOf = (made: CheckpointResult): readonly NoteSignature[] =>
  parseNote(Buffer.from(made.note)).signatures;

describe('the note of a checkpoint', () => {
  test('is signed with each of the keys, the record with the one that may', async () => {
    const { path, ledger, made } = await seal([signer, pqSigner, signer]);
    await ledger.close();
    const keys = [
      makeNoteKey(ORIGIN, signer.publicKey, 'ed25519'),
      makeNoteKey(ORIGIN, pqSigner.publicKey, 'ml-dsa-44'),
    ];
    expect(lineOf(made).map(({ name, keyId }) => [name, keyId])).toEqual(
      keys.map(({ keyId }) => [ORIGIN, keyId]),
    );
    const [, line] = lineOf(made);
    expect(Buffer.from(line.signature).readBigUInt64BE()).toBe(BigInt(SECONDS));
    const record = readRecords(path).at(-1) as unknown as { signatures: { keyid: string }[] };
    expect(record.signatures.map(({ keyid }) => keyid)).toEqual([signer.publicKey.keyid]);
    expect((await verifyLedger(path)).verdict).toBe('ok');
  });

  test('can be signed with ML-DSA-44 alone', async () => {
    const { path, ledger } = await seal([pqSigner]);
    await ledger.close();
    const report = await verifyLedger(path);
    expect([report.verdict, report.checkpoints.last_tree_size]).toEqual(['ok', 2]);
  });

  test('is not made with a key that may not sign it', async () => {
    const stranger = createSigner(generatePrivateKey('ml-dsa-44'));
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path, { checkpoints: true, noteSigners: [signer, stranger] });
    expect(await codeOf(ledger.checkpoint())).toBe('KEY_UNKNOWN');
    expect(readRecords(path)).toHaveLength(1);
  });
});

describe('a policy that asks for both keys of the log', () => {
  const both = policyOf(LOG_KEYS, { checkpoints: 'required', checkpoint_quorum: 2 });

  test('is met by a hybrid note', async () => {
    const { path, ledger } = await seal([signer, pqSigner]);
    await ledger.close();
    expect(await codesOf(path, both)).toEqual(['ok']);
  });

  test.each([
    ['Ed25519', [signer]],
    ['ML-DSA-44', [pqSigner]],
  ])('is not met by a note of %s alone', async (_name, noteSigners) => {
    const { path, ledger } = await seal(noteSigners);
    await ledger.close();
    expect(await codesOf(path, both)).toEqual(['invalid', 'CHECKPOINT_MISSING']);
    expect(await codesOf(path, policyOf(LOG_KEYS, { checkpoint_quorum: 1 }))).toEqual(['ok']);
  });

  test('is not met when the ML-DSA-44 line is wrong, or of another key', async () => {
    const { path, ledger, made } = await seal([signer, pqSigner]);
    await ledger.close();
    const [, line] = lineOf(made);
    const base64 = formatSignatureLine(line);
    const at = base64.length - 100;
    const changed = `${base64.slice(0, at)}${base64[at] === 'A' ? 'B' : 'A'}${base64.slice(at + 1)}`;
    const anchor = Buffer.from(made.note.replace(base64, changed));
    const report = await verifyLedger(path, { trust: both, checkpoints: [{ name: 'anchor', note: anchor }] });
    expect(report.findings.map(({ code }) => code)).toContain('CHECKPOINT_SIGNATURE_INVALID');
    const other = entry(createSigner(generatePrivateKey('ml-dsa-44')), ['checkpoint']);
    const keys = [LOG_KEYS[0], other];
    expect(await codesOf(path, policyOf(keys, { checkpoint_quorum: 2 }))).toEqual([
      'invalid',
      'CHECKPOINT_MISSING',
    ]);
  });
});

describe('witnesses with ML-DSA-44 keys', () => {
  /** Has the witness sign at a time, and appends its line. */
  async function attest(
    path: string,
    ledger: Ledger,
    made: CheckpointResult,
    lines: readonly NoteSignature[],
  ) {
    return attestCheckpoint((use) => use(ledger), made, {
      urls: ['http://witness.example'],
      keys: lines.map(({ name }, index) => makeNoteKey(name, witnesses[index].publicKey, 'ml-dsa-44')),
      view: new LedgerView(path),
      fetch: () =>
        Promise.resolve(new Response(lines.map((line) => `${formatSignatureLine(line)}\n`).join(''))),
    });
  }
  const witnesses = [
    pqWitness,
    ...Array.from({ length: 19 }, () => createSigner(generatePrivateKey('ml-dsa-44'))),
  ];

  test('count for trust policies and witness policies, and nothing else in their place', async () => {
    const { path, ledger, made } = await seal([signer]);
    const { text } = parseNote(Buffer.from(made.note));
    const { cosignatures } = await attest(path, ledger, made, [
      cosignNote(text, 'w.example/pq', pqWitness, SECONDS),
    ]);
    expect(cosignatures).toHaveLength(1);
    await ledger.close();
    const policy = policyOf([...LOG_KEYS, WITNESS], { witness_threshold: 1 });
    expect(await codesOf(path, policy)).toEqual(['ok']);
    const other = entry(witnesses[1], ['witness'], 'w.example/pq');
    expect(await codesOf(path, policyOf([...LOG_KEYS, other], { witness_threshold: 1 }))).toEqual([
      'invalid',
      'WITNESS_QUORUM',
    ]);
    const log = `log ${formatPublicKeyAs(signer.publicKey, 'vkey', ORIGIN)}\n`;
    const vkey = formatPublicKeyAs(pqWitness.publicKey, 'vkey', 'w.example/pq');
    const plain = policyOf(LOG_KEYS, {});
    expect(await codesOf(path, plain, `${log}witness W ${vkey}\nquorum W\n`)).toEqual(['ok']);
    const otherVkey = formatPublicKeyAs(witnesses[1].publicKey, 'vkey', 'w.example/pq');
    expect(await codesOf(path, plain, `${log}witness W ${otherVkey}\nquorum W\n`)).toEqual([
      'invalid',
      'WITNESS_QUORUM',
    ]);
    const unknown = `witness W w+00000000+${Buffer.from([9, 1]).toString('base64')}\nquorum W\n`;
    expect(await codesOf(path, plain, `${log}${unknown}`)).toEqual(['invalid', 'WITNESS_QUORUM']);
    const unknownLog = `log l+00000000+${Buffer.from([2, 1]).toString('base64')}\nquorum none\n`;
    expect(await codesOf(path, plain, unknownLog)).toEqual(['invalid', 'CHECKPOINT_MISSING']);
  });

  test('go into as many attestations as it takes', async () => {
    const { path, ledger, made } = await seal([signer, pqSigner]);
    const { text } = parseNote(Buffer.from(made.note));
    const lines = witnesses.map((each, index) => cosignNote(text, `witness.example/${index}`, each, SECONDS));
    const { cosignatures, note } = await attest(path, ledger, made, lines);
    await ledger.close();
    expect(cosignatures).toHaveLength(20);
    expect(parseNote(Buffer.from(note)).signatures).toHaveLength(22);
    expect(
      readRecords(path)
        .slice(-2)
        .map(({ event }) => event['event_type']),
    ).toEqual(['attestation', 'attestation']);
    const longest = Math.max(
      ...readFileSync(path, 'utf8')
        .split('\n')
        .map((line) => line.length),
    );
    expect(longest).toBeLessThan(65_536);
    expect(longest).toBeGreaterThan(55_000);
    const keys = [
      ...LOG_KEYS,
      ...witnesses.map((each, index) => entry(each, ['witness'], `witness.example/${index}`)),
    ];
    expect(await codesOf(path, policyOf(keys, { witness_threshold: 20 }))).toEqual(['ok']);
  });
});

describe('an ML-DSA-44 line under the name of the log', () => {
  test("is the log's alone, where the key is one of the log's and of a witness", async () => {
    const { path, ledger } = await seal([signer, pqSigner]);
    await ledger.close();
    // A policy has to have somebody else who could cosign.
    const keys = [LOG_KEYS[0], entry(pqSigner, ['checkpoint', 'witness'], ORIGIN), WITNESS];
    expect(await codesOf(path, policyOf(keys, { checkpoint_quorum: 2 }))).toEqual(['ok']);
    expect(await codesOf(path, policyOf(keys, { witness_threshold: 1 }))).toEqual([
      'invalid',
      'WITNESS_QUORUM',
    ]);
  });

  test("is a witness's, where the key is a witness's alone", async () => {
    const { path, ledger } = await seal([signer, pqSigner]);
    await ledger.close();
    const keys = [LOG_KEYS[0], entry(pqSigner, ['witness'], ORIGIN)];
    expect(await codesOf(path, policyOf(keys, { witness_threshold: 1 }))).toEqual(['ok']);
    const third = entry(createSigner(generatePrivateKey()), ['checkpoint']);
    expect(await codesOf(path, policyOf([...keys, third], { checkpoint_quorum: 2 }))).toEqual([
      'invalid',
      'CHECKPOINT_MISSING',
    ]);
  });
});

describe('proofs of a hybrid ledger', () => {
  /** A proof of the ledger's second record, under the checkpoint that `noteSigners` signed. */
  async function proofOf(noteSigners: readonly Signer[]): Promise<Uint8Array> {
    const { path, ledger } = await seal(noteSigners);
    await ledger.close();
    return (await makeProof(() => openLedgerSource(path), '1')).bytes;
  }
  const both = policyOf(LOG_KEYS, { checkpoint_quorum: 2 });

  test('meet a policy that asks for both kinds, or do not', async () => {
    const hybrid = await proofOf([signer, pqSigner]);
    expect(verifyProof(hybrid, { policy: both }).verdict).toBe('ok');
    const { verdict, problems } = verifyProof(await proofOf([signer]), { policy: both });
    expect([verdict, ...problems.map(({ code }) => code)]).toEqual(['invalid', 'CHECKPOINT_MISSING']);
  });

  test('are verified with an ML-DSA-44 key alone, in any form', async () => {
    const hybrid = await proofOf([signer, pqSigner]);
    for (const key of [
      formatPublicKey(pqSigner.publicKey),
      formatPublicKeyAs(pqSigner.publicKey, 'vkey', ORIGIN),
    ]) {
      const { checkpoint_signers: signers } = verifyProof(hybrid, { keys: [parseProofKey(key)] });
      expect(signers.log).toEqual([formatPublicKeyAs(pqSigner.publicKey, 'vkey', ORIGIN)]);
      expect(signers.unverified).toBe(1);
    }
    const elsewhere = parseProofKey(formatPublicKeyAs(pqSigner.publicKey, 'vkey', 'other.example/log'));
    expect(verifyProof(hybrid, { keys: [elsewhere] }).checkpoint_signers.log).toEqual([]);
  });

  test('are not believed under a witness policy that names only logs of unknown types', async () => {
    const witnessPolicy = parseWitnessPolicy(
      Buffer.from(`log l+00000000+${Buffer.from([2, 1]).toString('base64')}\nquorum none\n`),
    );
    const { problems } = verifyProof(await proofOf([signer, pqSigner]), { policy: both, witnessPolicy });
    expect(problems.map(({ code }) => code)).toEqual(['CHECKPOINT_MISSING']);
  });
});
