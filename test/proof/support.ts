/** What the tests of proofs share: a sealed ledger in memory, and the notes of its checkpoints. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buildCheckpoint } from '../../src/format/event/build.js';
import { bytesSource } from '../bytes-source.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { formatRecord } from '../../src/format/record/record.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, makeNoteKey, signNote } from '../../src/format/note/note-key.js';
import { formatNote, type NoteSignature } from '../../src/format/note/signed-note.js';
import type { OpenLedger } from '../../src/rules/source/read-lines.js';
import type { ProofKey } from '../../src/proof/proof-keys.js';
import { createSigner, type Signer } from '../../src/format/signature/signer.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
} from '../../src/format/tree/compact-range.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { ed25519Key } from '../key/key-samples.js';
import { ledgerOf, linesOf } from '../verify/support.js';

export const ORIGIN = 'example.com/tests/proofs';
export const NOON = '2026-01-01T12:00:00Z';
export const TIME = 1_767_268_800;

export const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
export const witness = createSigner(ed25519Key(Buffer.alloc(32, 2)));
export const stranger = createSigner(ed25519Key(Buffer.alloc(32, 3)));

/** The ledger's key, as a user would give it. */
export const logKey: ProofKey = { kind: 'public-key', key: signer.publicKey };
export const witnessKey: ProofKey = {
  kind: 'note-key',
  key: makeNoteKey('witness.example/w1', witness.publicKey, 'cosignature'),
};

/** The root over lines as a binary string. */
export function rootOf(lines: readonly Uint8Array[]): string {
  const tree = emptyRange();
  for (const line of lines) appendLeaf(tree, leafHash(line));
  return rangeRoot(tree);
}

export interface NoteOptions {
  readonly origin?: string;
  readonly by?: Signer;
  readonly root?: string;
  readonly further?: readonly NoteSignature[];
}

/** The text of the checkpoint over lines. */
export function checkpointText(
  lines: readonly Uint8Array[],
  { origin = ORIGIN, root }: NoteOptions = {},
): string {
  return formatCheckpoint({ origin, size: lines.length, root: root ?? rootOf(lines), extensions: [] });
}

/** A signed checkpoint over lines. */
export function noteOf(lines: readonly Uint8Array[], options: NoteOptions = {}): Buffer {
  const { origin = ORIGIN, by = signer, further = [] } = options;
  const text = checkpointText(lines, options);
  return Buffer.from(formatNote({ text, signatures: [signNote(text, origin, by), ...further] }));
}

export function cosignatureOf(lines: readonly Uint8Array[]): NoteSignature {
  return cosignNote(checkpointText(lines), 'witness.example/w1', witness, TIME);
}

/** A ledger as a test wants it. */
export interface LedgerPlan {
  /** How many events stand before each checkpoint, and after the last one. */
  readonly events: readonly number[];
  /** Whether an attestation with a witness's cosignature follows the last checkpoint. */
  readonly attested?: boolean;
}

/** Makes a ledger by appending: genesis, then events and checkpoints as planned. Its lines, without their newlines. */
export async function makeLines({ events, attested = false }: LedgerPlan): Promise<Buffer[]> {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-proof-'));
  const path = join(folder, 'ledger.jsonl');
  const lines = (): Buffer[] => linesOf(readFileSync(path));
  const ledger = await Ledger.open(path, {
    signer,
    create: { origin: ORIGIN },
    now: () => NOON,
    principalId: 'agent:a1',
  });
  let n = 0;
  for (const [i, count] of events.entries()) {
    for (let k = 0; k < count; k += 1) await ledger.append({ event: { event_type: 'x.test', n: (n += 1) } });
    if (i === events.length - 1) break;
    const before = lines();
    const { event } = JSON.parse(before.at(-1)!.toString()) as { event: { event_id: object } };
    const { eventId } = await ledger.append({
      event: {
        event_type: 'checkpoint',
        tree_size: before.length,
        root: { alg: 'sha-256', b64: hashToBase64url(rootOf(before)) },
        chain_tip_event_id: event.event_id,
        note: noteOf(before).toString(),
      },
    });
    if (attested && i === events.length - 2) {
      const text = checkpointText(before);
      await ledger.append({
        event: {
          event_type: 'attestation',
          checkpoint_event_id: { alg: 'sha-256', b64: eventId.slice('sha-256:'.length) },
          note: formatNote({ text, signatures: [cosignatureOf(before)] }),
        },
      });
    }
  }
  await ledger.close();
  const made = lines();
  rmSync(folder, { recursive: true });
  return made;
}

/** A checkpoint record after these lines, with any note in it. */
export function checkpointLine(lines: readonly Uint8Array[], note: Uint8Array): Buffer {
  const digest = (b64: string): { alg: 'sha-256'; b64: string } => ({ alg: 'sha-256', b64 });
  const event = buildCheckpoint({
    tree_size: lines.length,
    root: digest(hashToBase64url(rootOf(lines))),
    chain_tip_event_id: digest('A'.repeat(43)),
    note: Buffer.from(note).toString(),
    occurred_at: NOON,
    principal_id: 'service:ledger',
  });
  const parts = { eventText: canonicalText(event), prev: 'A'.repeat(43), seq: lines.length, signatures: [] };
  return Buffer.from(formatRecord(parts)).subarray(0, -1);
}

/** A ledger of these lines that can be opened again and again. */
export function opener(lines: readonly Uint8Array[]): OpenLedger {
  const bytes = ledgerOf(lines);
  return () => Promise.resolve(bytesSource(bytes, 'ledger.jsonl'));
}
