/**
 * `#fast/step` in a build without `fast/`: the definition of the fast path. Lines are read one by one, nothing is known of a line in
 * advance, and the fast path declines every record.
 */

import type { Room } from '../../format/event/identity.js';
import type { ExaminedLine, SignatureEntry, WellFormedLine } from '../../format/record/examine-line.js';
import { LineSplitter, type RawLine } from '../../format/record/line-splitter.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import type { Grant } from '../bounds/grant.js';
import type { LedgerPlace, LedgerSource } from '../source/ledger-source.js';
import type { KnownLine, LineKnowledge } from './line-knowledge.js';
import type { EventVerdict, Judged, SegmentName } from './line-result.js';
import type { VerifyState } from './state.js';

/** Without the fast path, one thread. */
export function defaultThreads(): number {
  return 1;
}

export function isFastPathOn(): boolean {
  return false;
}

/** The same backend, which imports a key at each use. */
export function rememberKeys(backend: SignatureBackend): SignatureBackend {
  return backend;
}

interface ChunkLines {
  next(): boolean;
  readonly line: KnownLine;
  readonly fast: undefined;
}

interface ReadOptions {
  readonly from?: LedgerPlace | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onPartOfLine?: (() => void) | undefined;
  /** The options of threads, which have no effect. */
  readonly [other: string]: unknown;
}

/**
 * Reads the lines of a ledger in order. Each MUST be processed before the next is requested.
 *
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts; TypeError for parts.
 */
export async function* readBlocks(
  source: LedgerSource,
  { from, signal, onPartOfLine }: ReadOptions,
): AsyncGenerator<ChunkLines, void, void> {
  if (source.given !== undefined) throw new TypeError(NO_PARTS);
  let ordinal = from?.ordinal ?? 0;
  let place = from;
  for await (const segment of source.segments) {
    const [lines, bytes] = [(place?.line ?? 1) - 1, place?.offset ?? 0];
    place = undefined;
    const known = (raw: RawLine): KnownLine => {
      const takesPlace = raw.length > 0 && raw.terminated;
      const line = { ...raw, number: raw.number + lines, offset: raw.offset + bytes };
      return { line, segment, ordinal: takesPlace ? ordinal++ : ordinal, takesPlace, known: undefined };
    };
    const splitter = new LineSplitter();
    for await (const chunk of segment.chunks) {
      signal?.throwIfAborted();
      const read = new LinesOfChunk(splitter.push(chunk), known);
      if (read.isEmpty) onPartOfLine?.();
      else yield read;
    }
    const rest = splitter.finish();
    if (rest !== undefined) yield new LinesOfChunk([rest].values(), known);
  }
}

class LinesOfChunk implements ChunkLines {
  readonly fast = undefined;
  readonly #lines: Iterator<RawLine, unknown, void>;
  readonly #known: (line: RawLine) => KnownLine;
  #ahead: RawLine | undefined;
  #line: KnownLine | undefined;

  constructor(lines: Iterator<RawLine, unknown, void>, known: (line: RawLine) => KnownLine) {
    this.#lines = lines;
    this.#known = known;
    this.#ahead = this.#read();
  }

  get isEmpty(): boolean {
    return this.#ahead === undefined;
  }

  get line(): KnownLine {
    return this.#line as KnownLine;
  }

  next(): boolean {
    const line = this.#ahead ?? this.#read();
    this.#ahead = undefined;
    if (line === undefined) return false;
    this.#line = this.#known(line);
    return true;
  }

  #read(): RawLine | undefined {
    const { done, value } = this.#lines.next();
    return done === true ? undefined : value;
  }
}

/** Never made: see {@link FastStep.of}. */
export abstract class FastStep {
  abstract readonly treeSize: number;
  abstract readonly verdict: EventVerdict;
  abstract readonly grant: Grant | undefined;
  abstract tryApply(line: undefined): boolean;
  abstract flush(): void;
  abstract reset(): void;

  /** Declines. */
  static of(_state: VerifyState, _options: object): FastStep | undefined {
    return undefined;
  }
}

export interface LineSteps {
  readonly state: VerifyState;
  step(line: RawLine, segment: SegmentName, examined?: ExaminedLine, known?: LineKnowledge): void;
  readonly afterFast?: (line: RawLine, examined: WellFormedLine, judged: Judged) => void;
}

/** Applies each line at once. */
export class BlockSteps {
  readonly waiting = 0;
  readonly #steps: LineSteps;

  constructor(steps: LineSteps) {
    this.#steps = steps;
  }

  apply(line: RawLine, segment: SegmentName): Promise<void> {
    this.#steps.step(line, segment);
    return Promise.resolve();
  }

  flush(): Promise<void> {
    return Promise.resolve();
  }
}

/** Never made: see {@link scanFastEvent}. */
export interface FastEvent {
  readonly line: WellFormedLine;
}

/** No room: lines are formatted once their place is known. */
export const LINE_ROOM: Room = { before: 0, after: 0 };

/** Declines. */
export function scanFastEvent(_whole: Uint8Array): FastEvent | undefined {
  return undefined;
}

/** Declines. */
export function placeFastEvent(
  _event: FastEvent,
  _prev: string,
  _seq: number,
  _signature: SignatureEntry | undefined,
): { readonly bytes: Uint8Array; readonly examined: WellFormedLine } | undefined {
  return undefined;
}

/** Never made: see {@link WriterFastPath.of}. */
export abstract class WriterFastPath {
  abstract readonly state: VerifyState;
  abstract readonly prev: string | undefined;
  abstract tryApply(event: FastEvent, line: RawLine, file: string): Judged | undefined;
  abstract flush(): void;
  abstract leave(): void;

  /** Declines. */
  static of(_state: VerifyState): WriterFastPath | undefined {
    return undefined;
  }
}

/** The most parts that a ledger may be examined in. */
export const MAX_PARTS = 10_000;

/** Not used here. */
export type PartOptions = object;
/** Not used here. */
export type PartInput = object;

const NO_PARTS = 'this build of northroot examines no parts: it has no fast path';

/** @throws TypeError always: a part holds what the fast path found. */
export function examinePart(_source: LedgerSource, _options: object): AsyncGenerator<Uint8Array, void, void> {
  throw new TypeError(NO_PARTS);
}

/** @throws TypeError always: a part holds what the fast path found. */
export function openParts(_parts: readonly object[]): Promise<LedgerSource> {
  return Promise.reject(new TypeError(NO_PARTS));
}
