/**
 * JSON of other systems, kept as it was written: numbers as their source text, keys in the order of the text, whatever they look like.
 * Foreign digests are taken over the foreign system's own spelling of a value, and amounts are taken from digits, so neither may pass
 * through a double.
 */

import { fail, type Fault, type Result, succeed } from '../fault.js';
import { excerptBytes } from './excerpt.js';
import { JsonParser, type ParseCode } from './parse.js';
import { byteOrderMarkLength, findInvalidUtf8 } from './utf8.js';
import type { JsonObject, JsonValue } from './value.js';

/** A number as it was written. */
export class SourceNumber {
  readonly text: string;

  /** @param text A number of RFC 8259: `40.06385803222656`, `1e-05`, `1700000000100000001`. */
  constructor(text: string) {
    this.text = text;
  }
}

/** An object as it was written. */
export class SourceObject {
  readonly #members: ReadonlyMap<string, SourceValue>;

  /** @param members In the order of the text. */
  constructor(members: ReadonlyMap<string, SourceValue>) {
    this.#members = members;
  }

  /** The member of that name; `undefined` where there is none. */
  get(name: string): SourceValue | undefined {
    return this.#members.get(name);
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  /** In the order of the text. */
  keys(): string[] {
    return [...this.#members.keys()];
  }

  /** In the order of the text. */
  entries(): [string, SourceValue][] {
    return [...this.#members];
  }

  /** The object without these members. */
  without(...names: readonly string[]): SourceObject {
    return new SourceObject(new Map(this.entries().filter(([name]) => !names.includes(name))));
  }
}

/** A value of {@link decodeSourceJson}. */
export type SourceValue = null | boolean | string | SourceNumber | SourceObject | readonly SourceValue[];

/** What keeps a text from being read. */
export type SourceJsonCode =
  'INVALID_UTF8' | 'NOT_JSON' | 'NESTING_TOO_DEEP' | 'DUPLICATE_KEY' | 'LONE_SURROGATE';

/** What is read all the same. */
export interface SourceJsonOptions {
  /** Texts with lone surrogates are values: for systems whose digests cover them. */
  readonly loneSurrogates?: boolean;
  /** For systems that read deeper than 64 levels: so many, at most 512. */
  readonly maxDepth?: number;
}

/**
 * Reads one JSON text (RFC 8259), at most 64 levels deep. White space, the order of keys and the spelling of numbers are the writer's own;
 * a byte order mark before it is passed over. Linear in the text.
 */
export function decodeSourceJson(
  bytes: Uint8Array,
  options: SourceJsonOptions = {},
): Result<SourceValue, Fault<SourceJsonCode>> {
  const invalid = findInvalidUtf8(bytes, 0, bytes.length);
  if (invalid >= 0) {
    return fail({
      code: 'INVALID_UTF8',
      offset: invalid,
      expected: 'UTF-8',
      actual: excerptBytes(bytes, invalid, bytes.length),
    });
  }
  return new SourceParser(bytes, options).run();
}

class SourceParser extends JsonParser {
  readonly #text: Uint8Array;
  readonly #takesLoneSurrogates: boolean;
  readonly #keys = new WeakMap<object, string[]>();
  #fault: Fault<SourceJsonCode> | undefined;

  constructor(bytes: Uint8Array, { loneSurrogates = false, maxDepth }: SourceJsonOptions) {
    super(bytes, byteOrderMarkLength(bytes, 0, bytes.length), bytes.length, maxDepth);
    this.#text = bytes;
    this.#takesLoneSurrogates = loneSurrogates;
  }

  run(): Result<SourceValue, Fault<SourceJsonCode>> {
    const value = this.parse();
    if (this.#fault !== undefined) return fail(this.#fault);
    return succeed(this.#convert(value!));
  }

  protected override onKey(container: JsonObject, key: string): void {
    const keys = this.#keys.get(container);
    if (keys === undefined) this.#keys.set(container, [key]);
    else keys.push(key);
  }

  protected override onNumber(text: string): JsonValue {
    return new SourceNumber(text) as unknown as JsonValue;
  }

  protected override onFinding(code: ParseCode, offset: number, end: number, expected: string): void {
    if (code === 'NOT_CANONICAL' || this.#fault !== undefined) return;
    if (code === 'LONE_SURROGATE' && this.#takesLoneSurrogates) return;
    const actual = excerptBytes(this.#text, offset, end);
    this.#fault = { code, offset, pointer: this.pointer(), expected, actual };
  }

  /** At most as deep as the parser went. */
  #convert(value: JsonValue): SourceValue {
    if (Array.isArray(value)) return value.map((element) => this.#convert(element));
    if (typeof value !== 'object' || value === null) return value as SourceValue;
    if (value instanceof SourceNumber) return value;
    const keys = this.#keys.get(value) ?? [];
    return new SourceObject(new Map(keys.map((key) => [key, this.#convert(value[key]!)])));
  }
}
