/**
 * The hot path of verification: whether bytes are canonical JSON (SPEC §1: RFC 8785 over RFC 7493, nesting of at most 64). It makes no
 * objects and answers yes or no; `diagnose.ts`, its slow twin, says why not, and agrees on every text.
 *
 * The same pass records the offsets of members as {@link MemberMarks}, so that the hashed bytes are the checked bytes.
 */

import { decodeLatin1, decodeUtf8 } from '../bytes/text.js';
import { assertByteRange } from './byte-range.js';
import { utf8SequenceLength } from './utf8.js';

/** The largest nesting of containers (SPEC §1). */
export const MAX_DEPTH = 64;

/** The longest ES6 number text: sign, `0.00000`, 17 digits. */
const MAX_NUMBER_LENGTH = 25;

const MARK_WIDTH = 5;
/** The parts of a ledger line are at depth 1 and 2 (SPEC §4); deeper members are not marked. */
const MAX_MARKED_DEPTH = 2;

/**
 * The offsets of members at depth 1 (the outermost object's) and 2, in order of appearance. Depth counts open objects and arrays.
 *
 * Row `r` is `rows[5r .. 5r+4]`: depth, keyStart (opening quote), keyEnd (after the closing quote), valueStart, valueEnd. The
 * `count` rows are valid only after a scan that returned -1. Reusable: each scan begins at row 0.
 */
export class MemberMarks {
  count = 0;
  rows: Int32Array = new Int32Array(64 * MARK_WIDTH);
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** 1 for the bytes that a string holds unescaped: ASCII from space on, without `"` and `\`. */
export const PLAIN = new Uint8Array(256);
for (let byte = 0x20; byte < 0x80; byte++) PLAIN[byte] = byte === QUOTE || byte === BACKSLASH ? 0 : 1;

/** 1 for the bytes of numbers. */
const NUMERIC = new Uint8Array(256);
for (const character of '+-.0123456789Ee') NUMERIC[character.charCodeAt(0)] = 1;

/** 1 for the bytes after `\` in the short escapes of RFC 8785 §3.2.2.2 (no `/`). */
const SHORT_ESCAPE = new Uint8Array(256);
for (const character of '"\\bfnrt') SHORT_ESCAPE[character.charCodeAt(0)] = 1;

/** 1 for the last digit x of the escapes `\u000x` and (+256) `\u001x` without a short form. */
const LONG_ESCAPE = new Uint8Array(512);
for (const digit of '01234567bef') LONG_ESCAPE[digit.charCodeAt(0)] = 1;
for (const digit of '0123456789abcdef') LONG_ESCAPE[256 + digit.charCodeAt(0)] = 1;

// The stack of open containers, by depth. Shared by all calls: a scan is synchronous and calls no other code.
const closer = new Uint8Array(MAX_DEPTH + 1);
const keyStart = new Int32Array(MAX_DEPTH + 1);
const keyEnd = new Int32Array(MAX_DEPTH + 1);
const keyPlain = new Uint8Array(MAX_DEPTH + 1);
const markAt = new Int32Array(MAX_MARKED_DEPTH + 1);

/**
 * Checks that `bytes[start, end)` are exactly one canonical JSON text (SPEC §1).
 *
 * @param marks - Filled with the offsets of members.
 * @returns -1 if they are, otherwise the offset into `bytes` at which the scan failed.
 * @throws TypeError if `bytes` is no Uint8Array; RangeError if `[start, end)` is not a range of it
 */
export function scanCanonical(bytes: Uint8Array, start: number, end: number, marks?: MemberMarks): number {
  assertByteRange(bytes, start, end);
  let rows = marks?.rows;
  let count = 0;
  if (marks !== undefined) marks.count = 0;
  let depth = 0;
  let at = start;
  let inObject = false; // whether the innermost open container is an object

  for (;;) {
    if (inObject) {
      if (at >= end || bytes[at] !== QUOTE) return at;
      const from = at++;
      let plain = 1;
      while (at < end && PLAIN[bytes[at]!] === 1) at++;
      if (at >= end) return end;
      if (bytes[at] !== QUOTE) {
        plain = 0;
        at = endOfString(bytes, at, end);
        if (at < 0) return ~at;
      }
      at++;
      const previous = keyStart[depth]!;
      if (
        previous >= 0 &&
        (plain & keyPlain[depth]!
          ? !bytesAscend(bytes, previous, from)
          : !keysAscend(bytes, previous, keyEnd[depth]!, from, at))
      )
        return from;
      keyStart[depth] = from;
      keyEnd[depth] = at;
      keyPlain[depth] = plain;
      if (at >= end || bytes[at] !== COLON) return at;
      at++;
      if (rows !== undefined && depth <= MAX_MARKED_DEPTH) {
        const row = count * MARK_WIDTH;
        count++;
        if (row + MARK_WIDTH > rows.length) rows = growRows(marks!);
        rows[row] = depth;
        rows[row + 1] = from;
        rows[row + 2] = at - 1;
        rows[row + 3] = at;
        markAt[depth] = row + 4;
      }
    }

    if (at >= end) return end;
    const first = bytes[at]!;
    if (first === QUOTE) {
      at++;
      while (at < end && PLAIN[bytes[at]!] === 1) at++;
      if (at >= end) return end;
      if (bytes[at] !== QUOTE) {
        at = endOfString(bytes, at, end);
        if (at < 0) return ~at;
      }
      at++;
    } else if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      if (depth === MAX_DEPTH) return at;
      depth++;
      at++;
      inObject = first === OPEN_BRACE;
      closer[depth] = inObject ? CLOSE_BRACE : CLOSE_BRACKET;
      keyStart[depth] = -1;
      if (at >= end) return end;
      if (bytes[at] !== closer[depth]) continue;
      at++;
      depth--;
      inObject = closer[depth] === CLOSE_BRACE;
    } else {
      const after = first <= NINE ? endOfNumber(bytes, at, end) : endOfLiteral(bytes, at, end);
      if (after < 0) return ~after;
      at = after;
    }

    // A value has ended at `at`, and perhaps the containers around it.
    for (;;) {
      if (depth === 0) {
        if (at !== end) return at;
        if (marks !== undefined) marks.count = count;
        return -1;
      }
      if (inObject && rows !== undefined && depth <= MAX_MARKED_DEPTH) rows[markAt[depth]!] = at;
      if (at >= end) return end;
      const next = bytes[at]!;
      if (next === COMMA) break;
      if (next !== closer[depth]) return at;
      at++;
      depth--;
      inObject = closer[depth] === CLOSE_BRACE;
    }
    at++;
  }
}

// The functions below return the end of the token at or around an offset, or ~offset, which is negative, where it is not canonical.

/** From the first byte of a string that is not plain to its closing quote. */
export function endOfString(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  for (;;) {
    while (at < end && PLAIN[bytes[at]!] === 1) at++;
    if (at >= end) return ~end;
    const byte = bytes[at]!;
    if (byte === QUOTE) return at;
    if (byte >= 0x80) {
      const length = utf8SequenceLength(bytes, at, end);
      if (length === 0) return ~at;
      at += length;
    } else if (byte !== BACKSLASH || at + 1 >= end) {
      return ~at;
    } else if (SHORT_ESCAPE[bytes[at + 1]!] === 1) {
      at += 2;
    } else if (isLongEscape(bytes, at, end)) {
      at += 6;
    } else {
      return ~at;
    }
  }
}

/** Whether `\u00xx` at `at` is the JCS spelling of a control character. */
function isLongEscape(bytes: Uint8Array, at: number, end: number): boolean {
  if (at + 6 > end || bytes[at + 1] !== 0x75) return false;
  if (bytes[at + 2] !== ZERO || bytes[at + 3] !== ZERO) return false;
  const high = bytes[at + 4]! - ZERO;
  return (high === 0 || high === 1) && LONG_ESCAPE[high * 256 + bytes[at + 5]!] === 1;
}

function endOfNumber(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  if (bytes[at] === MINUS) at++;
  const digits = at;
  while (at < end && bytes[at]! >= ZERO && bytes[at]! <= NINE) at++;
  // Up to 15 digits are a safe integer in its ES6 spelling, except for leading zeros and -0.
  if (at > digits && at - digits <= 15 && (at >= end || NUMERIC[bytes[at]!] === 0))
    return bytes[digits] !== ZERO || at - from === 1 ? at : ~from;
  while (at < end && NUMERIC[bytes[at]!] === 1) at++;
  return at - from <= MAX_NUMBER_LENGTH && isNumberText(decodeLatin1(bytes, from, at)) ? at : ~from;
}

/** Whether a number has its ES6 spelling and, if an integer literal, is within ±(2^53−1). */
export function isNumberText(text: string): boolean {
  const value = Number(text);
  return String(value) === text && (Number.isSafeInteger(value) || /[.eE]/.test(text));
}

function endOfLiteral(bytes: Uint8Array, at: number, end: number): number {
  // As little-endian numbers, so that a word is one comparison.
  if (at + 4 > end) return ~at;
  const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  if (word === 0x65757274 || word === 0x6c6c756e) return at + 4; // true, null
  return word === 0x736c6166 && at + 5 <= end && bytes[at + 4] === 0x65 ? at + 5 : ~at; // false
}

/** Whether an ASCII key without escapes sorts after another such key, given the offsets of their opening quotes. */
export function bytesAscend(bytes: Uint8Array, former: number, latter: number): boolean {
  for (let i = 1; ; i++) {
    const a = bytes[former + i]!;
    const b = bytes[latter + i]!;
    // The closing quote is no byte of the key: ` ` and `!` are smaller than it.
    if (a !== b) return a === QUOTE || (b !== QUOTE && a < b);
    if (a === QUOTE) return false;
  }
}

/** {@link bytesAscend} of any two keys, by UTF-16 code units (RFC 8785 §3.2.3), not UTF-8 bytes. */
function keysAscend(
  bytes: Uint8Array,
  from: number,
  to: number,
  latterFrom: number,
  latterTo: number,
): boolean {
  return decodeKey(decodeUtf8(bytes, from, to)) < decodeKey(decodeUtf8(bytes, latterFrom, latterTo));
}

function decodeKey(quoted: string): string {
  return JSON.parse(quoted) as string;
}

function growRows(marks: MemberMarks): Int32Array {
  const rows = new Int32Array(marks.rows.length * 2);
  rows.set(marks.rows);
  return (marks.rows = rows);
}
