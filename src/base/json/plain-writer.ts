/**
 * The fast path of `canonicalize.ts`: checks, sorts and writes a plain value in one pass. It declines what is no JSON or has a lone
 * surrogate; `canonicalize.ts`, the definition, then says why. Both write the same bytes.
 */

import { allocateBytes } from '../bytes/concat.js';
import { MAX_DEPTH } from './scan.js';

/** The result for a value that the writer declines. */
export const NOT_PLAIN = Symbol('unusual');

/**
 * Replaces the text of a member, or of an item of a member that is a list.
 *
 * @param name - Of the member.
 * @param depth - The number of containers open around the member.
 * @returns A plain value; undefined to keep the text.
 */
export type Replace = (text: string, name: string, depth: number) => object | undefined;

/** A larger buffer is released after its value. */
const MAX_KEPT_BYTES = 1024 * 1024;
/** Insertion sort is faster up to this many names. */
const MAX_INSERTED = 24;
const NO_ARRAY: readonly unknown[] = [];

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** For each ASCII character: 0 if it is not escaped, the letter of its short escape, or 1 for `\u00xx`. */
const ESCAPE = new Uint8Array(128);
ESCAPE.fill(1, 0, 0x20);
for (const [character, letter] of ['""', '\\\\', '\bb', '\tt', '\nn', '\ff', '\rr'] as const)
  ESCAPE[character!.charCodeAt(0)] = letter!.charCodeAt(0);

const HEX = '0123456789abcdef';

/** Writes any number of values, one at a time. */
export class PlainWriter {
  #bytes: Uint8Array;
  #at = 0;
  #deepest = 0;
  #isBusy = false;
  #replace: Replace | undefined;
  readonly room: Uint8Array;

  /** @param room - A prefix of everything written. */
  constructor(room: Uint8Array = new Uint8Array(0)) {
    this.room = room;
    this.#bytes = allocateBytes(room.length + 4_096);
    this.#bytes.set(room);
  }

  /**
   * Calls `write`, which writes one value. Not reentrant: a proxy that writes while it is read gets {@link NOT_PLAIN}.
   *
   * @param replace - Called for each member that is a text, and each text in a member that is a list.
   * @returns The result of `write`.
   */
  use<T>(write: () => T, replace?: Replace): T | typeof NOT_PLAIN {
    if (this.#isBusy || 'toJSON' in NO_ARRAY) return NOT_PLAIN;
    this.#isBusy = true;
    this.#at = this.room.length;
    this.#deepest = 0;
    this.#replace = replace;
    try {
      return write();
    } finally {
      this.#isBusy = false;
      if (this.#bytes.length > MAX_KEPT_BYTES) {
        this.#bytes = allocateBytes(this.room.length + 4_096);
        this.#bytes.set(this.room);
      }
    }
  }

  get at(): number {
    return this.#at;
  }

  /** The bytes written, the room included; valid until the next value is written. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#at);
  }

  /** The largest depth so far. */
  get deepest(): number {
    return this.#deepest;
  }

  byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#at++] = byte;
  }

  /** Writes an object's member with its name. @returns Whether it is plain. */
  member(object: object, name: string, depth: number): boolean {
    const member = Object.getOwnPropertyDescriptor(object, name);
    if (member === undefined || !('value' in member) || member.enumerable !== true) return false;
    return this.named(name, member.value, depth);
  }

  /** Writes a name and a value. @returns Whether they are plain. */
  named(name: string, value: unknown, depth: number): boolean {
    if (!this.#string(name)) return false;
    this.#bytes[this.#at++] = COLON;
    return this.#replaced(value, name, depth);
  }

  #replaced(value: unknown, name: string, depth: number): boolean {
    if (typeof value !== 'string') return this.value(value, depth, name);
    const replaced = this.#replace?.(value, name, depth);
    return replaced === undefined ? this.#string(value) : this.value(replaced, depth);
  }

  /** Writes a value within `depth` open containers. @param name - Of the member that it is. @returns Whether it is plain. */
  value(value: unknown, depth: number, name?: string): boolean {
    switch (typeof value) {
      case 'string':
        return this.#string(value);
      case 'number':
        return this.#number(value);
      case 'boolean':
        this.#ascii(value ? 'true' : 'false');
        return true;
      case 'object':
        if (value === null) {
          this.#ascii('null');
          return true;
        }
        if (depth >= this.#deepest) this.#deepest = depth + 1;
        if (depth === MAX_DEPTH) return false;
        return Array.isArray(value) ? this.#array(value, depth + 1, name) : this.#object(value, depth + 1);
      default:
        return false;
    }
  }

  #object(object: object, depth: number): boolean {
    const names = listNames(object);
    if (names === undefined) return false;
    this.byte(0x7b);
    for (let index = 0; index < names.length; index++) {
      if (index > 0) this.byte(COMMA);
      if (!this.member(object, names[index]!, depth)) return false;
    }
    this.byte(0x7d);
    return true;
  }

  #array(array: readonly unknown[], depth: number, name: string | undefined): boolean {
    if (Object.getPrototypeOf(array) !== Array.prototype) return false;
    const { length } = array;
    this.byte(0x5b);
    for (let index = 0; index < length; index++) {
      if (index > 0) this.byte(COMMA);
      const member = Object.getOwnPropertyDescriptor(array, index);
      if (member === undefined || !('value' in member) || member.enumerable !== true) return false;
      const isPlain =
        name === undefined ? this.value(member.value, depth) : this.#replaced(member.value, name, depth);
      if (!isPlain) return false;
    }
    if (Reflect.ownKeys(array).length !== length + 1) return false;
    this.byte(0x5d);
    return true;
  }

  #number(value: number): boolean {
    if (!Number.isFinite(value) || Object.is(value, -0)) return false;
    const text = String(value);
    if (Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes('e')) return false;
    this.#ascii(text);
    return true;
  }

  #ascii(text: string): void {
    this.#reserve(text.length);
    for (let index = 0; index < text.length; index++) this.#bytes[this.#at++] = text.charCodeAt(index);
  }

  /** Reserves one byte more than it writes. */
  #string(text: string): boolean {
    const { length } = text;
    // A code unit takes at most six bytes, `\u0000`.
    this.#reserve(6 * length + 3);
    const bytes = this.#bytes;
    let at = this.#at;
    bytes[at++] = QUOTE;
    for (let index = 0; index < length; index++) {
      const unit = text.charCodeAt(index);
      if (unit < 0x80) {
        const escape = ESCAPE[unit]!;
        if (escape === 0) bytes[at++] = unit;
        else if (escape > 1) {
          bytes[at++] = BACKSLASH;
          bytes[at++] = escape;
        } else {
          for (const character of `\\u00${HEX[unit >> 4]!}${HEX[unit & 15]!}`)
            bytes[at++] = character.charCodeAt(0);
        }
      } else if (unit < 0x800) {
        bytes[at++] = 0xc0 | (unit >> 6);
        bytes[at++] = 0x80 | (unit & 0x3f);
      } else if (unit < 0xd800 || unit > 0xdfff) {
        bytes[at++] = 0xe0 | (unit >> 12);
        bytes[at++] = 0x80 | ((unit >> 6) & 0x3f);
        bytes[at++] = 0x80 | (unit & 0x3f);
      } else {
        const low = text.charCodeAt(index + 1);
        if (unit > 0xdbff || !(low >= 0xdc00 && low <= 0xdfff)) return false;
        const point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        bytes[at++] = 0xf0 | (point >> 18);
        bytes[at++] = 0x80 | ((point >> 12) & 0x3f);
        bytes[at++] = 0x80 | ((point >> 6) & 0x3f);
        bytes[at++] = 0x80 | (point & 0x3f);
        index++;
      }
    }
    bytes[at++] = QUOTE;
    this.#at = at;
    return true;
  }

  #reserve(count: number): void {
    const needed = this.#at + count;
    if (needed <= this.#bytes.length) return;
    const larger = allocateBytes(Math.max(needed, 2 * this.#bytes.length));
    larger.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = larger;
  }
}

/** The names of a plain object's members in canonical order; undefined if it is not plain. The members are not read. */
export function listNames(object: object): string[] | undefined {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null) return undefined;
  if (Object.getOwnPropertySymbols(object).length > 0) return undefined;
  return sortNames(Object.getOwnPropertyNames(object));
}

/** Sorts in place by UTF-16 code units (RFC 8785 §3.2.3). */
export function sortNames(names: string[]): string[] {
  if (names.length > MAX_INSERTED) return names.sort();
  for (let index = 1; index < names.length; index++) {
    const name = names[index]!;
    let at = index;
    for (; at > 0 && names[at - 1]! > name; at--) names[at] = names[at - 1]!;
    names[at] = name;
  }
  return names;
}
