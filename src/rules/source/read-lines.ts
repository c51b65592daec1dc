/**
 * Reads the lines of a ledger sequentially: the only loop over its files, chunks and lines. Which lines are leaves is decided here, so
 * that all readers count alike (SPEC §4).
 */

import { LineSplitter, type RawLine } from '../../format/record/line-splitter.js';
import { leafHash } from '../../format/tree/compact-range.js';
import type { LedgerSource, Segment } from './ledger-source.js';

/** Opens the same ledger, for each of several passes. */
export type OpenLedger = () => Promise<LedgerSource>;

export interface LedgerLine {
  /** Valid until the next line is requested. */
  readonly line: RawLine;
  readonly segment: Segment;
  /** How many leaves are before it: its own index, if it is a leaf. */
  readonly ordinal: number;
  /** Whether it is a leaf of the tree, readable or not: a blank line is none, nor is what follows the last `\n`. */
  readonly takesPlace: boolean;
}

export interface ReadLinesOptions {
  /** Aborting ends the reading with its reason, before the next chunk. */
  readonly signal?: AbortSignal | undefined;
  /** Called with the bytes read so far, after the lines of each chunk. */
  readonly onChunk?: (bytes: number) => void;
}

/**
 * Reads all lines of a ledger in order, also those that are no leaves.
 *
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts; TypeError for what is no source.
 */
export function readLines(source: LedgerSource, options: ReadLinesOptions = {}): LineReader {
  assertSource(source);
  return new LineReader(source, options);
}

/** @throws TypeError for a path, with a clear message. */
function assertSource(source: unknown): asserts source is LedgerSource {
  if (typeof source === 'object' && source !== null && 'segments' in source) return;
  const found = source === null ? 'null' : typeof source;
  throw new TypeError(`expected a ledger's source, such as openLedger(path) gives, found ${found}`);
}

/** Lines on request. A caller that stops early MUST call `return`, as `for await` does. */
export class LineReader implements AsyncIterableIterator<LedgerLine, void, void> {
  readonly #chunks: AsyncGenerator<ChunkLines, void, void>;
  #segment: Segment | undefined;
  #ready: Iterator<RawLine, void, void> | undefined;
  #ordinal = 0;

  constructor(source: LedgerSource, options: ReadLinesOptions) {
    this.#chunks = splitChunks(source, options);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The next line, if it is already read. */
  tryNext(): LedgerLine | undefined {
    const next = this.#ready?.next();
    if (next === undefined || next.done === true) return undefined;
    const line = next.value;
    const takesPlace = line.length > 0 && line.terminated;
    const ordinal = this.#ordinal;
    if (takesPlace) this.#ordinal += 1;
    return { line, segment: this.#segment as Segment, ordinal, takesPlace };
  }

  async next(): Promise<IteratorResult<LedgerLine, void>> {
    for (;;) {
      const value = this.tryNext();
      if (value !== undefined) return { done: false, value };
      const next = await this.#chunks.next();
      if (next.done === true) return { done: true, value: undefined };
      this.#segment = next.value.segment;
      this.#ready = next.value.lines;
    }
  }

  async return(): Promise<IteratorResult<LedgerLine, void>> {
    this.#ready = undefined;
    await this.#chunks.return();
    return { done: true, value: undefined };
  }
}

/** The leaf hash of a line of any length. */
export function hashLine({ bytes, longLeafHash }: RawLine): string {
  return longLeafHash ?? leafHash(bytes);
}

/** The lines that end in one chunk, or the rest after a file's last `\n`. */
interface ChunkLines {
  readonly segment: Segment;
  readonly lines: Iterator<RawLine, void, void>;
}

async function* splitChunks(
  { segments }: LedgerSource,
  { signal, onChunk }: ReadLinesOptions,
): AsyncGenerator<ChunkLines, void, void> {
  let bytes = 0;
  for await (const segment of segments) {
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      signal?.throwIfAborted();
      yield { segment, lines: splitter.push(chunk) };
      bytes += chunk.length;
      onChunk?.(bytes);
    }
    const rest = splitter.finish();
    if (rest !== undefined) yield { segment, lines: [rest].values() };
  }
}
