/**
 * A ledger's bytes as blocks of whole lines, to be examined together: each block belongs to one file, begins at the beginning of a line
 * and ends with the end of one, but for what follows a file's last `\n`.
 */

import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import type { GivenLines, GivenLongLine, LedgerSource, Segment } from '../../rules/source/ledger-source.js';

/** Whole lines of one file. */
export interface Block {
  readonly segment: Segment;
  /** In the room that was given for it, but for lines that are given with `verdicts`. */
  readonly bytes: Uint8Array;
  /** See `GivenLines`. */
  readonly verdicts?: Uint8Array;
}

/** One line that is longer than a block: of it only length and hash are kept. */
export interface LongLine {
  readonly segment: Segment;
  readonly line: RawLine;
}

const NEWLINE = 0x0a;

/** What gives blocks, one after the other. */
export interface BlockInput {
  /** How many bytes of the ledger end with what was given last. */
  readonly given: number;
  /**
   * The next block, written into `room`, all of which may be overwritten; undefined at the end.
   *
   * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts.
   */
  read(room: Uint8Array): Promise<Block | LongLine | undefined>;
  /** Closes what is open, wherever reading ended. */
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

/** Blocks as others made them. */
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

/** Reads blocks, one after the other. A block ends where a chunk does: nobody waits for more than there is. */
class BlockReader implements BlockInput {
  readonly #segments: AsyncIterator<Segment>;
  readonly #signal: AbortSignal | undefined;
  readonly #onPartOfLine: (() => void) | undefined;
  #segment: Segment | undefined;
  #chunks: AsyncIterator<Uint8Array> | undefined;
  /** The chunk that was begun, and how much of it was taken: all, before the next is asked for, which may overwrite it. */
  #chunk: Uint8Array | undefined;
  #taken = 0;
  /** How many bytes the blocks and lines that were given have. */
  #given = 0;
  /** The beginning of a line whose end did not fit into the block before. */
  #rest: Uint8Array = new Uint8Array(0);

  /** @param onPartOfLine - Called when a chunk has ended no line, before the next is asked for. */
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
        // A copy: what is behind the block may be written to.
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

  /** The line that begins with `start`; what follows it is left in the chunk. */
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
