/**
 * Why a text is not canonical JSON (SPEC §1, the first rows of the table in §8): the slow, exact twin of `scanCanonical`. Reports one
 * rule, the byte and the JSON Pointer. Of several broken rules it reports the first in FAULT_CODES, at the first place where that one
 * is broken, so the answer does not depend on the order of a parser's checks.
 */

import type { ValueFault } from '../fault.js';
import { assertByteRange } from './byte-range.js';
import { excerptBytes } from './excerpt.js';
import { JsonParser } from './parse.js';
import { isNumberText } from './scan.js';
import { byteOrderMarkLength, findInvalidUtf8 } from './utf8.js';
import type { JsonValue } from './value.js';

/** Foremost first. */
const FAULT_CODES = [
  'INVALID_UTF8',
  'BYTE_ORDER_MARK',
  'NOT_JSON',
  'NESTING_TOO_DEEP',
  'DUPLICATE_KEY',
  'LONE_SURROGATE',
  'NUMBER_NOT_CANONICAL',
  'NOT_CANONICAL',
] as const;

/** Each is also the code of a finding (SPEC §8). */
export type JsonFaultCode = (typeof FAULT_CODES)[number];

/** Why a text is not canonical, at the innermost value or member. `actual` has at most 40 characters. */
export interface JsonFault extends ValueFault<JsonFaultCode> {
  /** Into the whole array, not the range. */
  readonly offset: number;
}

/**
 * Why `bytes[start, end)` is not one canonical JSON text; `undefined` exactly if `scanCanonical` returns -1.
 *
 * @throws TypeError if `bytes` is no Uint8Array; RangeError if `[start, end)` is not a range of it
 */
export function diagnoseCanonical(bytes: Uint8Array, start = 0, end = bytes.length): JsonFault | undefined {
  assertByteRange(bytes, start, end);
  const invalid = findInvalidUtf8(bytes, start, end);
  if (invalid >= 0)
    return {
      code: 'INVALID_UTF8',
      offset: invalid,
      pointer: new Diagnosis(bytes, start, invalid).pointerAtEnd(),
      expected: 'well-formed UTF-8',
      actual: excerptBytes(bytes, invalid, Math.min(invalid + 4, end)),
    };
  const mark = byteOrderMarkLength(bytes, start, end);
  if (mark > 0)
    return {
      code: 'BYTE_ORDER_MARK',
      offset: start,
      pointer: '',
      expected: 'no byte order mark',
      actual: excerptBytes(bytes, start, start + mark),
    };
  return new Diagnosis(bytes, start, end).run();
}

const WHITE_SPACE: Readonly<Record<number, string>> = {
  0x09: 'a tab',
  0x0a: 'a line feed',
  0x0d: 'a carriage return',
  0x20: 'a space',
};

/** Keeps the foremost of the parser's findings. */
class Diagnosis extends JsonParser {
  readonly #bytes: Uint8Array;
  #fault: JsonFault | undefined;

  constructor(bytes: Uint8Array, start: number, end: number) {
    super(bytes, start, end);
    this.#bytes = bytes;
  }

  run(): JsonFault | undefined {
    this.parse();
    return this.#fault;
  }

  /** The pointer at the end of a truncated text. */
  pointerAtEnd(): string {
    this.parse();
    return this.pointer();
  }

  protected override onFinding(code: JsonFaultCode, offset: number, end: number, expected: string): void {
    const isWorse =
      this.#fault === undefined || FAULT_CODES.indexOf(code) < FAULT_CODES.indexOf(this.#fault.code);
    if (!isWorse) return;
    const actual =
      offset === end
        ? 'the end of the text'
        : (WHITE_SPACE[this.#bytes[offset]!] ?? excerptBytes(this.#bytes, offset, end));
    this.#fault = { code, offset, pointer: this.pointer(), expected, actual };
  }

  protected override onNumber(text: string, offset: number): JsonValue {
    if (!isNumberText(text))
      this.onFinding('NUMBER_NOT_CANONICAL', offset, offset + text.length, expectedNumber(text));
    return null;
  }
}

function expectedNumber(text: string): string {
  const value = Number(text);
  if (!Number.isFinite(value)) return 'a number within the range of a double';
  if (Object.is(value, -0)) return '0 without a sign';
  const canonical = String(value);
  const isUnsafe = !Number.isSafeInteger(value) && !/[.eE]/.test(text);
  return isUnsafe || !isNumberText(canonical) ? 'an integer within ±(2^53−1)' : canonical;
}
