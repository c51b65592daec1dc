/**
 * Permissive ingestion (SPEC §1, hygiene): JSON text from outside, canonical or not, to a value that can be made
 * canonical, and a report of everything that stood in the way. White space, the order of keys and the spelling of
 * escapes and of numbers are no news; whatever would change the value, or give it two readings, is. Only here may a
 * JSON number become a quantity; verification never comes this way.
 */

import { equalNumberTexts, parseDecimal } from './decimal.js';
import { HygieneCounter, type HygieneReport, type HygieneStatus } from './hygiene.js';
import { JsonParser, type ParseCode } from './parse.js';
import { parsePlain } from './plain-text.js';
import { MAX_DEPTH } from './scan.js';
import { byteOrderMarkLength, findInvalidUtf8 } from './utf8.js';
import type { JsonValue } from './value.js';

/** How many places are named of each code, so that none crowds out another; a report's metrics count all. */
export const MAX_INGEST_ISSUES = 100;

/** The bounds of int and dec quantities (SPEC §2). */
const MAX_QUANTITY_DIGITS = 39;
const MAX_QUANTITY_SCALE = 38;

/** What ingestion can come upon. */
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

/** One occurrence. */
export interface IngestIssue {
  readonly code: IngestCode;
  /** Byte offset. */
  readonly offset: number;
  /** RFC 6901 pointer of the innermost value or member concerned; `''` for INVALID_UTF8, as such bytes are no text. */
  readonly pointer: string;
}

/** What becomes of JSON numbers; see {@link ingestJson}. */
export type NumberMode = 'exact' | 'double' | 'quantity';

/** The outcome of {@link ingestJson}. */
export interface Ingested {
  /** `undefined` when the status is Ambiguous or Invalid. */
  readonly value: JsonValue | undefined;
  readonly report: HygieneReport;
  /** The first {@link MAX_INGEST_ISSUES} of each code, in the order of the text. */
  readonly issues: readonly IngestIssue[];
}

/**
 * Reads one JSON text (RFC 8259) from outside.
 *
 * Numbers, by `options.numbers`:
 * - `exact` (default): become doubles, and only those that have exactly the value of their text;
 * - `double`: are rounded to a double as RFC 8785 has it, which is Lossy (NUMBER_INEXACT);
 * - `quantity`: become `{"t":"int"|"dec",…}` (SPEC §2) with exactly the value of their text, which is Lossy
 *   (NUMBER_COERCED); those of more than 39 digits or 38 decimal places are Invalid (NUMBER_INEXACT).
 *
 * A function gives the mode for each number by its RFC 6901 pointer.
 *
 * In the first two, -0 and integers beyond ±(2^53−1) are Invalid, since no canonical text has them.
 *
 * @throws TypeError when `bytes` is no Uint8Array or the mode is none of the three
 */
export function ingestJson(
  bytes: Uint8Array,
  options: { readonly numbers?: NumberMode | ((pointer: string) => NumberMode) } = {},
): Ingested {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`expected a Uint8Array, found ${typeof bytes}`);
  const { numbers = 'exact' } = options;
  const isOne = numbers === 'exact' || numbers === 'double' || numbers === 'quantity';
  if (!isOne && typeof numbers !== 'function') {
    throw new TypeError(`expected numbers to be exact, double or quantity, found ${String(numbers)}`);
  }
  const value = parsePlain(bytes, isOne && numbers !== 'quantity');
  if (value !== undefined) return { value, report: new HygieneCounter().report(), issues: [] };
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

  /** Each offending byte, with the continuation bytes that follow it, counts once. */
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
    else if (!equalNumberTexts(text, String(value))) {
      this.#add('NUMBER_INEXACT', mode === 'double' ? 'Lossy' : 'Invalid', offset);
    }
    return value;
  }

  #quantity(text: string, offset: number): JsonValue {
    const { negative, digits, exponent } = parseDecimal(text);
    if (digits.length + Math.max(exponent, 0) > MAX_QUANTITY_DIGITS || -exponent > MAX_QUANTITY_SCALE) {
      this.#add('NUMBER_INEXACT', 'Invalid', offset);
      return null;
    }
    // The quantity is itself an object, one level deeper than the number was.
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

/** Whether the number is written as an integer beyond ±(2^53−1), or would be in a canonical text. */
function isUnsafeInteger(text: string, value: number): boolean {
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return false;
  return !/[.eE]/.test(text) || !String(value).includes('e');
}
