/**
 * Permissive ingestion (SPEC §1, hygiene): outside JSON to a value that has a canonical form, with a report of what would change the
 * value or give it two readings. White space, key order and the spelling of escapes and numbers are not reported. Only here may a JSON
 * number become a quantity; verification does not use this.
 */

import { equalNumberTexts, parseDecimal } from './decimal.js';
import { HygieneCounter, type HygieneReport, type HygieneStatus } from './hygiene.js';
import { JsonParser, type ParseCode } from './parse.js';
import { MAX_DEPTH } from './scan.js';
import { byteOrderMarkLength, findInvalidUtf8 } from './utf8.js';
import type { JsonValue } from './value.js';

/** The issues listed per code, so that none crowds out another; the report's metrics count all. */
export const MAX_INGEST_ISSUES = 100;

/** The bounds of int and dec quantities (SPEC §2). */
const MAX_QUANTITY_DIGITS = 39;
const MAX_QUANTITY_SCALE = 38;

export type IngestCode =
  | 'INVALID_UTF8'
  | 'BYTE_ORDER_MARK'
  | 'NOT_JSON'
  | 'NESTING_TOO_DEEP'
  | 'DUPLICATE_KEYS'
  | 'LONE_SURROGATE'
  | 'NON_FINITE_NUMBER'
  | 'UNSAFE_INTEGER'
  | 'NEGATIVE_ZERO'
  | 'NUMBER_INEXACT'
  | 'NUMBER_COERCED';

export interface IngestIssue {
  readonly code: IngestCode;
  /** Byte offset. */
  readonly offset: number;
  /** RFC 6901 pointer of the innermost value or member; `''` for INVALID_UTF8. */
  readonly pointer: string;
}

/** How JSON numbers are read; see {@link ingestJson}. */
export type NumberMode = 'exact' | 'double' | 'quantity';

export interface Ingested {
  /** `undefined` if the status is Ambiguous or Invalid. */
  readonly value: JsonValue | undefined;
  readonly report: HygieneReport;
  /** The first {@link MAX_INGEST_ISSUES} of each code, in the order of the text. */
  readonly issues: readonly IngestIssue[];
}

/**
 * Reads one JSON text (RFC 8259) from outside. `options.numbers` is a mode, or a function that gives one by RFC 6901 pointer:
 * - `exact` (default): a double, if that is exactly the text's value;
 * - `double`: rounded to a double (RFC 8785), which is Lossy (NUMBER_INEXACT);
 * - `quantity`: `{"t":"int"|"dec",…}` (SPEC §2) with exactly the text's value, which is Lossy (NUMBER_COERCED); more than 39
 *   digits or 38 decimal places are Invalid (NUMBER_INEXACT).
 *
 * In the first two, -0 and integers beyond ±(2^53−1) are Invalid: no canonical text has them.
 *
 * @throws TypeError if `bytes` is no Uint8Array or the mode is unknown
 */
export function ingestJson(
  bytes: Uint8Array,
  options: { readonly numbers?: NumberMode | ((pointer: string) => NumberMode) } = {},
): Ingested {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`expected a Uint8Array, found ${typeof bytes}`);
  const { numbers = 'exact' } = options;
  const isOne = numbers === 'exact' || numbers === 'double' || numbers === 'quantity';
  if (!isOne && typeof numbers !== 'function')
    throw new TypeError(`expected numbers to be exact, double or quantity, found ${String(numbers)}`);
  return new Ingestion(bytes, isOne ? () => numbers : numbers).run();
}

const FINDINGS: Readonly<Record<Exclude<ParseCode, 'NOT_CANONICAL'>, readonly [IngestCode, HygieneStatus]>> =
  {
    NOT_JSON: ['NOT_JSON', 'Invalid'],
    NESTING_TOO_DEEP: ['NESTING_TOO_DEEP', 'Invalid'],
    DUPLICATE_KEY: ['DUPLICATE_KEYS', 'Ambiguous'],
    LONE_SURROGATE: ['LONE_SURROGATE', 'Invalid'],
  };

class Ingestion extends JsonParser {
  readonly #bytes: Uint8Array;
  readonly #modeAt: (pointer: string) => NumberMode;
  readonly #hygiene = new HygieneCounter();
  readonly #issues: IngestIssue[] = [];

  constructor(bytes: Uint8Array, modeAt: (pointer: string) => NumberMode) {
    super(bytes, byteOrderMarkLength(bytes, 0, bytes.length), bytes.length);
    this.#bytes = bytes;
    this.#modeAt = modeAt;
  }

  run(): Ingested {
    const value = this.#countInvalidUtf8() ? undefined : this.#parseText();
    const report = this.#hygiene.report();
    const isUsable = report.status === 'Ok' || report.status === 'Lossy';
    return { value: isUsable ? value : undefined, report, issues: this.#issues };
  }

  #parseText(): JsonValue | undefined {
    if (byteOrderMarkLength(this.#bytes, 0, this.#bytes.length) > 0)
      this.#add('BYTE_ORDER_MARK', 'Invalid', 0);
    return this.parse();
  }

  /** An invalid byte and the continuation bytes after it count once. */
  #countInvalidUtf8(): boolean {
    const bytes = this.#bytes;
    let at = findInvalidUtf8(bytes, 0, bytes.length);
    const isInvalid = at >= 0;
    while (at >= 0) {
      this.#add('INVALID_UTF8', 'Invalid', at);
      do at++;
      while (at < bytes.length && (bytes[at]! & 0xc0) === 0x80);
      at = findInvalidUtf8(bytes, at, bytes.length);
    }
    return isInvalid;
  }

  protected override onFinding(code: ParseCode, offset: number): void {
    if (code === 'NOT_CANONICAL') return;
    const [ingestCode, status] = FINDINGS[code];
    this.#add(ingestCode, status, offset);
  }

  protected override onNumber(text: string, offset: number): JsonValue {
    const mode = this.#modeAt(this.pointer());
    return mode === 'quantity' ? this.#quantity(text, offset) : this.#double(text, offset, mode);
  }

  #double(text: string, offset: number, mode: 'exact' | 'double'): number {
    const value = Number(text);
    if (!Number.isFinite(value)) this.#add('NON_FINITE_NUMBER', 'Invalid', offset);
    else if (isUnsafeInteger(text, value)) this.#add('UNSAFE_INTEGER', 'Invalid', offset);
    else if (Object.is(value, -0)) this.#add('NEGATIVE_ZERO', 'Invalid', offset);
    else if (!equalNumberTexts(text, String(value)))
      this.#add('NUMBER_INEXACT', mode === 'double' ? 'Lossy' : 'Invalid', offset);
    return value;
  }

  #quantity(text: string, offset: number): JsonValue {
    const { negative, digits, exponent } = parseDecimal(text);
    if (digits.length + Math.max(exponent, 0) > MAX_QUANTITY_DIGITS || -exponent > MAX_QUANTITY_SCALE) {
      this.#add('NUMBER_INEXACT', 'Invalid', offset);
      return null;
    }
    // A quantity is an object, one level deeper than its number.
    if (this.depth === MAX_DEPTH) this.#add('NESTING_TOO_DEEP', 'Invalid', offset);
    this.#add('NUMBER_COERCED', 'Lossy', offset);
    if (digits === '') {
      if (negative) this.#add('NEGATIVE_ZERO', 'Lossy', offset);
      return { t: 'int', v: '0' };
    }
    const integer = `${negative ? '-' : ''}${digits}${'0'.repeat(Math.max(exponent, 0))}`;
    return exponent < 0 ? { t: 'dec', m: integer, s: -exponent } : { t: 'int', v: integer };
  }

  #add(code: IngestCode, status: HygieneStatus, offset: number): void {
    const count = this.#hygiene.add(code, status);
    if (count <= MAX_INGEST_ISSUES) this.#issues.push({ code, offset, pointer: this.pointer() });
  }
}

/** Whether the number is, or would be in canonical text, an integer literal beyond ±(2^53−1). */
function isUnsafeInteger(text: string, value: number): boolean {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return false;
  return !/[.eE]/.test(text) || !String(value).includes('e');
}
