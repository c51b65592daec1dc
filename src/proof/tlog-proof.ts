/**
 * The `c2sp.org/tlog-proof@v1` format (https://c2sp.org/tlog-proof, SPEC §6) of an inclusion proof. `verify-proof.ts` verifies it.
 *
 *     c2sp.org/tlog-proof@v1
 *     extra base64(opaque data; here: the record's line)
 *     index 73894
 *     base64(hash), from the leaf's sibling up
 *
 *     the checkpoint
 */

import { encodeBase64, tryDecodeBase64 } from '../base/bytes/encoding.js';
import { succeed } from '../base/fault.js';
import {
  decodeHashLines,
  decodeProofText,
  formatProofText,
  malformed,
  type ProofFileResult,
  tryParseDecimal,
} from './proof-text.js';

export interface TlogProof {
  /** Opaque, unauthenticated data of at least one byte, if any. */
  readonly extra: Uint8Array | undefined;
  /** The position of the entry in the log, from 0. */
  readonly index: number;
  /** The inclusion proof, from the leaf's sibling up: binary strings of 32 characters, at most 63. */
  readonly hashes: readonly string[];
  /** The signed checkpoint, verbatim. */
  readonly note: Uint8Array;
}

const HEADER = 'c2sp.org/tlog-proof@v1';
const EXTRA = 'extra ';
const INDEX = 'index ';

/** Decodes a tlog-proof file of at most 1 MiB. */
export function decodeTlogProof(bytes: Uint8Array): ProofFileResult<TlogProof> {
  const parts = decodeProofText(bytes);
  if (!parts.ok) return parts;
  const lines = [...parts.value.lines];
  if (lines.shift() !== HEADER) return malformed(`the first line ${HEADER}`, 'other text');
  let extra: Uint8Array | undefined;
  if (lines[0]?.startsWith(EXTRA)) {
    extra = tryDecodeBase64((lines.shift() as string).slice(EXTRA.length));
    if (extra === undefined || extra.length === 0) return malformed('extra data in base64', 'other text');
  }
  const indexLine = lines.shift() ?? '';
  const index = indexLine.startsWith(INDEX) ? tryParseDecimal(indexLine.slice(INDEX.length)) : undefined;
  if (index === undefined)
    return malformed('a line with the index, in decimal, of at most 2^53 - 1', 'other text');
  const hashes = decodeHashLines(lines);
  return hashes.ok ? succeed({ extra, index, hashes: hashes.value, note: parts.value.note }) : hashes;
}

/** The bytes of a tlog-proof file. */
export function formatTlogProof({ extra, index, hashes, note }: TlogProof): Uint8Array {
  const extraLine = extra === undefined ? [] : [`${EXTRA}${encodeBase64(extra)}`];
  return formatProofText([HEADER, ...extraLine, `${INDEX}${index}`], hashes, note);
}
