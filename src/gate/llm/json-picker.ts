/**
 * Some members of a JSON text that comes in chunks, in bounded memory, however long it is. It sees where values begin and end and does not
 * judge the rest: a provider wrote it for its clients, and it is passed on to them as it is.
 */

import { concatBytes } from '../../base/bytes/concat.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import { isJsonObject, type JsonObject, type JsonValue, tryParse } from '../../base/json/value.js';

/** What is picked, by paths such as `usage` or `output.*.type`, with `*` for each element of an array. */
export interface Picks {
  /** Of these, the values; one of more than 64 KiB is left out. */
  readonly values: readonly string[];
  /** Of these, how many bytes they have together. */
  readonly sizes?: readonly string[];
  /** Of these, how many there are. */
  readonly counts?: readonly string[];
}

export interface Picked {
  readonly path: string;
  readonly value: unknown;
}

/** The longest value that is picked, in bytes. */
const MAX_VALUE_BYTES = 64 * 1024;
/** The most values that are picked of one text. */
const MAX_VALUES = 4_096;
/** The longest key that is told from others, in bytes. */
const MAX_KEY_BYTES = 64;
/** How many names a path has at most; further down, only brackets are counted. */
const MAX_PATH = 4;
/** The most levels of nesting; no answer has near as many. */
const MAX_DEPTH = 1_000;

/** A key that no path has. */
const OTHER = '?';

interface Container {
  readonly isArray: boolean;
  /** Undefined further down than paths go. */
  readonly path: string | undefined;
}

interface Region {
  readonly path: string;
  readonly depth: number;
  /** Where it begins, in the whole text. */
  readonly start: number;
}

/** Reads one text. A member that is there twice is picked twice. */
export class JsonPicker {
  readonly #wanted: ReadonlySet<string>;
  readonly #sized: ReadonlySet<string>;
  readonly #counted: ReadonlySet<string>;
  readonly #values: Picked[] = [];
  readonly #sizes = new Map<string, number>();
  readonly #counts = new Map<string, number>();
  readonly #open: Container[] = [];
  #mode: 'between' | 'key' | 'text' | 'word' = 'between';
  #state: 'before' | 'within' | 'whole' | 'broken' = 'before';
  #isKeyNext = false;
  #isEscaped = false;
  #key: Uint8Array[] = [];
  #keyBytes = 0;
  #name = OTHER;
  /** How many bytes came before this chunk. */
  #before = 0;
  #picking: Region | undefined;
  #sizing: Region | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isCut = false;

  constructor({ values, sizes = [], counts = [] }: Picks) {
    this.#wanted = new Set(values);
    this.#sized = new Set(sizes);
    this.#counted = new Set(counts);
  }

  /** In the order in which they ended. */
  get values(): readonly Picked[] {
    return this.#values;
  }

  /** Whether the text is one object from its beginning to its end. */
  get isWhole(): boolean {
    return this.#state === 'whole';
  }

  /** Whether a value was too long, was no JSON, or was one too many. */
  get isCut(): boolean {
    return this.#isCut;
  }

  sizeOf(path: string): number {
    return this.#sizes.get(path) ?? 0;
  }

  countOf(path: string): number {
    return this.#counts.get(path) ?? 0;
  }

  push(chunk: Uint8Array): void {
    // Within the chunk, where what is held of the value that is being picked begins.
    let from = 0;
    let at = 0;
    while (at < chunk.length && this.#state !== 'broken') {
      if (this.#mode === 'text' || this.#mode === 'key') {
        const end = this.#skipText(chunk, at);
        if (this.#mode === 'key') this.#holdKey(chunk.subarray(at, end));
        at = end;
        if (at === chunk.length) break;
        at += 1;
        if (this.#mode === 'key') this.#endKey();
        else from = this.#endValue(chunk, from, at);
        this.#mode = 'between';
        continue;
      }
      const byte = chunk[at] as number;
      if (this.#mode === 'word') {
        if (isWordByte(byte)) {
          at += 1;
          continue;
        }
        from = this.#endValue(chunk, from, at);
        this.#mode = 'between';
      }
      if (isSpace(byte)) at += 1;
      else if (byte === COLON) {
        this.#isKeyNext = false;
        at += 1;
      } else if (byte === COMMA) {
        this.#isKeyNext = this.#open.at(-1)?.isArray === false;
        at += 1;
      } else if (byte === END_BRACE || byte === END_BRACKET) {
        at += 1;
        if (this.#open.pop()?.isArray !== (byte === END_BRACKET)) this.#state = 'broken';
        else from = this.#endValue(chunk, from, at);
      } else if (byte === QUOTE && this.#isKeyNext) {
        this.#mode = 'key';
        at += 1;
      } else {
        if (this.#beginValue(this.#before + at, byte)) from = at;
        at += 1;
      }
    }
    if (this.#picking !== undefined) this.#hold(chunk.subarray(from));
    this.#before += chunk.length;
  }

  /** The place of the quote that ends the text, or the end of the chunk. */
  #skipText(chunk: Uint8Array, start: number): number {
    let at = start;
    if (this.#isEscaped && at < chunk.length) {
      this.#isEscaped = false;
      at += 1;
    }
    while (at < chunk.length) {
      const quote = chunk.indexOf(QUOTE, at);
      const end = quote < 0 ? chunk.length : quote;
      const backslash = chunk.subarray(at, end).indexOf(BACKSLASH);
      if (backslash < 0) return end;
      at += backslash + 2;
    }
    this.#isEscaped = at > chunk.length;
    return chunk.length;
  }

  #holdKey(bytes: Uint8Array): void {
    this.#keyBytes += bytes.length;
    if (this.#keyBytes <= MAX_KEY_BYTES) this.#key.push(new Uint8Array(bytes));
  }

  #endKey(): void {
    const text = this.#keyBytes <= MAX_KEY_BYTES ? decodeUtf8(concatBytes(this.#key)) : OTHER;
    // Names of paths have no escapes, no dots and no stars; a key that has could be taken for one of those.
    this.#name = /^[a-z_]+$/.test(text) ? text : OTHER;
    this.#key = [];
    this.#keyBytes = 0;
    this.#isKeyNext = false;
  }

  /** Whether the value is picked. */
  #beginValue(start: number, byte: number): boolean {
    const isContainer = byte === BRACE || byte === BRACKET;
    if (this.#state === 'before') this.#state = byte === BRACE ? 'within' : 'broken';
    else if (this.#open.length === 0 || this.#open.length > MAX_DEPTH) this.#state = 'broken';
    const parent = this.#open.at(-1);
    const depth = this.#open.length;
    const path = parent === undefined ? '' : pathWithin(parent, this.#name, depth);
    let isPicked = false;
    if (path !== undefined && path !== '') {
      if (this.#counted.has(path)) this.#counts.set(path, this.countOf(path) + 1);
      if (this.#sized.has(path)) this.#sizing ??= { path, depth, start };
      if (this.#wanted.has(path) && this.#picking === undefined) {
        isPicked = true;
        this.#picking = { path, depth, start };
      }
    }
    if (isContainer) {
      this.#open.push({ isArray: byte === BRACKET, path });
      this.#isKeyNext = byte === BRACE;
    } else if (byte === QUOTE) this.#mode = 'text';
    else if (isWordByte(byte)) this.#mode = 'word';
    else this.#state = 'broken';
    return isPicked;
  }

  /** Returns where what is held next would begin. */
  #endValue(chunk: Uint8Array, from: number, end: number): number {
    const depth = this.#open.length;
    if (depth === 0) this.#state = 'whole';
    const { path, start } = this.#sizing ?? {};
    if (path !== undefined && start !== undefined && this.#sizing?.depth === depth) {
      this.#sizes.set(path, this.sizeOf(path) + this.#before + end - start);
      this.#sizing = undefined;
    }
    if (this.#picking?.depth !== depth) return from;
    this.#hold(chunk.subarray(from, end));
    this.#pick(this.#picking.path);
    this.#picking = undefined;
    return end;
  }

  #hold(bytes: Uint8Array): void {
    this.#heldBytes += bytes.length;
    if (this.#heldBytes <= MAX_VALUE_BYTES) this.#held.push(new Uint8Array(bytes));
    else this.#held = [];
  }

  #pick(path: string): void {
    const isFitting = this.#heldBytes <= MAX_VALUE_BYTES && this.#values.length < MAX_VALUES;
    const text = decodeUtf8(concatBytes(this.#held));
    this.#held = [];
    this.#heldBytes = 0;
    const value = isFitting ? tryParse(text) : undefined;
    if (value === undefined) this.#isCut = true;
    else this.#values.push({ path, value });
  }
}

/** What was picked as an object, such as `{ a: { b: 1 } }` of `a.b`, and `{ a: [{ b: 1 }, { b: 2 }] }` of `a.*.b` that was there twice. */
export function assemble(values: readonly Picked[]): JsonObject {
  const whole: JsonObject = {};
  for (const { path, value } of values) put(whole, path.split('.'), value as JsonValue);
  return whole;
}

function put(object: JsonObject, [name = '', next, ...rest]: readonly string[], value: JsonValue): void {
  if (next === undefined) object[name] = value;
  else if (next === '*') {
    const element: JsonObject = {};
    if (!Array.isArray(object[name])) object[name] = [];
    object[name].push(element);
    put(element, rest, value);
  } else {
    if (!isJsonObject(object[name])) object[name] = {};
    put(object[name], [next, ...rest], value);
  }
}

function pathWithin({ isArray, path }: Container, name: string, depth: number): string | undefined {
  if (path === undefined || depth > MAX_PATH) return undefined;
  const step = isArray ? '*' : name;
  return path === '' ? step : `${path}.${step}`;
}

export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;
}

/** Of numbers and literals. */
function isWordByte(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || WORD_SIGNS.has(byte);
}

/** `+`, `-`, `.`, `E`. */
const WORD_SIGNS: ReadonlySet<number> = new Set([0x2b, 0x2d, 0x2e, 0x45]);
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const END_BRACKET = 0x5d;
const BRACE = 0x7b;
const END_BRACE = 0x7d;
