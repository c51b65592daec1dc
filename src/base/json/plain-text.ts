/**
 * The fast path of ingestion: `JSON.parse`, for texts in which it hides nothing. The bytes are searched first for what it would hide:
 * duplicate keys, numbers that are not exact doubles, lone surrogates, invalid UTF-8, and deep nesting.
 */

import { decodeLatin1, decodeUtf8 } from '../bytes/text.js';
import { MAX_DEPTH } from './scan.js';
import { findInvalidUtf8 } from './utf8.js';
import type { JsonValue } from './value.js';

/** Every integer of this many digits is exact as a double. */
const MAX_PLAIN_DIGITS = 15;

/** The value of a text without issues; undefined if there may be one, or if there is a number and `mayHaveNumbers` is false. */
export function parsePlain(bytes: Uint8Array, mayHaveNumbers: boolean): JsonValue | undefined {
  let [colons, depth, isAscii] = [0, 0, true];
  const { length } = bytes;
  for (let at = 0; at < length; at += 1) {
    switch (bytes[at]) {
      case 0x22: {
        for (at += 1; at < length; at += 1) {
          const byte = bytes[at]!;
          if (byte === 0x22) break;
          if (byte >= 0x80) isAscii = false;
          // `\u` may be a surrogate.
          else if (byte === 0x5c && bytes[(at += 1)] === 0x75) return undefined;
        }
        break;
      }
      case 0x3a:
        colons += 1;
        break;
      case 0x5b:
      case 0x7b:
        depth += 1;
        if (depth > MAX_DEPTH) return undefined;
        break;
      case 0x5d:
      case 0x7d:
        depth -= 1;
        break;
      default: {
        const byte = bytes[at]!;
        if (byte >= 0x80) return undefined;
        if (byte !== 0x2d && !isDigit(byte)) break;
        const end = endOfNumber(bytes, at);
        if (!mayHaveNumbers || !isExact(bytes, at, end)) return undefined;
        at = end - 1;
      }
    }
  }
  if (!isAscii && findInvalidUtf8(bytes, 0, length) >= 0) return undefined;
  let value: JsonValue;
  try {
    value = JSON.parse(isAscii ? decodeLatin1(bytes) : decodeUtf8(bytes)) as JsonValue;
  } catch {
    return undefined;
  }
  // `JSON.parse` keeps one member of a duplicate key.
  return countMembers(value) === colons ? value : undefined;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** The end of the bytes from `at` that may be in a number: digits, signs, `.` and `e`. */
function endOfNumber(bytes: Uint8Array, at: number): number {
  let end = at + 1;
  for (; end < bytes.length; end += 1) {
    const byte = bytes[end]!;
    const isPart = isDigit(byte) || byte === 0x2e || byte === 0x2b || byte === 0x2d || (byte | 0x20) === 0x65;
    if (!isPart) break;
  }
  return end;
}

/** Whether a number that `JSON.parse` accepts is a short integer or has its ECMAScript spelling. */
function isExact(bytes: Uint8Array, start: number, end: number): boolean {
  let at = start;
  while (at < end && isDigit(bytes[at]!)) at += 1;
  if (at === end && end - start <= MAX_PLAIN_DIGITS) return true;
  const text = decodeLatin1(bytes, start, end);
  const value = Number(text);
  return String(value) === text && (Number.isSafeInteger(value) || /[.e]/.test(text));
}

/** The number of members of all objects in a value. */
function countMembers(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += countMembers(item);
    return count;
  }
  const names = Object.keys(value);
  count = names.length;
  for (const name of names) count += countMembers(value[name]!);
  return count;
}
