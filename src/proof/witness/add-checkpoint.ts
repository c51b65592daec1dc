/**
 * The `add-checkpoint` call of the C2SP witness protocol (https://c2sp.org/tlog-witness): requests and decisions. Pure: state is in
 * `witness-service.ts`.
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

interface AddCheckpointRequest {
  /** The size that the witness cosigned last, as far as the client knows. */
  readonly oldSize: number;
  /** The consistency proof from that size, as binary strings. */
  readonly proof: readonly string[];
  readonly note: SignedCheckpoint;
}

/** The last cosigned tree of a log. */
interface WitnessedTree {
  readonly size: number;
  /** A binary string. */
  readonly root: string;
}

export type AddCheckpointDecision =
  | {
      readonly status: 200;
      /** One valid signature by each key of the log that signed. */
      readonly logSignatures: readonly NoteSignature[];
    }
  | {
      readonly status: 400 | 403 | 404 | 409 | 422;
      /** The response body: one line. */
      readonly body: string;
      /** Whether it is another tree than the one cosigned last, or is not shown to extend it. */
      readonly isInconsistent?: true;
    };

/** The content type of a 409 response to another old size: a decimal size and a newline. */
export const SIZE_CONTENT_TYPE = 'text/x.tlog.size';

interface AddCheckpointFault extends Fault<'NOTE_MALFORMED' | 'PROOF_MALFORMED'> {
  /** The origin of the checkpoint, if only the signature lines are malformed. */
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

/** The origin of a malformed note whose text is a valid checkpoint. */
function originOfText(note: Uint8Array): { readonly origin?: string } {
  const text = Buffer.from(note).toString();
  const split = text.lastIndexOf('\n\n');
  const checkpoint = decodeCheckpointText(text.slice(0, split + 1));
  return split === -1 || !checkpoint.ok ? {} : { origin: checkpoint.value.origin };
}

/**
 * Decides a request by the rules of the protocol, in their order.
 *
 * @param keys - The keys of the log with the checkpoint's origin; undefined for an unknown log.
 * @param last - The last cosigned tree of that log.
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
    const isOther = size === lastSize && proof.length === 0;
    const refused = isOther
      ? refuse(409, 'the checkpoint has another root than the one of that size cosigned last')
      : refuse(422, 'the checkpoint is not shown to extend the one cosigned last');
    return { ...refused, isInconsistent: true };
  }
  const logSignatures = keys.flatMap(
    (key) => note.signatures.find((signature) => isSignedBy(signature, key)) ?? [],
  );
  return { status: 200, logSignatures };
}

function refuse(
  status: 400 | 403 | 404 | 409 | 422,
  words: string,
): Exclude<AddCheckpointDecision, { status: 200 }> {
  return { status, body: `${words}\n` };
}
