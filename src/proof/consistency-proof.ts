/**
 * The file of a consistency proof: that the tree of a checkpoint extends an older one. It has the form in which a log shows
 * that to a witness, the body of `add-checkpoint` (https://c2sp.org/tlog-witness).
 *
 *     old 20852014
 *     base64(hash)
 *
 *     the new checkpoint
 *
 * This is the format only. The checkpoint is not looked into, and nothing is verified: see `verify-consistency.ts`.
 */

import type { NoteFault } from '../note/signed-note.js';
import {
  formatProofText,
  orThrowMalformed,
  readHashLines,
  splitProofText,
  tryParseDecimal,
} from './proof-text.js';

/** What the file of a consistency proof says. */
export interface ConsistencyProof {
  /** The size of the older tree. */
  readonly oldSize: number;
  /** Binary strings of 32 characters, at most 63. */
  readonly hashes: readonly string[];
  /** The newer signed checkpoint as it stands. */
  readonly note: Uint8Array;
}

const OLD = 'old ';

/** Reads the file of a consistency proof, of at most 1 MiB; what is wrong with it is returned. */
export function readConsistencyProof(bytes: Uint8Array): ConsistencyProof | NoteFault {
  const parts = splitProofText(bytes);
  if ('expected' in parts) return parts;
  const [first = '', ...rest] = parts.lines;
  const oldSize = first.startsWith(OLD) ? tryParseDecimal(first.slice(OLD.length)) : undefined;
  if (oldSize === undefined) {
    return {
      expected: 'a first line with the old size, in decimal, of at most 2^53 - 1',
      actual: 'other text',
    };
  }
  const proof = readHashLines(rest);
  return 'expected' in proof ? proof : { oldSize, hashes: proof.hashes, note: parts.note };
}

/** @throws NorthrootError `PROOF_MALFORMED` */
export function parseConsistencyProof(bytes: Uint8Array): ConsistencyProof {
  return orThrowMalformed(readConsistencyProof(bytes));
}

/** The bytes of a consistency proof's file. */
export function formatConsistencyProof({ oldSize, hashes, note }: ConsistencyProof): Uint8Array {
  return formatProofText([`${OLD}${oldSize}`], hashes, note);
}
