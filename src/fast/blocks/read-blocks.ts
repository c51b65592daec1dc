/**
 * The lines of a whole ledger in order, with what can be said of each by itself: examined block by block, in other threads where there
 * are some. What is said does not depend on how many there are, nor on where blocks end.
 */

import { countProcessors, nextTurn, startWorker, viewBytes } from '#platform';
import { allocateBytes } from '../../base/bytes/concat.js';
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

/** The lines of a block, one after the other: each is to be used up before the next is asked for. */
export interface KnownLines {
  /** Goes on to the next line; false where there is none. */
  next(): boolean;
  /** The line that was gone on to. */
  readonly line: KnownLine;
  /** The same as a line of facts; undefined where it takes no place, or nothing is known of it. */
  readonly fast: FastLine | undefined;
}

/** A line whose row, hash and verdicts are known, where it has them. */
export interface FastLine {
  readonly facts: BlockFacts;
  /** Those of the block. */
  readonly bytes: Uint8Array;
  readonly segment: Pick<Segment, 'file' | 'firstSeq'>;
  /** Its place among the lines of the block. */
  readonly index: number;
  /** In its file, from 1 on. */
  readonly number: number;
  /** Of its first byte in its file. */
  readonly offset: number;
  /** Without its `\n`. */
  readonly length: number;
}

/** How {@link readBlocks} reads. */
export interface ReadBlocksOptions {
  readonly backend: SignatureBackend;
  /** The keys that are known from the beginning. */
  readonly keys: readonly DeclaredKey[];
  /** How many threads examine; 1 is the caller's own. */
  readonly threads: number;
  /** So many bytes at the beginning were verified before: of their lines only the hashes are wanted. */
  readonly hashedBytes?: number | undefined;
  /** Where the source begins, where it is the rest of a ledger. */
  readonly from?: LedgerPlace | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when a chunk was read that ends no line, and so gives none. */
  readonly onPartOfLine?: (() => void) | undefined;
  /** So many bytes are worth other threads; default 8 MiB. */
  readonly worthwhileBytes?: number | undefined;
  /** For tests: bytes of a block; how a thread is started. */
  readonly blockBytes?: number | undefined;
  readonly start?: (() => WorkerThread | undefined) | undefined;
}

/** The most threads that are used unless more are asked for: one that orders what the others give has no more to do. */
const MAX_DEFAULT_THREADS = 16;
const BLOCK_BYTES = 512 * 1024;
/** The keys that the first lines declare are known to those who examine the others. */
const FIRST_BLOCK_BYTES = 64 * 1024;
/** A thread takes as long to start as a ledger of this size takes to be verified. */
const WORTHWHILE_BYTES = 8 * 1024 * 1024;
const HASH_BYTES = 32;

/** How many threads a verification uses unless it is told. */
export function defaultThreads(): number {
  return Math.min(countProcessors(), MAX_DEFAULT_THREADS);
}

/**
 * Reads and examines the lines of a ledger in order. The lines that it gives are to be used up before the next are asked for.
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
  try {
    // Free when the next lines are asked for: all blocks lie in it, one after the other.
    const room = allocateBytes(options.blockBytes ?? BLOCK_BYTES);
    const { worthwhileBytes = WORTHWHILE_BYTES, hashedBytes = 0, threads } = options;
    const examiner = makeExaminer(options.backend, options.keys, threads);
    const declared = [...options.keys];
    const before = from?.bytes ?? 0;
    const size = source.size === undefined ? undefined : source.size - before;
    const isLarge = (size ?? 0) >= worthwhileBytes;
    let block = await reader.read(room.subarray(0, Math.min(room.length, FIRST_BLOCK_BYTES)));
    while (block !== undefined) {
      const depth = reader.given <= hashedBytes ? 'hashes' : 'all';
      const facts = 'line' in block ? undefined : examineBlock(block.bytes, examiner, depth, block.verdicts);
      declared.push(...(facts?.declared ?? []));
      yield 'line' in block
        ? places.ofLongLine(block)
        : places.ofBlock(block.segment, block.bytes, facts as ExaminedBlock);
      if (threads > 1 && (isLarge || places.bytes - before >= worthwhileBytes)) {
        // No more than there are blocks for; one of them is this one.
        const blocks = Math.ceil((size ?? Infinity) / (options.blockBytes ?? BLOCK_BYTES));
        const members = await startThreads(Math.min(threads - 1, blocks), options.start ?? startWorker);
        if (members.length > 0) {
          yield* readInThreads(reader, places, new WorkerPool(members, declared), examiner, options);
          return;
        }
      }
      block = await reader.read(room);
    }
  } finally {
    await reader.close();
  }
}

/** Where one cannot be started, none is left behind. */
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

/** What was read: a block with what becomes of it, a line, or what reading has thrown. */
type Pending = BlockTask | { readonly long: LongLine } | { readonly failure: unknown };

/** Room for the facts of a block, behind it, in parts of its own size: enough where records have 800 bytes or more. */
const FACTS_SHARE = 11 / 16;
/**
 * So many blocks for each thread are on their way, so that none waits for the thread that orders them, and that one for none: while
 * others have a queue, it needs blocks of its own to examine.
 */
const ROOMS_PER_THREAD = 7;

/** Other threads examine, and this one too wherever it would wait for them. */
async function* readInThreads(
  reader: BlockInput,
  places: Places,
  pool: WorkerPool,
  examiner: Examiner,
  { blockBytes = BLOCK_BYTES, hashedBytes = 0, signal }: ReadBlocksOptions,
): AsyncGenerator<KnownLines, void, void> {
  // Each is free when the lines of its block were gone through, and the next are asked for: no thread writes to it any more by then.
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
  /** Reads as long as there is room; each call goes on where the last one stopped. */
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
    // What others have read and examined meanwhile is taken, and they are given more.
    await nextTurn();
  };
  try {
    for (;;) {
      // What is on its way takes seconds, and nobody wants it any more.
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

/** Where the next line stands: counted here, since nobody else sees every block in order. */
class Places {
  bytes = 0;
  /** Of the next line: its number and its first byte in its file, and how many lines took a place before it. */
  number = 1;
  offset = 0;
  ordinal = 0;
  #file: Segment | undefined;
  /** Where the first file is gone on with. */
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

/** The one line of which nothing is known. */
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

/** What is known of a line of a block. */
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
