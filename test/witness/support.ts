/** Logs whose tree is in memory, and what a witness is asked about them. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { generatePrivateKey } from '../../src/format/key/private-key.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { makeNoteKey, signNote, type NoteKey } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { consistencyRanges, RangeHasher } from '../../src/format/tree/proof.js';
import { formatConsistencyProof } from '../../src/proof/consistency-proof.js';
import { createWitness, type Witness, type WitnessOptions } from '../../src/proof/witness/witness-service.js';

/** A log of lines `VIEW 0`, `VIEW 1`, …: two views agree in nothing, or in the first `shared` lines. */
export class TestLog {
  readonly origin: string;
  readonly signer: Signer;
  readonly key: NoteKey;
  readonly #view: string;
  readonly #shared: number;

  constructor(origin: string, signer = createSigner(generatePrivateKey()), view = 'a', shared = 0) {
    this.origin = origin;
    this.signer = signer;
    this.key = makeNoteKey(origin, signer.publicKey, 'ed25519');
    this.#view = view;
    this.#shared = shared;
  }

  /** The same log as it is shown to somebody else. */
  fork(view: string, shared = 0): TestLog {
    return new TestLog(this.origin, this.signer, view, shared);
  }

  #leaf(index: number): string {
    return leafHash(Buffer.from(`${index < this.#shared ? 'a' : this.#view} ${index}`));
  }

  root(size: number): string {
    const range = emptyRange();
    for (let n = 0; n < size; n += 1) appendLeaf(range, this.#leaf(n));
    return rangeRoot(range);
  }

  text(size: number, extensions: readonly string[] = []): string {
    return formatCheckpoint({ origin: this.origin, size, root: this.root(size), extensions });
  }

  note(size: number, extensions: readonly string[] = []): string {
    return this.sign(this.text(size, extensions));
  }

  sign(text: string): string {
    return formatNote({ text, signatures: [signNote(text, this.origin, this.signer)] });
  }

  proof(oldSize: number, size: number): string[] {
    const hasher = new RangeHasher(consistencyRanges(oldSize, size));
    for (let n = 0; n < size; n += 1) hasher.push(this.#leaf(n));
    return hasher.roots();
  }

  request(oldSize: number, size: number): Uint8Array {
    return formatConsistencyProof({
      oldSize,
      hashes: this.proof(oldSize, size),
      note: Buffer.from(this.note(size)),
    });
  }
}

export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-witness-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

export const WITNESS_NAME = 'witness.example/w1';
export const witnessSigner = createSigner(generatePrivateKey());
export const witnessKey = makeNoteKey(WITNESS_NAME, witnessSigner.publicKey, 'cosignature');

/** The time at which every test takes place unless it says otherwise, in seconds. */
export const NOW = 1_800_000_000;

/** A witness that is closed at the end of the test. */
export async function openWitness(
  options: Partial<WitnessOptions> & Pick<WitnessOptions, 'logs' | 'stateFolder'>,
): Promise<Witness> {
  const witness = await createWitness({
    name: WITNESS_NAME,
    signer: witnessSigner,
    now: () => NOW * 1000 + 999,
    ...options,
  });
  onTestFinished(() => witness.close().catch(() => undefined));
  return witness;
}

export function submit(witness: Witness, body: Uint8Array | string): ReturnType<Witness['handle']> {
  return witness.handle({ method: 'POST', path: '/add-checkpoint', body: Buffer.from(body) });
}
