/**
 * The `add-checkpoint` call of the C2SP witness protocol (https://c2sp.org/tlog-witness): its request, and what a witness
 * answers to it. Pure: what a witness remembers, and whether it does, is for `witness-service.ts`.
 *
 *     old 20852014
 *     PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=
 *
 *     example.com/agents/prod
 *     …
 */

import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import {
  decodeCheckpoint,
  decodeCheckpointText,
  type SignedCheckpoint,
} from '../../format/note/checkpoint.js';
import { isSignedBy, type NoteKey } from '../../format/note/note-key.js';
import type { NoteSignature } from '../../format/note/signed-note.js';
import { verifyNoteSignatures } from '../../format/note/verify-note.js';
import { emptyRange, rangeRoot } from '../../format/tree/compact-range.js';
import { verifyConsistency } from '../../format/tree/proof.js';
import { decodeConsistencyProof } from '../consistency-proof.js';

/** What a client asks a witness to cosign. */
export interface AddCheckpointRequest {
  /** The size that the client thinks the witness has cosigned last. */
  readonly oldSize: number;
  /** The consistency proof from that size, as binary strings. */
  readonly proof: readonly string[];
  readonly note: SignedCheckpoint;
}

/** The tree that a witness has cosigned last of a log. */
export interface WitnessedTree {
  readonly size: number;
  /** A binary string. */
  readonly root: string;
}

/** What a request is worth. */
export type AddCheckpointDecision =
  | {
      readonly status: 200;
      /** The first signature by each of the log's keys that signed: all of theirs are valid. */
      readonly logSignatures: readonly NoteSignature[];
    }
  | {
      readonly status: 400 | 403 | 404 | 409 | 422;
      /** The body of the answer: one line. */
      readonly body: string;
    };

/** The type of the body that an answer with status 409 has: a size in decimal, and a newline. */
export const SIZE_CONTENT_TYPE = 'text/x.tlog.size';

/** Why a body is no request. */
export interface AddCheckpointFault extends Fault<'NOTE_MALFORMED' | 'PROOF_MALFORMED'> {
  /** Where only the signature lines are malformed: the origin of the checkpoint. */
  readonly origin?: string;
}

/** Decodes the body of a request, which has the form of a consistency proof's file. */
export function decodeAddCheckpoint(body: Uint8Array): Result<AddCheckpointRequest, AddCheckpointFault> {
  const parts = decodeConsistencyProof(body);
  if (!parts.ok) return parts;
  const { oldSize, hashes, note } = parts.value;
  const signed = decodeCheckpoint(note);
  return signed.ok
    ? succeed({ oldSize, proof: hashes, note: signed.value })
    : fail({ ...signed.fault, ...originOfText(note) });
}

/** The origin that the text of a malformed note states, where that text at least is a checkpoint. */
function originOfText(note: Uint8Array): { readonly origin?: string } {
  const text = Buffer.from(note).toString();
  const split = text.lastIndexOf('\n\n');
  const checkpoint = decodeCheckpointText(text.slice(0, split + 1));
  return split === -1 || !checkpoint.ok ? {} : { origin: checkpoint.value.origin };
}

/**
 * What a witness answers to a request, by the rules of the protocol and in their order.
 *
 * @param keys - The keys of the log with the checkpoint's origin; `undefined` when there is no such log.
 * @param last - What it has cosigned last of that log.
 */
export function decideAddCheckpoint(
  { oldSize, proof, note }: AddCheckpointRequest,
  keys: readonly NoteKey[] | undefined,
  last: WitnessedTree | undefined,
): AddCheckpointDecision {
  if (keys === undefined) return refuse(404, 'the log is not known here');
  const { valid, invalid } = verifyNoteSignatures(note, keys);
  if (invalid.length > 0) return refuse(403, "a signature of the log's is invalid");
  if (valid.length === 0) return refuse(403, 'there is no signature by a known key of the log');

  const { size, root } = note.checkpoint;
  if (oldSize > size) return refuse(400, "the old size is larger than the checkpoint's");
  const emptyRoot = rangeRoot(emptyRange());
  const { size: lastSize, root: lastRoot } = last ?? { size: 0, root: emptyRoot };
  if (oldSize !== lastSize) return refuse(409, `${lastSize}`);
  if (size === 0 && root !== emptyRoot) return refuse(422, 'the root is not that of an empty tree');
  if (!verifyConsistency({ size1: oldSize, root1: lastRoot, size2: size, root2: root, proof })) {
    return refuse(422, 'the checkpoint is not shown to extend the one cosigned last');
  }
  const logSignatures = keys.flatMap(
    (key) => note.signatures.find((signature) => isSignedBy(signature, key)) ?? [],
  );
  return { status: 200, logSignatures };
}

function refuse(status: 400 | 403 | 404 | 409 | 422, words: string): AddCheckpointDecision {
  return { status, body: `${words}\n` };
}
