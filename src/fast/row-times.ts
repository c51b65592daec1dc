/** Timestamps and digests compared where they are, without making texts of them. */

import { isTextAt } from '../base/bytes/compare.js';
import { decodeLatin1 } from '../base/bytes/text.js';
import { orderTimestamps, WHOLE_LENGTH } from '../base/value/timestamp.js';
import { B64_LENGTH } from './scan/tables.js';

const SHA256_TEXT_LENGTH = 'sha-256:'.length + B64_LENGTH;

/** Whether the text of a digest, `sha-256:…`, is that of the base64url at an offset. */
export function isDigestText(bytes: Uint8Array, b64: number, text: string): boolean {
  return (
    text.length === SHA256_TEXT_LENGTH &&
    text.startsWith('sha-256:') &&
    isTextAt(bytes, b64, text, SHA256_TEXT_LENGTH - B64_LENGTH)
  );
}

/** `orderTimestamps` of the texts at `[at, end)` and `[bAt, bEnd)`. */
export function orderTimes(
  a: Uint8Array,
  at: number,
  end: number,
  b: Uint8Array,
  bAt: number,
  bEnd: number,
): number {
  const isSameLength = end - at === bEnd - bAt;
  const length = isSameLength ? end - at : WHOLE_LENGTH;
  for (let i = 0; i < length; i += 1) {
    const difference = a[at + i]! - b[bAt + i]!;
    if (difference !== 0) return difference;
  }
  return isSameLength ? 0 : orderTimestamps(decodeLatin1(a, at, end), decodeLatin1(b, bAt, bEnd));
}

/** `orderTimestamps` of the text at `[at, end)` and another. */
export function orderTo(bytes: Uint8Array, at: number, end: number, text: string): number {
  const isSameLength = end - at === text.length;
  const length = isSameLength ? end - at : WHOLE_LENGTH;
  for (let i = 0; i < length; i += 1) {
    const difference = bytes[at + i]! - text.charCodeAt(i);
    if (difference !== 0) return difference;
  }
  return isSameLength ? 0 : orderTimestamps(decodeLatin1(bytes, at, end), text);
}
