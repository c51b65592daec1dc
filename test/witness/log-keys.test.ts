/** Logs whose key name is not their origin, keys of ML-DSA-44, and notes whose signature lines are malformed. */

import { describe, expect, test } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { verifyNoteSignatures } from '../../src/format/note/verify-note.js';
import { makeNoteKey, signNote } from '../../src/format/note/note-key.js';
import {
  formatNote,
  formatSignatureLine,
  parseNote,
  readSignatureLine,
  type NoteSignature,
} from '../../src/format/note/signed-note.js';
import { formatConsistencyProof } from '../../src/proof/consistency-proof.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { createWitness, originHash, originOf } from '../../src/proof/witness/witness-service.js';
import { NOW, openWitness, submit, temporaryFolder, TestLog, witnessKey, WITNESS_NAME } from './support.js';

const ORIGIN = 'go.sum database tree';
const signer = createSigner(generatePrivateKey());
const named = makeNoteKey('sum.example', signer.publicKey, 'ed25519');
const pqSigner = createSigner(generatePrivateKey('ml-dsa-44'));

/** The text of a checkpoint of the log with {@link ORIGIN}. */
function textOf(size: number): string {
  const [, ...rest] = new TestLog('any.example', signer).text(size).split('\n');
  return [ORIGIN, ...rest].join('\n');
}

/** A request for the first checkpoint, its note signed with these lines. */
function request(...lines: readonly string[]): Uint8Array {
  const note = Buffer.from(`${textOf(3)}\n${lines.map((line) => `${line}\n`).join('')}`);
  return formatConsistencyProof({ oldSize: 0, hashes: [], note });
}

const lineUnder = (name: string): string => formatSignatureLine(signNote(textOf(3), name, signer));

describe('a log whose key name is not its origin', () => {
  test('is known by its origin, which has spaces', async () => {
    const logs = [{ ...named, origin: ORIGIN }];
    const stateFolder = temporaryFolder();
    const witness = await openWitness({ logs, stateFolder });
    expect(logs.map(originOf)).toEqual([ORIGIN]);
    expect((await submit(witness, request(lineUnder('sum.example')))).status).toBe(200);
    expect(witness.lastCheckpoint(ORIGIN)?.size).toBe(3);
    expect(witness.lastCheckpoint('sum.example')).toBe(undefined);
    const path = `/${originHash(ORIGIN)}/checkpoint`;
    const { status, body } = await witness.handle({ method: 'GET', path, body: Buffer.alloc(0) });
    expect(status).toBe(200);
    const note = parseNote(Buffer.from(body));
    expect(verifyNoteSignatures(note, [named, witnessKey]).valid).toHaveLength(2);
    await witness.close();
    const again = await openWitness({ logs, stateFolder });
    expect(again.lastCheckpoint(ORIGIN)?.size).toBe(3);
  });

  test('is not known by the name of its key', async () => {
    const witness = await openWitness({ logs: [named], stateFolder: temporaryFolder() });
    expect((await submit(witness, request(lineUnder('sum.example')))).status).toBe(404);
  });

  test('is not signed under another name', async () => {
    const witness = await openWitness({
      logs: [{ ...named, origin: ORIGIN }],
      stateFolder: temporaryFolder(),
    });
    expect((await submit(witness, request(lineUnder('other.example')))).status).toBe(403);
  });
});

describe('signature lines that are malformed', () => {
  const good = lineUnder('sum.example');
  const [, base64 = ''] = / ([^ ]+)$/.exec(good) ?? [];
  // 68 bytes leave bits over in the last character.
  const loose = `${good.slice(0, -2)}${good.at(-2) === 'B' ? 'C' : 'B'}=`;

  test('one line may stand there twice', async () => {
    const witness = await openWitness({
      logs: [{ ...named, origin: ORIGIN }],
      stateFolder: temporaryFolder(),
    });
    expect((await submit(witness, request(good, good))).status).toBe(200);
  });

  test.each([
    ['base64 that is not canonical', [loose]],
    ['no base64', [`${good.slice(0, -base64.length)}!`]],
    ['other text', ['text']],
    ['none', []],
  ])('%s: 403 of a known log, 404 of another', async (_what, lines) => {
    const witness = await openWitness({
      logs: [{ ...named, origin: ORIGIN }],
      stateFolder: temporaryFolder(),
    });
    expect((await submit(witness, request(...lines))).status).toBe(403);
    const stranger = await openWitness({ logs: [named], stateFolder: temporaryFolder() });
    expect((await submit(stranger, request(...lines))).status).toBe(404);
    expect((await submit(witness, 'old 0\n\ntext\n\n')).status).toBe(400);
  });
});

describe('ML-DSA-44', () => {
  const log = new TestLog('log.example/a');
  const key = makeNoteKey(log.origin, pqSigner.publicKey, 'ml-dsa-44');

  /** A request from 3 to 4, or for 3, with these lines. */
  const requestOf = (size: number, signatures: readonly NoteSignature[]): Uint8Array =>
    formatConsistencyProof({
      oldSize: size === 3 ? 0 : 3,
      hashes: size === 3 ? [] : log.proof(3, size),
      note: Buffer.from(formatNote({ text: log.text(size), signatures })),
    });
  const ed25519Line = (size: number): NoteSignature => signNote(log.text(size), log.origin, log.signer);
  const pqLine = (size: number): NoteSignature => signNote(log.text(size), log.origin, pqSigner, NOW);

  test('signs for a log, alone or beside an Ed25519 key', async () => {
    const witness = await openWitness({ logs: [log.key, key], stateFolder: temporaryFolder() });
    expect((await submit(witness, requestOf(3, [pqLine(3)]))).status).toBe(200);
    const line = pqLine(4);
    const signature = Uint8Array.from(line.signature, (byte, at) => (at === 900 ? byte ^ 1 : byte));
    expect((await submit(witness, requestOf(4, [ed25519Line(4), { ...line, signature }]))).status).toBe(403);
    expect((await submit(witness, requestOf(4, [ed25519Line(4), line]))).status).toBe(200);
    expect(witness.lastCheckpoint(log.origin)?.size).toBe(4);
  });

  test('is what a witness cosigns with, and knows its own state by', async () => {
    const options = { logs: [log.key], stateFolder: temporaryFolder(), signer: pqSigner };
    const witness = await openWitness(options);
    expect(witness.key.type).toBe('ml-dsa-44');
    const { status, body } = await submit(witness, requestOf(3, [ed25519Line(3)]));
    expect(status).toBe(200);
    const line = readSignatureLine(body.trimEnd())!;
    const { valid } = verifyNoteSignatures({ text: log.text(3), signatures: [line] }, [witness.key]);
    expect(valid.map(({ timestamp }) => timestamp)).toEqual([NOW]);
    await witness.close();
    expect((await openWitness(options)).lastCheckpoint(log.origin)?.size).toBe(3);
  });

  test('of a log is no key of a witness under the same name', async () => {
    const stateFolder = temporaryFolder();
    await expect(
      createWitness({ name: log.origin, signer: pqSigner, logs: [key], stateFolder }),
    ).rejects.toThrow(RangeError);
    const long = { ...log.key, origin: 'o'.repeat(256) };
    await expect(
      createWitness({ name: WITNESS_NAME, signer: pqSigner, logs: [long], stateFolder }),
    ).rejects.toThrow(RangeError);
  });
});
