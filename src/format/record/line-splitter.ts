/** Splits chunks of a ledger into lines in bounded memory: of a line longer than SPEC §4 allows only the length and the hash are kept. */

import { allocateBytes } from '../../base/bytes/concat.js';
import { createSha256, type Hasher } from '../../base/bytes/sha256.js';

/** The longest line, in bytes without its `\n` (SPEC §4: a tlog-tiles entry). */
export const MAX_LINE_BYTES = 65_535;

/** The largest `meta` of a record, in bytes (SPEC §4). */
export const MAX_META_BYTES = 4_096;

/** One line. `bytes` is a view that the next call of the splitter may overwrite. */
export interface RawLine {
  /** The line without its `\n`; only the first {@link MAX_LINE_BYTES} bytes of a longer one. */
  readonly bytes: Uint8Array;
  /** Length in bytes without the `\n`. */
  readonly length: number;
  /** Offset of the first byte in the file. */
  readonly offset: number;
  /** 1 for the first line. */
  readonly number: number;
  /** Whether the line ends in `\n`; false only for the last of a file. */
  readonly terminated: boolean;
  /** The RFC 6962 leaf hash, for a line that is too long only. */
  readonly longLeafHash: string | undefined;
}

const NEWLINE = 0x0a;

/** Splits one file: call {@link LineSplitter.push} for each chunk, then {@link LineSplitter.finish} once. */
export class LineSplitter {
  #number = 0;
  #offset = 0;
  /** The line in it is valid until the next is requested. */
  readonly #carry = allocateBytes(MAX_LINE_BYTES);
  #carried = 0;
  #overflow: Hasher | undefined;

  /** @param from - The bytes and lines before the first chunk, which MUST begin at the beginning of a line. */
  constructor(from: { readonly offset: number; readonly lines: number } = { offset: 0, lines: 0 }) {
    this.#offset = from.offset;
    this.#number = from.lines;
  }

  /** The lines that `chunk` completes. The caller MUST finish with each before taking the next, and with all before reusing `chunk`. */
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

  /** The torn line after the last `\n`; `undefined` if there is none. */
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
