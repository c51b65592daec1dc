/**
 * Splits a stream into its JSON texts: NDJSON, texts over many lines, concatenated texts, or the items of an array. It finds where a text
 * ends, in bounded memory, and validates nothing: the caller parses each text. At a syntax error it yields what it has read, so that
 * the parser reports the fault and its place.
 */

import { concatBytes } from '../bytes/concat.js';

export interface JsonText {
  /** A view that the next call of the splitter may overwrite; the beginning of a text that is too long. */
  readonly bytes: Uint8Array;
  /** Offset of its first byte in the stream. */
  readonly offset: number;
  /** The line that it begins in, 1 for the first. */
  readonly line: number;
  /** The bytes of that line before it. */
  readonly column: number;
  /**
   * `cut`: the stream ends within it. `long`: it exceeds the limit. `stray`: `bytes`, or the end of the stream, where an array needs
   * a comma or its closing bracket. No texts follow any of these.
   */
  readonly fault?: 'cut' | 'long' | 'stray';
}

interface TextPlace {
  /** 1 for the first. */
  readonly line: number;
  /** In bytes, within the line. */
  readonly column: number;
}

const NEWLINE = 0x0a;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const SPACE = 0x20;

type Begun = Pick<JsonText, 'offset' | 'line' | 'column'>;

/** The position between texts: outside arrays, before an array's first item, after an item, or after a comma. */
type Position = 'top' | 'first' | 'after' | 'next';

/** Splits one stream: call {@link JsonTextSplitter.push} for each chunk, then {@link JsonTextSplitter.finish} once. */
export class JsonTextSplitter {
  readonly #maxBytes: number;
  #position: Position = 'top';
  /** Of the current byte. */
  #offset = 0;
  #line = 1;
  #lineStart = 0;
  #isOver = false;

  /** The text that has begun, if any. */
  #begun: Begun | undefined;
  #carry: Uint8Array[] = [];
  #carried = 0;
  #depth = 0;
  #isString = false;
  #isEscaped = false;
  /** Whether a value precedes, so that only a comma, a colon or a closing bracket may follow. */
  #isAfterValue = false;

  /** @throws RangeError unless `maxBytes`, the longest text, is an integer of at least 1. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    if (!Number.isSafeInteger(maxBytes) || maxBytes < 1)
      throw new RangeError('expected maxBytes to be an integer of at least 1');
    this.#maxBytes = maxBytes;
  }

  /** The texts that `chunk` completes. The caller MUST finish with each before taking the next, and with all before reusing `chunk`. */
  *push(chunk: Uint8Array): Generator<JsonText, void, void> {
    let start = 0;
    for (let at = 0; at < chunk.length && !this.#isOver; at += 1, this.#offset += 1) {
      if (this.#begun !== undefined && this.#isString && !this.#isEscaped) {
        // Most bytes are within strings.
        const longest = start + this.#maxBytes - this.#carried;
        const end = endOfPlain(chunk, at, Math.min(chunk.length, longest));
        this.#offset += end - at;
        at = end;
        if (at === chunk.length) break;
      }
      const byte = chunk[at] as number;
      if (this.#begun === undefined) {
        start = at;
        const fault = this.#between(byte);
        if (fault) {
          this.#isOver = true;
          yield this.#place({ bytes: chunk.subarray(at, at + 1), fault: 'stray' });
          return;
        }
      } else {
        const end = this.#within(byte);
        const last = end === 'before' ? at : at + 1;
        if (this.#carried + last - start > this.#maxBytes) {
          yield { ...this.#take(chunk.subarray(start, last), true), fault: 'long' };
          return;
        }
        if (end !== undefined) yield this.#take(chunk.subarray(start, last), end === 'broken');
        if (end === 'before') {
          // The byte is not part of the text: process it again.
          at -= 1;
          this.#offset -= 1;
          continue;
        }
      }
      if (byte === NEWLINE) {
        this.#line += 1;
        this.#lineStart = this.#offset + 1;
      }
    }
    if (this.#begun !== undefined && !this.#isOver && start < chunk.length) {
      this.#carry.push(Uint8Array.from(chunk.subarray(start)));
      this.#carried += chunk.length - start;
    }
  }

  /** The rest of the stream; undefined if it ended between texts. */
  finish(): JsonText | undefined {
    if (this.#isOver) return undefined;
    this.#isOver = true;
    if (this.#begun === undefined)
      return this.#position === 'top' ? undefined : this.#place({ bytes: new Uint8Array(), fault: 'stray' });
    const isWhole = this.#depth === 0 && !this.#isString;
    const text = this.#take(new Uint8Array(), true);
    if (!isWhole) return { ...text, fault: 'cut' };
    return this.#position === 'top' ? text : { ...text, fault: 'cut' };
  }

  /** Processes a byte between texts. Returns whether it is stray. */
  #between(byte: number): boolean {
    if (isSpace(byte)) return false;
    if (this.#position === 'after') {
      if (byte !== COMMA && byte !== CLOSE_ARRAY) return true;
      this.#position = byte === COMMA ? 'next' : 'top';
      return false;
    }
    if (byte === COMMA || byte === CLOSE_ARRAY || byte === CLOSE_OBJECT || byte === COLON) {
      if (byte !== CLOSE_ARRAY || this.#position !== 'first') return true;
      this.#position = 'top';
      return false;
    }
    if (byte === OPEN_ARRAY && this.#position === 'top') {
      this.#position = 'first';
      return false;
    }
    this.#begun = { offset: this.#offset, line: this.#line, column: this.#offset - this.#lineStart };
    this.#depth = 0;
    this.#isAfterValue = false;
    this.#isEscaped = false;
    this.#isString = byte === QUOTE;
    if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#depth = 1;
    return false;
  }

  /** Processes a byte within a text. Returns whether the text ends with it, before it, or is broken by it. */
  #within(byte: number): 'with' | 'before' | 'broken' | undefined {
    if (this.#isString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === BACKSLASH) this.#isEscaped = true;
      else if (byte === QUOTE) {
        this.#isString = false;
        this.#isAfterValue = true;
        return this.#depth === 0 ? 'with' : undefined;
      }
      return byte < SPACE ? 'broken' : undefined;
    }
    if (this.#depth === 0) {
      // Only what follows ends a number or a literal.
      return isSpace(byte) || byte === COMMA || byte === CLOSE_ARRAY ? 'before' : undefined;
    }
    switch (byte) {
      case QUOTE:
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        if (this.#isAfterValue) return 'broken';
        if (byte === QUOTE) this.#isString = true;
        else this.#depth += 1;
        return undefined;
      case CLOSE_OBJECT:
      case CLOSE_ARRAY:
        this.#depth -= 1;
        this.#isAfterValue = true;
        return this.#depth === 0 ? 'with' : undefined;
      case COMMA:
      case COLON:
        this.#isAfterValue = false;
        return undefined;
      default:
        if (!isSpace(byte)) this.#isAfterValue = true;
        return undefined;
    }
  }

  #take(rest: Uint8Array, isLast: boolean): JsonText {
    const bytes = this.#carried === 0 ? rest : concatBytes([...this.#carry, rest]);
    const text = { bytes, ...(this.#begun as Begun) };
    this.#begun = undefined;
    this.#carry = [];
    this.#carried = 0;
    this.#isOver = isLast;
    if (this.#position !== 'top') this.#position = 'after';
    return text;
  }

  #place(text: Pick<JsonText, 'bytes' | 'fault'>): JsonText {
    return { offset: this.#offset, line: this.#line, column: this.#offset - this.#lineStart, ...text };
  }
}

/** The place in the stream of a byte of a text. */
export function placeInText({ bytes, line, column }: JsonText, offset: number): TextPlace {
  let at = { line, column: column + offset };
  for (let i = bytes.indexOf(NEWLINE); i !== -1 && i < offset; i = bytes.indexOf(NEWLINE, i + 1))
    at = { line: at.line + 1, column: offset - i - 1 };
  return at;
}

/** The end of the plain characters of a string. */
function endOfPlain(bytes: Uint8Array, from: number, end: number): number {
  let at = from;
  for (; at < end; at += 1) {
    const byte = bytes[at] as number;
    if (byte === QUOTE || byte === BACKSLASH || byte < SPACE) break;
  }
  return at;
}

function isSpace(byte: number): boolean {
  return byte === SPACE || byte === NEWLINE || byte === 0x0d || byte === 0x09;
}
