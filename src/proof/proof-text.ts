/** The common form of proof files: lines of ASCII, the last ones hashes, then an empty line and a checkpoint, verbatim. */

import { concatBytes } from '../base/bytes/concat.js';
import { decodeLatin1, encodeUtf8 } from '../base/bytes/text.js';
import { fail, type Fault, type Result, succeed } from '../base/fault.js';
import { excerptText } from '../base/json/excerpt.js';
import { MAX_NOTE_BYTES } from '../format/note/signed-note.js';
import { hashToBase64, tryHashFromBase64 } from '../format/tree/compact-range.js';

/** The largest proof file, in bytes: the largest note, and as much again. */
export const MAX_PROOF_BYTES = 2 * MAX_NOTE_BYTES;
/** No tree is higher; tlog-witness allows as many. */
const MAX_PROOF_HASHES = 63;

export type ProofFileResult<T> = Result<T, Fault<'PROOF_MALFORMED'>>;

interface ProofText {
  /** The lines before the empty one, without their newlines. */
  readonly lines: readonly string[];
  /** What follows the empty line. */
  readonly note: Uint8Array;
}

/** Splits a proof file at its first empty line. */
export function decodeProofText(bytes: Uint8Array): ProofFileResult<ProofText> {
  if (bytes.length > MAX_PROOF_BYTES)
    return malformed(`a proof of at most ${MAX_PROOF_BYTES} bytes`, `${bytes.length} bytes`);
  const text = decodeLatin1(bytes);
  const split = text.indexOf('\n\n');
  if (split === -1) return malformed('an empty line before the checkpoint', 'none');
  const lines = text.slice(0, split).split('\n');
  return succeed({ lines, note: bytes.slice(split + 2) });
}

/** Decodes the lines of a Merkle proof. */
export function decodeHashLines(lines: readonly string[]): ProofFileResult<string[]> {
  if (lines.length > MAX_PROOF_HASHES)
    return malformed(`at most ${MAX_PROOF_HASHES} hashes`, String(lines.length));
  const hashes: string[] = [];
  for (const line of lines) {
    const hash = tryHashFromBase64(line);
    if (hash === undefined) return malformed('a hash of 32 bytes in base64', excerptText(line));
    hashes.push(hash);
  }
  return succeed(hashes);
}

/** A decimal number of at most 2^53 − 1 without leading zeroes; `undefined` for other text. */
export function tryParseDecimal(text: string): number | undefined {
  const value = Number(text);
  return /^(?:0|[1-9]\d*)$/.test(text) && Number.isSafeInteger(value) ? value : undefined;
}

export function formatProofText(
  lines: readonly string[],
  hashes: readonly string[],
  note: Uint8Array,
): Uint8Array {
  const head = [...lines, ...hashes.map(hashToBase64), ''].map((line) => `${line}\n`).join('');
  return concatBytes([encodeUtf8(head), note]);
}

export function malformed(expected: string, actual: string): ProofFileResult<never> {
  return fail({ code: 'PROOF_MALFORMED', expected, actual });
}
