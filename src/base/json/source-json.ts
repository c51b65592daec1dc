/**
 * JSON of other systems with its spelling kept: numbers as source text, keys in the order of the text. Foreign digests cover the foreign
 * spelling, and amounts are read from digits, so neither may pass through a double.
 */

import { fail, type Fault, type Result, succeed } from '../fault.js';
import { excerptBytes } from './excerpt.js';
import { JsonParser, type ParseCode } from './parse.js';
import { byteOrderMarkLength, findInvalidUtf8 } from './utf8.js';
import type { JsonObject, JsonValue } from './value.js';

/** A number in its source spelling. */
export class SourceNumber {
  readonly text: string;

  /** @param text - A number of RFC 8259, such as `40.06385803222656` or `1e-05`. */
  constructor(text: string) {
    this.text = text;
  }
}

/** An object whose members are in the order of the text. */
export class SourceObject {
  readonly #members: ReadonlyMap<string, SourceValue>;

  constructor(members: ReadonlyMap<string, SourceValue>) {
    this.#members = members;
  }

  get(name: string): SourceValue | undefined {
    return this.#members.get(name);
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  keys(): string[] {
    return [...this.#members.keys()];
  }

  entries(): [string, SourceValue][] {
    return [...this.#members];
  }

  /** The object without these members. */
  without(...names: readonly string[]): SourceObject {
    return new SourceObject(new Map(this.entries().filter(([name]) => !names.includes(name))));
  }
}

export type SourceValue = null | boolean | string | SourceNumber | SourceObject | readonly SourceValue[];

export type SourceJsonCode =
  | 'INVALID_UTF8'
  | 'NOT_JSON'
  | 'NESTING_TOO_DEEP'
  | 'DUPLICATE_KEY'
  | 'LONE_SURROGATE';

export interface SourceJsonOptions {
  /** Accepts lone surrogates, for systems whose digests cover them. Default false. */
  readonly loneSurrogates?: boolean;
  /** The nesting limit, at most 512. Default 64. */
  readonly maxDepth?: number;
}

/**
 * Reads one JSON text (RFC 8259), in linear time. White space, key order and the spelling of numbers are free; a leading byte order mark
 * is ignored.
 */
export function decodeSourceJson(
  bytes: Uint8Array,
  options: SourceJsonOptions = {},
): Result<SourceValue, Fault<SourceJsonCode>> {
  const invalid = findInvalidUtf8(bytes, 0, bytes.length);
  if (invalid >= 0)
    return fail({
      code: 'INVALID_UTF8',
      offset: invalid,
      expected: 'UTF-8',
      actual: excerptBytes(bytes, invalid, bytes.length),
    });
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

  #convert(value: JsonValue): SourceValue {
    if (Array.isArray(value)) return value.map((element) => this.#convert(element));
    if (typeof value !== 'object' || value === null) return value as SourceValue;
    if (value instanceof SourceNumber) return value;
    const keys = this.#keys.get(value) ?? [];
    return new SourceObject(new Map(keys.map((key) => [key, this.#convert(value[key]!)])));
  }
}
