/**
 * A JSON parser (RFC 8259) for hostile bytes, shared by `diagnose.ts`, `ingest.ts` and `source-json.ts`. Unlike `JSON.parse` it keeps
 * the source text of numbers and reports every duplicate key, lone surrogate and departure from the canonical form with its byte
 * offset and JSON Pointer. It has an explicit stack, at most 64 deep by default, and runs in linear time.
 *
 * The input MUST be well-formed UTF-8 without a byte order mark.
 */

import { decodeLatin1, decodeUtf8 } from '../bytes/text.js';
import { jsonPointer } from './pointer.js';
import { MAX_DEPTH } from './scan.js';
import type { JsonObject, JsonValue } from './value.js';

/** The first two end the parse. */
export type ParseCode =
  | 'NOT_JSON'
  | 'NESTING_TOO_DEEP'
  | 'DUPLICATE_KEY'
  | 'LONE_SURROGATE'
  | 'NOT_CANONICAL';

interface Frame {
  readonly container: JsonValue[] | JsonObject;
  /** Index or key of the current element; undefined between elements. */
  step: string | number | undefined;
  lastKey: string | undefined;
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  '\\': '\\\\',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};

const LITERALS: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
];

/** Reads one JSON text. Subclasses handle findings and numbers. */
export abstract class JsonParser {
  readonly #bytes: Uint8Array;
  readonly #end: number;
  readonly #frames: Frame[] = [];
  readonly #maxDepth: number;
  #at: number;

  constructor(bytes: Uint8Array, start: number, end: number, maxDepth = MAX_DEPTH) {
    this.#maxDepth = maxDepth;
    this.#bytes = bytes;
    this.#at = start;
    this.#end = end;
  }

  /**
   * Called for each finding, in the order of the text.
   *
   * @param offset - The first byte.
   * @param end - After the last byte; equal to `offset` at the end of the text.
   */
  protected abstract onFinding(code: ParseCode, offset: number, end: number, expected: string): void;

  /** Called for each number; returns its value. */
  protected abstract onNumber(text: string, offset: number): JsonValue;

  /** Called for each key, in the order of the text, before its value is read. */
  protected onKey(_container: JsonObject, _key: string): void {
    // Does nothing unless overridden.
  }

  /** The pointer of the innermost value or member being read. */
  protected pointer(): string {
    const path: (string | number)[] = [];
    for (const { step } of this.#frames) if (step !== undefined) path.push(step);
    return jsonPointer(path);
  }

  protected get depth(): number {
    return this.#frames.length;
  }

  /** Reads the whole text. `undefined` after NOT_JSON or NESTING_TOO_DEEP. */
  protected parse(): JsonValue | undefined {
    for (;;) {
      this.#skipWhiteSpace();
      let value: JsonValue | undefined;
      const opening = this.#bytes[this.#at];
      if (this.#at < this.#end && (opening === 0x7b || opening === 0x5b)) {
        if (this.#frames.length === this.#maxDepth)
          return this.#stop('NESTING_TOO_DEEP', `at most ${this.#maxDepth} levels of nesting`);
        this.#frames.push({ container: opening === 0x7b ? {} : [], step: undefined, lastKey: undefined });
        this.#at++;
        this.#skipWhiteSpace();
        if (!this.#isAt(opening === 0x7b ? '}' : ']')) {
          if (!this.#beginElement()) return undefined;
          continue;
        }
        value = this.#closeContainer();
      } else {
        value = this.#scalar();
        if (value === undefined) return undefined;
      }

      // A value has ended, and perhaps the containers around it.
      for (;;) {
        const frame = this.#frames.at(-1);
        if (frame !== undefined) addElement(frame, value);
        this.#skipWhiteSpace();
        if (frame === undefined)
          return this.#at === this.#end ? value : this.#stop('NOT_JSON', 'the end of the text');
        if (this.#isAt(',')) {
          this.#at++;
          if (!this.#beginElement()) return undefined;
          break;
        }
        const closing = Array.isArray(frame.container) ? ']' : '}';
        if (!this.#isAt(closing)) return this.#stop('NOT_JSON', `"," or "${closing}"`);
        value = this.#closeContainer();
      }
    }
  }

  #closeContainer(): JsonValue {
    this.#at++;
    return this.#frames.pop()!.container;
  }

  /** Reads up to the next element's value: in an object its key and colon. */
  #beginElement(): true | undefined {
    const frame = this.#frames.at(-1)!;
    const { container } = frame;
    if (Array.isArray(container)) {
      frame.step = container.length;
      return true;
    }
    this.#skipWhiteSpace();
    if (!this.#isAt('"')) return this.#stop('NOT_JSON', 'a key in double quotes');
    const from = this.#at;
    const hasEscapes = this.#skipString();
    if (hasEscapes === undefined) return undefined;
    const key = this.#decodeString(from, hasEscapes);
    frame.step = key;
    if (Object.hasOwn(container, key))
      this.onFinding('DUPLICATE_KEY', from, this.#at, 'each key once in an object');
    else if (frame.lastKey !== undefined && key < frame.lastKey)
      this.onFinding('NOT_CANONICAL', from, this.#at, 'keys in ascending order of their UTF-16 code units');
    frame.lastKey = key;
    this.onKey(container, key);
    if (hasEscapes) this.#checkEscapes(from);
    this.#skipWhiteSpace();
    if (!this.#isAt(':')) return this.#stop('NOT_JSON', '":" after a key');
    this.#at++;
    return true;
  }

  #scalar(): JsonValue | undefined {
    const from = this.#at;
    if (this.#isAt('"')) {
      const hasEscapes = this.#skipString();
      if (hasEscapes === undefined) return undefined;
      if (hasEscapes) this.#checkEscapes(from);
      return this.#decodeString(from, hasEscapes);
    }
    if (this.#isAt('-') || this.#isAtDigit()) {
      if (!this.#skipNumber()) return undefined;
      // Otherwise the `-0` of `-01` would be reported as a number.
      if (this.#at < this.#end && !' \t\n\r,]}'.includes(String.fromCharCode(this.#bytes[this.#at]!)))
        return this.#stop('NOT_JSON', 'the end of a number');
      return this.onNumber(decodeLatin1(this.#bytes, from, this.#at), from);
    }
    for (const [word, value] of LITERALS) {
      const after = from + word.length;
      if (after <= this.#end && decodeLatin1(this.#bytes, from, after) === word) {
        this.#at = after;
        return value;
      }
    }
    return this.#stop('NOT_JSON', 'a value');
  }

  /** Skips a string; returns whether it has escapes. */
  #skipString(): boolean | undefined {
    let hasEscapes = false;
    for (this.#at++; this.#at < this.#end; this.#at++) {
      const byte = this.#bytes[this.#at]!;
      if (byte === 0x22) {
        this.#at++;
        return hasEscapes;
      }
      if (byte < 0x20) return this.#stop('NOT_JSON', 'control characters in a string as escapes');
      if (byte === 0x5c) {
        hasEscapes = true;
        const escape = decodeLatin1(this.#bytes, this.#at, Math.min(this.#at + 6, this.#end));
        const length = /^\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/.exec(escape)?.[0].length;
        if (length === undefined) return this.#stop('NOT_JSON', 'an escape sequence of JSON');
        this.#at += length - 1;
      }
    }
    return this.#stop('NOT_JSON', 'a closing quotation mark');
  }

  #decodeString(from: number, hasEscapes: boolean): string {
    return hasEscapes
      ? (JSON.parse(decodeUtf8(this.#bytes, from, this.#at)) as string)
      : decodeUtf8(this.#bytes, from + 1, this.#at - 1);
  }

  /** Checks the escapes of the string just skipped. */
  #checkEscapes(from: number): void {
    const to = this.#at - 1;
    for (let at = from + 1; at < to;) {
      if (this.#bytes[at] !== 0x5c) {
        at++;
        continue;
      }
      const isLong = this.#bytes[at + 1] === 0x75;
      let end = at + (isLong ? 6 : 2);
      if (isLong && (this.#unitAt(at) & 0xfc00) === 0xd800 && this.#isLowSurrogateAt(end)) end += 6;
      const escape = decodeLatin1(this.#bytes, at, end);
      const character = JSON.parse(`"${escape}"`) as string;
      const canonical = canonicalEscape(character);
      if (/\p{Surrogate}/u.test(character)) {
        this.onFinding('LONE_SURROGATE', at, end, 'surrogates in pairs only');
      } else if (escape !== canonical) {
        const expected = canonical === character ? 'the character itself' : canonical;
        this.onFinding('NOT_CANONICAL', at, end, expected);
      }
      at = end;
    }
  }

  /** The code unit of the escape `\uxxxx` at `at`. */
  #unitAt(at: number): number {
    return Number.parseInt(decodeLatin1(this.#bytes, at + 2, at + 6), 16);
  }

  /** Whether the escape of a low surrogate is at `at`, which is within the string or at its closing quotation mark. */
  #isLowSurrogateAt(at: number): boolean {
    if (this.#bytes[at] !== 0x5c || this.#bytes[at + 1] !== 0x75) return false;
    return (this.#unitAt(at) & 0xfc00) === 0xdc00;
  }

  #skipNumber(): true | undefined {
    if (this.#isAt('-')) this.#at++;
    if (this.#isAt('0')) this.#at++;
    else if (!this.#skipDigits()) return undefined;
    if (this.#isAt('.')) {
      this.#at++;
      if (!this.#skipDigits()) return undefined;
    }
    if (this.#isAt('e') || this.#isAt('E')) {
      this.#at++;
      if (this.#isAt('+') || this.#isAt('-')) this.#at++;
      if (!this.#skipDigits()) return undefined;
    }
    return true;
  }

  #skipDigits(): true | undefined {
    if (!this.#isAtDigit()) return this.#stop('NOT_JSON', 'a digit');
    while (this.#isAtDigit()) this.#at++;
    return true;
  }

  #skipWhiteSpace(): void {
    const from = this.#at;
    while (this.#isAt(' ') || this.#isAt('\n') || this.#isAt('\t') || this.#isAt('\r')) this.#at++;
    if (this.#at > from) this.onFinding('NOT_CANONICAL', from, this.#at, 'no white space between tokens');
  }

  #isAt(character: string): boolean {
    return this.#at < this.#end && this.#bytes[this.#at] === character.charCodeAt(0);
  }

  #isAtDigit(): boolean {
    return this.#at < this.#end && this.#bytes[this.#at]! >= 0x30 && this.#bytes[this.#at]! <= 0x39;
  }

  #stop(code: 'NOT_JSON' | 'NESTING_TOO_DEEP', expected: string): undefined {
    this.onFinding(code, this.#at, this.#end, expected);
    return undefined;
  }
}

/** How a character is written in a canonical string (RFC 8785 §3.2.2.2). */
function canonicalEscape(character: string): string {
  const short = SHORT_ESCAPES[character];
  if (short !== undefined || character >= ' ') return short ?? character;
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function addElement(frame: Frame, value: JsonValue): void {
  const { container, step } = frame;
  if (Array.isArray(container)) {
    container.push(value);
  } else if ((step as string) in container) {
    // Assignment would run accessors of Object.prototype (`__proto__`); JSON.parse makes a member.
    const property = { value, writable: true, enumerable: true, configurable: true };
    Object.defineProperty(container, step as string, property);
  } else {
    container[step as string] = value;
  }
  frame.step = undefined;
}
