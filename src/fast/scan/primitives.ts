/** The primitives of the walk over scannable records in JavaScript. `assembly/primitives.ts` is the twin for WebAssembly. */

import { hasSameBytes } from '../../base/bytes/compare.js';
import { endOfString, PLAIN } from '../../base/json/scan.js';
import { SEQ_HIGH, SEQ_LOW } from './row.js';
import {
  B64_LENGTH,
  BACKSLASH,
  BASE64URL,
  CLASS,
  ENDS_43,
  MAX_METERS,
  NO_LIMIT,
  QUOTE,
  REMEMBERED,
  SEEN_KINDS,
  SEQ_BASE,
  ZERO,
} from './tables.js';

export { decodeDigestAt as decodeDigest, isDigestAt as isDigest } from '../../base/bytes/base64url-at.js';
export { bytesAscend } from '../../base/json/scan.js';
export { daysInMonth } from '../../base/value/timestamp.js';

export type Int = number;
export type Bytes = Uint8Array;
export type Rows = Int32Array;

/** Where the units of a vector are. */
export const UNIT_AT: Rows = new Int32Array(MAX_METERS);
export const UNIT_END: Rows = new Int32Array(MAX_METERS);

/** Remembered texts: the number of each + 1, or 0; where it begins and ends. */
export const SEEN_NUMBERS: Rows = new Int32Array(SEEN_KINDS * REMEMBERED);
export const SEEN_STARTS: Rows = new Int32Array(SEEN_KINDS * REMEMBERED);
export const SEEN_ENDS: Rows = new Int32Array(SEEN_KINDS * REMEMBERED);

export function forgetSeen(): void {
  SEEN_NUMBERS.fill(0);
}

/** Whether the bytes at two offsets are the same. */
export function isSameText(bytes: Bytes, a: Int, b: Int, length: Int): boolean {
  return hasSameBytes(bytes, a, bytes, b, length);
}

export function isText(
  texts: Uint8Array,
  textAt: number,
  textEnd: number,
  bytes: Uint8Array,
  at: number,
): boolean {
  for (let i = textAt, j = at; i < textEnd; i += 1, j += 1) if (texts[i] !== bytes[j]) return false;
  return true;
}

export function after(text: Uint8Array, bytes: Uint8Array, at: number): number {
  const { length } = text;
  for (let i = 0; i < length; i += 1) if (text[i] !== bytes[at + i]) return -1;
  return at + length;
}

export function isBase64url43(bytes: Uint8Array, at: number): boolean {
  const last = at + B64_LENGTH - 1;
  let all = BASE64URL;
  for (let i = at; i < last; i += 1) all &= CLASS[bytes[i]!]!;
  return all !== 0 && (CLASS[bytes[last]!]! & ENDS_43) !== 0;
}

/** Any canonical text; not empty where it has a maximum. */
export function endOfText(bytes: Uint8Array, at: number, most: number): number {
  if (bytes[at] !== QUOTE) return -1;
  const from = at + 1;
  let i = from;
  while (PLAIN[bytes[i]!] === 1) i += 1;
  if (bytes[i] !== QUOTE) i = endOfString(bytes, i, bytes.length);
  if (i < 0 || (i === from && most !== NO_LIMIT)) return -1;
  return i - from <= most || countCharacters(bytes, from, i) <= most ? i + 1 : -1;
}

/** The characters of a canonical text: an escape is one, and UTF-8 has one byte for each that continues none. */
function countCharacters(bytes: Uint8Array, from: number, end: number): number {
  let count = 0;
  for (let i = from; i < end; i += 1) {
    if ((bytes[i]! & 0xc0) === 0x80) continue;
    if (bytes[i] === BACKSLASH) i += bytes[i + 1] === 0x75 ? 5 : 1;
    count += 1;
  }
  return count;
}

/** Whether a byte stands for itself in a string. */
export function isPlain(byte: Int): boolean {
  return PLAIN[byte] === 1;
}

/** Writes `seq`, the digits `[from, end)`, to its two members of the row. */
export function writeSeq(bytes: Bytes, from: Int, end: Int, rows: Rows, base: Int): void {
  let number = 0;
  for (let i = from; i < end; i += 1) number = number * 10 + bytes[i]! - ZERO;
  rows[base + SEQ_LOW] = number % SEQ_BASE;
  rows[base + SEQ_HIGH] = Math.floor(number / SEQ_BASE);
}
