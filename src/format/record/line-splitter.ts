/**
 * Splits chunks of a ledger into lines without losing byte offsets, in bounded memory whatever the input: of a line
 * longer than SPEC §4 allows only the length and the hash are kept.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { createSha256, type Hasher } from '../../base/bytes/sha256.js';

/** The longest line, in bytes without its `\n` (SPEC §4: a tlog-tiles entry). */
export const MAX_LINE_BYTES = 65_535;

/** The most bytes that a record's `meta` may have (SPEC §4). */
export const MAX_META_BYTES = 4_096;

/** One line. `bytes` is a view that the next call of the splitter may overwrite. */
export interface RawLine {
  /** The line without its `\n`; for a line that is too long, its first {@link MAX_LINE_BYTES} bytes. */
  readonly bytes: Uint8Array;
  /** Length in bytes without the `\n`. */
  readonly length: number;
  /** Offset of the first byte in the file. */
  readonly offset: number;
  /** 1 for the first line. */
  readonly number: number;
  /** False for the last line of a file that does not end in `\n`. */
  readonly terminated: boolean;
  /** The RFC 6962 leaf hash, given only for a line that is too long to be hashed from `bytes`. */
  readonly longLeafHash: string | undefined;
}

const NEWLINE = 0x0a;

/** Splits one file. Feed it with {@link LineSplitter.push}, then call {@link LineSplitter.finish} once. */
export class LineSplitter {
  #number = 0;
  #offset = 0;
  /** Free when the line in it was used up: the next is asked for. */
  readonly #carry = allocateBytes(MAX_LINE_BYTES);
  #carried = 0;
  #overflow: Hasher | undefined;

  /** @param from - Where in the file the first chunk begins, at the beginning of a line: so many bytes and lines come before it. */
  constructor(from: { readonly offset: number; readonly lines: number } = { offset: 0, lines: 0 }) {
    this.#offset = from.offset;
    this.#number = from.lines;
  }

  /** The lines that `chunk` completes. Each must be used up before the next is taken, and all before `chunk` is reused. */
  *push(chunk: Uint8Array): Generator<RawLine, void, void> {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      const rest = chunk.subarray(start, end);
      start = end + 1;
      if (this.#carried === 0 && rest.length <= MAX_LINE_BYTES) {
        yield this.#line(rest, rest.length, true, undefined);
        this.#offset += rest.length + 1;
      } else {
        this.#keep(rest);
        yield this.#take(true);
      }
    }
    if (start < chunk.length) this.#keep(chunk.subarray(start));
  }

  /** What is left after the last `\n`: a torn line, or `undefined` when the file ended as it should. */
  finish(): RawLine | undefined {
    return this.#carried === 0 ? undefined : this.#take(false);
  }

  #keep(part: Uint8Array): void {
    const room = MAX_LINE_BYTES - this.#carried;
    if (room > 0) this.#carry.set(part.subarray(0, room), this.#carried);
    if (part.length > room) {
      this.#overflow ??= createSha256().update(Uint8Array.of(0)).update(this.#carry);
      this.#overflow.update(room > 0 ? part.subarray(room) : part);
    }
    this.#carried += part.length;
  }

  #take(terminated: boolean): RawLine {
    const length = this.#carried;
    const line = this.#line(
      this.#carry.subarray(0, Math.min(length, MAX_LINE_BYTES)),
      length,
      terminated,
      this.#overflow?.digestLatin1(),
    );
    this.#offset += length + 1;
    this.#carried = 0;
    this.#overflow = undefined;
    return line;
  }

  #line(bytes: Uint8Array, length: number, terminated: boolean, longLeafHash: string | undefined): RawLine {
    this.#number += 1;
    return { bytes, length, offset: this.#offset, number: this.#number, terminated, longLeafHash };
  }
}
