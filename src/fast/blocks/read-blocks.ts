/**
 * Reads the lines of a ledger in order with the facts of each, examined block by block, in several threads where available. The facts do
 * not depend on the number of threads, nor on where blocks end.
 */

import { countProcessors, nextTurn, startWorker, viewBytes } from '#platform';
import { borrowScratch, giveBackScratch, LentNumbers } from '../../base/bytes/lent-scratch.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import type { WorkerThread } from '../../base/platform/platform.js';
import type { ExaminedLine, Layout } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import type { LedgerPlace, LedgerSource, Segment } from '../../rules/source/ledger-source.js';
import type { KnownLine, LineKnowledge } from '../../rules/verify/line-knowledge.js';
import { scannedLineOf } from '../scan/scanned-line.js';
import { type BlockInput, type LongLine, openBlocks } from './block-reader.js';
import { BlockTask } from './block-task.js';
import {
  type BlockFacts,
  examineBlock,
  type ExaminedBlock,
  type Examiner,
  makeExaminer,
} from './examine-block.js';
import type { DeclaredKey } from './known-keys.js';
import { NOT_COMPUTED, VALID } from './verdicts.js';
import { WorkerPool } from './worker-pool.js';

/** The lines of a block in order. Each MUST be processed before the next is requested. */
export interface KnownLines {
  /** Moves to the next line; false where there is none. */
  next(): boolean;
  readonly line: KnownLine;
  /** The current line for the fast path; undefined where it is no leaf, or has no facts. */
  readonly fast: FastLine | undefined;
}

/** A line of a block, with the block's facts. */
export interface FastLine {
  readonly facts: BlockFacts;
  readonly bytes: Uint8Array;
  readonly segment: Pick<Segment, 'file' | 'firstSeq'>;
  /** Counted in the block, from 0. */
  readonly index: number;
  /** Counted in its file, from 1. */
  readonly number: number;
  /** In bytes, in its file. */
  readonly offset: number;
  /** Without its `\n`. */
  readonly length: number;
}

export interface ReadBlocksOptions {
  readonly backend: SignatureBackend;
  readonly keys: readonly DeclaredKey[];
  /** How many threads examine, the caller's included. */
  readonly threads: number;
  /** How many bytes at the beginning were verified before: their lines are only hashed. */
  readonly hashedBytes?: number | undefined;
  /** Where the source begins in the ledger, if it is the rest of one. */
  readonly from?: LedgerPlace | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when no line ends in a chunk. */
  readonly onPartOfLine?: (() => void) | undefined;
  /** The smallest ledger to start threads for, in bytes; default 8 MiB. */
  readonly worthwhileBytes?: number | undefined;
  /** For tests: the size of a block in bytes; how a thread is started. */
  readonly blockBytes?: number | undefined;
  readonly start?: (() => WorkerThread | undefined) | undefined;
}

/** The maximum of the default: one thread that orders the lines cannot serve more. */
const MAX_DEFAULT_THREADS = 16;
const BLOCK_BYTES = 512 * 1024;
/** Before threads start, a small first block: the keys that it declares are then known to all of them. */
const FIRST_BLOCK_BYTES = 64 * 1024;
/** Starting a thread takes as long as verifying a ledger of this size. */
const WORTHWHILE_BYTES = 8 * 1024 * 1024;
const HASH_BYTES = 32;

/** The default number of threads. */
export function defaultThreads(): number {
  return Math.min(countProcessors(), MAX_DEFAULT_THREADS);
}

/**
 * Reads and examines the lines of a ledger in order. The lines of a block MUST be processed before the next block is requested.
 *
 * @throws NorthrootError when the source cannot be read; the signal's reason when that aborts; Error, an internal one, when a thread
 *   dies, hangs or fails.
 */
export async function* readBlocks(
  source: LedgerSource,
  options: ReadBlocksOptions,
): AsyncGenerator<KnownLines, void, void> {
  const reader = openBlocks(source, options.signal, options.onPartOfLine);
  const { from } = options;
  const places = new Places(from);
  const rows = new LentNumbers();
  try {
    const { worthwhileBytes = WORTHWHILE_BYTES, hashedBytes = 0, threads } = options;
    const before = from?.bytes ?? 0;
    const size = source.size === undefined ? undefined : source.size - before;
    // Used again for each block.
    const room = borrowScratch(options.blockBytes ?? Math.min(BLOCK_BYTES, size ?? BLOCK_BYTES));
    const blockRoom = room.subarray(0, options.blockBytes);
    const examiner = makeExaminer(options.backend, options.keys, threads, (size ?? 0) - hashedBytes);
    const declared = [...options.keys];
    const isLarge = (size ?? 0) >= worthwhileBytes;
    const mayStart = threads > 1 && (isLarge || size === undefined);
    let block = await reader.read(mayStart ? blockRoom.subarray(0, FIRST_BLOCK_BYTES) : blockRoom);
    while (block !== undefined) {
      const depth = reader.given <= hashedBytes ? 'hashes' : 'all';
      const facts =
        'line' in block ? undefined : examineBlock(block.bytes, { ...examiner, rows }, depth, block.verdicts);
      declared.push(...(facts?.declared ?? []));
      yield 'line' in block
        ? places.ofLongLine(block)
        : places.ofBlock(block.segment, block.bytes, facts as ExaminedBlock);
      if (threads > 1 && (isLarge || places.bytes - before >= worthwhileBytes)) {
        // At most one for each block, this one included.
        const blocks = Math.ceil((size ?? Infinity) / (options.blockBytes ?? BLOCK_BYTES));
        const members = await startThreads(Math.min(threads - 1, blocks), options.start ?? startWorker);
        if (members.length > 0) {
          yield* readInThreads(reader, places, new WorkerPool(members, declared), examiner, options);
          return;
        }
      }
      block = await reader.read(blockRoom);
    }
    // Not where reading ended early: what was read may still be looked at.
    giveBackScratch(room);
    rows.giveBack();
  } finally {
    await reader.close();
  }
}

/** Starts threads, all or none. */
async function startThreads(
  count: number,
  start: () => WorkerThread | undefined,
): Promise<readonly WorkerThread[]> {
  const started: WorkerThread[] = [];
  try {
    for (let left = count; left > 0; left -= 1) {
      const thread = start();
      if (thread !== undefined) started.push(thread);
    }
  } catch (error) {
    await Promise.all(started.map((thread) => thread.stop()));
    throw error;
  }
  return started;
}

/** What was read: a block to examine, a long line, or an error. */
type Pending = BlockTask | { readonly long: LongLine } | { readonly failure: unknown };

/** Room for the facts behind a block, as a share of its size: enough for records of 800 bytes or more. */
const FACTS_SHARE = 11 / 16;
/**
 * Blocks in flight for each thread: enough that no thread waits for the one that orders the lines, and that this one has blocks of its
 * own to examine while the others' queues are full.
 */
const ROOMS_PER_THREAD = 7;

/** Examines in other threads, and in this one whenever it would wait for them. */
async function* readInThreads(
  reader: BlockInput,
  places: Places,
  pool: WorkerPool,
  examiner: Examiner,
  { blockBytes = BLOCK_BYTES, hashedBytes = 0, signal }: ReadBlocksOptions,
): AsyncGenerator<KnownLines, void, void> {
  // Each is used again once the lines of its block were processed: no thread writes to it by then.
  const rooms = Array.from(
    { length: (pool.size + 1) * ROOMS_PER_THREAD },
    () => new SharedArrayBuffer(blockBytes + Math.ceil(blockBytes * FACTS_SHARE)),
  );
  const pending: Pending[] = [];
  let wake: () => void = () => undefined;
  let isEnd = false;
  let isReading = false;
  const nextTask = (): BlockTask | undefined =>
    pending.find((each): each is BlockTask => each instanceof BlockTask && !each.isTaken);
  const giveOut = (): void => {
    for (let task = nextTask(); task !== undefined && pool.hasRoom; task = nextTask())
      void task.giveTo(pool).then(giveOut);
  };
  /** Reads while there is room. */
  const readAhead = async (): Promise<void> => {
    if (isReading || isEnd) return;
    isReading = true;
    try {
      for (let room = rooms.pop(); room !== undefined; room = isEnd ? undefined : rooms.pop()) {
        const block = await reader.read(viewBytes(room, 0, blockBytes));
        if (block === undefined) {
          isEnd = true;
        } else if ('line' in block) {
          pending.push({ long: block });
          rooms.push(room);
        } else {
          const depth = reader.given <= hashedBytes ? 'hashes' : 'all';
          if (block.bytes.buffer !== room) throw new RangeError('the block is larger than its room');
          pending.push(new BlockTask(block, room, depth));
          giveOut();
        }
        wake();
      }
    } catch (failure) {
      isEnd = true;
      pending.push({ failure });
    } finally {
      isReading = false;
      wake();
    }
  };
  let keys = 0;
  const examineHere = async (task: BlockTask): Promise<void> => {
    examiner.keys.add(pool.keys.slice(keys));
    keys = pool.keys.length;
    pool.declare(task.examine(examiner));
    // Receives answers, and sends further blocks.
    await nextTurn();
  };
  try {
    for (;;) {
      // Blocks in flight can take seconds.
      signal?.throwIfAborted();
      void readAhead();
      const next = pending[0];
      if (next === undefined) {
        if (isEnd && !isReading) return;
        await new Promise<void>((resolve) => (wake = resolve));
        continue;
      }
      if (!(next instanceof BlockTask)) {
        pending.shift();
        if ('failure' in next) throw next.failure;
        yield places.ofLongLine(next.long);
        continue;
      }
      if (!next.isDone) {
        const task = nextTask();
        if (task === undefined) await next.wait();
        else await examineHere(task);
        continue;
      }
      pending.shift();
      yield places.ofBlock(next.block.segment, next.block.bytes, next.facts());
      rooms.push(next.room);
    }
  } finally {
    await pool.close();
  }
}

class Places {
  bytes = 0;
  /** The next line's number and offset in its file, and the number of leaves before it. */
  number = 1;
  offset = 0;
  ordinal = 0;
  #file: Segment | undefined;
  /** Where the first file is resumed. */
  #from: LedgerPlace | undefined;

  constructor(from?: LedgerPlace) {
    this.#from = from;
    this.bytes = from?.bytes ?? 0;
    this.ordinal = from?.ordinal ?? 0;
  }

  ofLongLine({ segment, line }: LongLine): KnownLines {
    this.#enter(segment);
    return new LongLines(this, segment, line);
  }

  ofBlock(segment: Segment, bytes: Uint8Array, facts: BlockFacts | ExaminedBlock): KnownLines {
    this.#enter(segment);
    return new BlockLines(this, segment, bytes, facts);
  }

  pass(length: number, terminated: boolean): void {
    this.number += 1;
    this.offset += length + 1;
    this.bytes += length + (terminated ? 1 : 0);
    if (length > 0 && terminated) this.ordinal += 1;
  }

  #enter(segment: Segment): void {
    if (this.#file === segment) return;
    this.#file = segment;
    this.number = this.#from?.line ?? 1;
    this.offset = this.#from?.offset ?? 0;
    this.#from = undefined;
  }
}

/** A line that is too long to be examined. */
class LongLines implements KnownLines {
  readonly line: KnownLine;
  readonly fast = undefined;
  readonly #places: Places;
  #isPassed = false;

  constructor(places: Places, segment: Segment, line: LongLine['line']) {
    const { offset, number, ordinal } = places;
    this.#places = places;
    this.line = {
      line: { ...line, offset, number },
      segment,
      ordinal,
      takesPlace: line.terminated,
      known: undefined,
    };
  }

  next(): boolean {
    if (this.#isPassed) return false;
    this.#isPassed = true;
    this.#places.pass(this.line.line.length, this.line.line.terminated);
    return true;
  }
}

class BlockLines implements KnownLines, FastLine {
  readonly facts: BlockFacts | ExaminedBlock;
  readonly bytes: Uint8Array;
  readonly segment: Segment;
  index = -1;
  number = 0;
  offset = 0;
  length = 0;
  readonly #places: Places;
  #ordinal = 0;
  #start = 0;
  #end = -1;

  constructor(places: Places, segment: Segment, bytes: Uint8Array, facts: BlockFacts | ExaminedBlock) {
    this.#places = places;
    this.segment = segment;
    this.bytes = bytes;
    this.facts = facts;
  }

  next(): boolean {
    this.index += 1;
    if (this.index >= this.facts.lines) return false;
    const places = this.#places;
    this.#start = this.#end + 1;
    this.#end = this.facts.ends[this.index] as number;
    this.length = this.#end - this.#start;
    this.number = places.number;
    this.offset = places.offset;
    this.#ordinal = places.ordinal;
    places.pass(this.length, this.#isTerminated);
    return true;
  }

  get fast(): FastLine | undefined {
    return this.#isTerminated ? this : undefined;
  }

  get line(): KnownLine {
    const { length, offset, number, bytes, segment, facts, index } = this;
    const terminated = this.#isTerminated;
    const known = new BlockKnowledge(facts, bytes, index);
    const line: RawLine = {
      bytes: bytes.subarray(this.#start, this.#start + Math.min(length, MAX_LINE_BYTES)),
      length,
      offset,
      number,
      terminated,
      longLeafHash: length > MAX_LINE_BYTES ? known.leaf : undefined,
    };
    return { line, segment, ordinal: this.#ordinal, takesPlace: length > 0 && terminated, known };
  }

  get #isTerminated(): boolean {
    return this.#end < this.bytes.length;
  }
}

export class BlockKnowledge implements LineKnowledge {
  readonly leaf: string;
  readonly #facts: BlockFacts | ExaminedBlock;
  readonly #bytes: Uint8Array;
  readonly #index: number;

  constructor(facts: BlockFacts | ExaminedBlock, bytes: Uint8Array, index: number) {
    this.#facts = facts;
    this.#bytes = bytes;
    this.#index = index;
    this.leaf = decodeLatin1(facts.leaves, index * HASH_BYTES, (index + 1) * HASH_BYTES);
  }

  examine(layout: Layout | undefined, isBrief: boolean): ExaminedLine | undefined {
    const facts = this.#facts;
    const row = facts.rowAt[this.#index] as number;
    if (row !== -1)
      return layout === 'bare' ? undefined : scannedLineOf(this.#bytes, facts.rows, row, isBrief);
    const full = 'examined' in facts ? facts.examined.get(this.#index) : undefined;
    return layout === undefined || full?.layout === layout ? full : undefined;
  }

  isValid(index: number): boolean | undefined {
    const { verdicts, verdictsAt } = this.#facts;
    const first = verdictsAt[this.#index] as number;
    const isThere = first + index < (verdictsAt[this.#index + 1] as number);
    const verdict = isThere ? verdicts[first + index] : NOT_COMPUTED;
    return verdict === NOT_COMPUTED ? undefined : verdict === VALID;
  }
}
