/**
 * A ledger's bytes as blocks of whole lines, to be examined together. A block is of one file, and begins and ends with a line. What
 * follows a file's last `\n` is the only exception.
 */

import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import type { GivenLines, GivenLongLine, LedgerSource, Segment } from '../../rules/source/ledger-source.js';

export interface Block {
  readonly segment: Segment;
  /** In the room passed to `read`, unless `verdicts` are given. */
  readonly bytes: Uint8Array;
  /** See `GivenLines`. */
  readonly verdicts?: Uint8Array;
}

/** A line longer than a block: only its length and hash are kept. */
export interface LongLine {
  readonly segment: Segment;
  readonly line: RawLine;
}

const NEWLINE = 0x0a;

export interface BlockInput {
  /** Bytes of the ledger up to the end of the last block. */
  readonly given: number;
  /**
   * Reads the next block into `room`, all of which may be overwritten; undefined at the end.
   *
   * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts.
   */
  read(room: Uint8Array): Promise<Block | LongLine | undefined>;
  /** Closes the source. MUST be called, also after an error. */
  close(): Promise<void>;
}

/** The blocks of a source. */
export function openBlocks(
  source: LedgerSource,
  signal?: AbortSignal,
  onPartOfLine?: () => void,
): BlockInput {
  return source.given === undefined
    ? new BlockReader(source, signal, onPartOfLine)
    : new GivenBlocks(source.given, signal);
}

class GivenBlocks implements BlockInput {
  given = 0;
  readonly #blocks: AsyncIterator<GivenLines | GivenLongLine>;
  readonly #signal: AbortSignal | undefined;

  constructor(blocks: AsyncIterable<GivenLines | GivenLongLine>, signal: AbortSignal | undefined) {
    this.#blocks = blocks[Symbol.asyncIterator]();
    this.#signal = signal;
  }

  async read(room: Uint8Array): Promise<Block | LongLine | undefined> {
    this.#signal?.throwIfAborted();
    const next = await this.#blocks.next();
    if (next.done === true) return undefined;
    const { segment } = next.value;
    if ('bytes' in next.value) {
      const { bytes, verdicts } = next.value;
      this.given += bytes.length;
      if (bytes.length > room.length) return { segment, bytes, verdicts };
      room.set(bytes);
      return { segment, bytes: room.subarray(0, bytes.length), verdicts };
    }
    const { length, terminated, leaf } = next.value;
    this.given += length + (terminated ? 1 : 0);
    const bytes = new Uint8Array(MAX_LINE_BYTES);
    return { segment, line: { bytes, length, terminated, longLeafHash: leaf, offset: 0, number: 0 } };
  }

  async close(): Promise<void> {
    await this.#blocks.return?.();
  }
}

/** Reads blocks. A block ends with its chunk, so that no line waits for more input. */
class BlockReader implements BlockInput {
  readonly #segments: AsyncIterator<Segment>;
  readonly #signal: AbortSignal | undefined;
  readonly #onPartOfLine: (() => void) | undefined;
  #segment: Segment | undefined;
  #chunks: AsyncIterator<Uint8Array> | undefined;
  /** The current chunk, and how much of it was consumed: all, before the next is requested, which may overwrite it. */
  #chunk: Uint8Array | undefined;
  #taken = 0;
  /** Bytes of all blocks and lines so far. */
  #given = 0;
  /** The beginning of a line that did not fit into the block before. */
  #rest: Uint8Array = new Uint8Array(0);

  /** @param onPartOfLine - Called when no line has ended in a chunk. */
  constructor({ segments }: LedgerSource, signal?: AbortSignal, onPartOfLine?: () => void) {
    this.#segments = segments[Symbol.asyncIterator]();
    this.#signal = signal;
    this.#onPartOfLine = onPartOfLine;
  }

  get given(): number {
    return this.#given;
  }

  async read(room: Uint8Array): Promise<Block | LongLine | undefined> {
    for (;;) {
      const segment = await this.#openSegment();
      if (segment === undefined) return undefined;
      let filled = this.#rest.length;
      room.set(this.#rest);
      this.#rest = new Uint8Array(0);
      let end = -1;
      while (filled < room.length) {
        if (end !== -1 && this.#isChunkTaken()) break;
        const chunk = await this.#nextChunk();
        if (chunk === undefined) {
          this.#segment = undefined;
          break;
        }
        const part = chunk.subarray(this.#taken, this.#taken + room.length - filled);
        room.set(part, filled);
        this.#taken += part.length;
        const last = part.lastIndexOf(NEWLINE);
        if (last !== -1) end = filled + last + 1;
        filled += part.length;
        if (end === -1 && this.#isChunkTaken()) this.#onPartOfLine?.();
      }
      if (this.#segment === undefined) {
        if (filled > 0) return this.#give(segment, room.subarray(0, filled));
      } else if (end === -1) {
        const line = await this.#readLongLine(room.subarray(0, filled));
        this.#given += line.length + (line.terminated ? 1 : 0);
        return { segment, line };
      } else {
        // A copy: the room behind the block may be overwritten.
        this.#rest = Uint8Array.from(room.subarray(end, filled));
        return this.#give(segment, room.subarray(0, end));
      }
    }
  }

  async close(): Promise<void> {
    await this.#chunks?.return?.();
    await this.#segments.return?.();
  }

  #give(segment: Segment, bytes: Uint8Array): Block {
    this.#given += bytes.length;
    return { segment, bytes };
  }

  async #openSegment(): Promise<Segment | undefined> {
    if (this.#segment !== undefined) return this.#segment;
    const next = await this.#segments.next();
    if (next.done === true) return undefined;
    this.#segment = next.value;
    this.#chunks = next.value.chunks[Symbol.asyncIterator]();
    return this.#segment;
  }

  #isChunkTaken(): boolean {
    return this.#taken === this.#chunk?.length;
  }

  async #nextChunk(): Promise<Uint8Array | undefined> {
    while (this.#chunk === undefined || this.#isChunkTaken()) {
      this.#signal?.throwIfAborted();
      const next = await this.#chunks?.next();
      if (next === undefined || next.done === true) {
        this.#chunk = undefined;
        return undefined;
      }
      this.#chunk = next.value;
      this.#taken = 0;
    }
    return this.#chunk;
  }

  /** Reads the line that begins with `start`, and no more of the chunk. */
  async #readLongLine(start: Uint8Array): Promise<RawLine> {
    const splitter = new LineSplitter();
    for (let part = start; ;) {
      for (const line of splitter.push(part)) return line;
      const chunk = await this.#nextChunk();
      if (chunk === undefined) {
        this.#segment = undefined;
        return splitter.finish() as RawLine;
      }
      const newline = chunk.indexOf(NEWLINE, this.#taken);
      part = chunk.subarray(this.#taken, newline === -1 ? chunk.length : newline + 1);
      this.#taken += part.length;
    }
  }
}
