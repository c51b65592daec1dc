/**
 * cac-json-v1, the canonical JSON of apm2: RFC 8785 with whole numbers of 64 bits (signed) and nothing else for numbers, texts in Unicode's
 * NFC, and no key twice. Its digest is BLAKE3-256. Unlike RFC 8785 it holds numbers beyond 2^53 exactly, and sorts keys by code points, as
 * Rust compares texts; the two orders differ only for characters beyond U+FFFF.
 */

import { blake3 } from '@noble/hashes/blake3.js';
import { encodeHex } from '../../../base/bytes/encoding.js';
import { printable } from '../../../base/bytes/printable.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { fail, type Fault, type Result, succeed } from '../../../base/fault.js';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../../base/json/source-json.js';

/** What keeps a value from having a cac-json form. */
type CacCode =
  | 'PARSE_ERROR'
  | 'NESTING_TOO_DEEP'
  | 'DUPLICATE_KEY'
  | 'FLOAT_NOT_ALLOWED'
  | 'NUMBER_OUT_OF_RANGE'
  | 'NON_NFC_STRING';

/** Containers within containers: its reader refuses the 128th. */
const CAC_MAX_DEPTH = 127;

const MAX_I64 = 2n ** 63n - 1n;
const MIN_I64 = -(2n ** 63n);
/** A sign and more digits than any number of 64 bits has. */
const MAX_DIGITS = 20;

/** The BLAKE3-256 of bytes, in lower-case hexadecimal. */
export function blake3Hex(bytes: Uint8Array): string {
  return encodeHex(blake3(bytes));
}

/** Reads a JSON text as apm2 does: at most 127 levels deep. */
export function decodeCacSource(bytes: Uint8Array): Result<SourceValue, Fault<CacCode>> {
  const decoded = decodeSourceJson(bytes, { maxDepth: CAC_MAX_DEPTH });
  if (decoded.ok) return decoded;
  const { code, expected, actual } = decoded.fault;
  const isKept = code === 'DUPLICATE_KEY' || code === 'NESTING_TOO_DEEP';
  return fail({ code: isKept ? code : 'PARSE_ERROR', expected, actual });
}

/** The canonical form of a value. */
export function cacBytes(value: SourceValue): Result<Uint8Array, Fault<CacCode>> {
  const parts: string[] = [];
  const fault = write(value, parts, 0);
  return fault === undefined ? succeed(encodeUtf8(parts.join(''))) : fail(fault);
}

/** Compares texts by code points, as Python and Rust do; JavaScript compares UTF-16 code units. */
export function compareCodePoints(a: string, b: string): -1 | 0 | 1 {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rank(x) < rank(y) ? -1 : 1;
  }
  return a.length === b.length ? 0 : a.length < b.length ? -1 : 1;
}

/** Surrogates stand for code points above all others. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** Recursion is bounded by {@link CAC_MAX_DEPTH}. */
function write(value: SourceValue, parts: string[], depth: number): Fault<CacCode> | undefined {
  if (value === null || typeof value === 'boolean') {
    parts.push(String(value));
    return undefined;
  }
  if (typeof value === 'string') return writeText(value, parts);
  if (value instanceof SourceNumber) return writeNumber(value.text, parts);
  if (depth === CAC_MAX_DEPTH) {
    const expected = `at most ${CAC_MAX_DEPTH} levels of nesting`;
    return { code: 'NESTING_TOO_DEEP', expected, actual: 'more' };
  }
  if (!(value instanceof SourceObject)) {
    parts.push('[');
    for (const [i, element] of value.entries()) {
      if (i > 0) parts.push(',');
      const fault = write(element, parts, depth + 1);
      if (fault !== undefined) return fault;
    }
    parts.push(']');
    return undefined;
  }
  parts.push('{');
  const members = value.entries().sort(([a], [b]) => compareCodePoints(a, b));
  for (const [i, [name, member]] of members.entries()) {
    if (i > 0) parts.push(',');
    const nameFault = writeText(name, parts);
    if (nameFault !== undefined) return nameFault;
    parts.push(':');
    const fault = write(member, parts, depth + 1);
    if (fault !== undefined) return fault;
  }
  parts.push('}');
  return undefined;
}

function writeText(text: string, parts: string[]): Fault<CacCode> | undefined {
  if (text.normalize('NFC') !== text)
    return { code: 'NON_NFC_STRING', expected: 'a text in NFC', actual: printable(text, 80) };
  parts.push(JSON.stringify(text));
  return undefined;
}

function writeNumber(text: string, parts: string[]): Fault<CacCode> | undefined {
  const actual = printable(text, 80);
  // Its reader takes -0 for a floating-point number.
  if (!/^-?\d+$/.test(text) || text === '-0')
    return { code: 'FLOAT_NOT_ALLOWED', expected: 'a whole number', actual };
  const isIn = text.length <= MAX_DIGITS && BigInt(text) <= MAX_I64 && BigInt(text) >= MIN_I64;
  if (!isIn) return { code: 'NUMBER_OUT_OF_RANGE', expected: 'a number of 64 bits', actual };
  parts.push(text);
  return undefined;
}
