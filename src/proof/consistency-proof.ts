/**
 * The format of a consistency proof: the body of `add-checkpoint` (https://c2sp.org/tlog-witness). `verify-consistency.ts` verifies it.
 *
 *     old 20852014
 *     base64(hash)
 *
 *     the new checkpoint
 */

import { succeed } from '../base/fault.js';
import {
  decodeHashLines,
  decodeProofText,
  formatProofText,
  malformed,
  type ProofFileResult,
  tryParseDecimal,
} from './proof-text.js';

interface ConsistencyProof {
  readonly oldSize: number;
  /** Binary strings of 32 characters, at most 63. */
  readonly hashes: readonly string[];
  /** The newer signed checkpoint, verbatim. */
  readonly note: Uint8Array;
}

const OLD = 'old ';

/** Decodes the file of a consistency proof, of at most 1 MiB. */
export function decodeConsistencyProof(bytes: Uint8Array): ProofFileResult<ConsistencyProof> {
  const parts = decodeProofText(bytes);
  if (!parts.ok) return parts;
  const [first = '', ...rest] = parts.value.lines;
  const oldSize = first.startsWith(OLD) ? tryParseDecimal(first.slice(OLD.length)) : undefined;
  if (oldSize === undefined)
    return malformed('a first line with the old size, in decimal, of at most 2^53 - 1', 'other text');
  const hashes = decodeHashLines(rest);
  return hashes.ok ? succeed({ oldSize, hashes: hashes.value, note: parts.value.note }) : hashes;
}

/** The bytes of a consistency proof's file. */
export function formatConsistencyProof({ oldSize, hashes, note }: ConsistencyProof): Uint8Array {
  return formatProofText([`${OLD}${oldSize}`], hashes, note);
}
