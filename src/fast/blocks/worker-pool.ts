/** Threads that examine blocks: who gets which, what they are told of keys, and what happens when one dies or hangs. */

import { NorthrootError } from '../../base/error.js';
import type { WorkerThread } from '../../base/platform/platform.js';
import type { BlockFacts, Depth } from './examine-block.js';
import type { DeclaredKey } from './known-keys.js';
import { readFacts, type SharedFacts } from './shared-facts.js';

/** What a thread is asked. */
export interface BlockRequest {
  /** Its first `length` bytes are the block; nobody but the thread writes to it until the answer is there. */
  readonly room: SharedArrayBuffer;
  readonly length: number;
  readonly depth: Depth;
  /** See `examineBlock`. */
  readonly given: Uint8Array | undefined;
  /** Keys that the thread was not told of. */
  readonly declared: readonly DeclaredKey[];
  /** How many threads share the memory for tables, the caller's own among them. */
  readonly threads: number;
}

/**
 * What a thread answers: the facts, behind the block where there is room for them; what is wrong with what it was given; or what
 * surprised it.
 */
export type BlockAnswer =
  | { readonly shared: SharedFacts }
  | { readonly facts: BlockFacts }
  | {
      readonly refusal: {
        readonly code: string;
        readonly message: string;
        readonly hint: string | undefined;
      };
    }
  | { readonly error: string };

/** A thread that was silent for so many seconds, while it had work, hangs: the slowest block takes a few. */
const PATIENCE_S = 120;
/** So many blocks wait for a thread, with the one that it examines: it has some while this one is busy with its own. */
const QUEUED = 6;

interface Waiting {
  readonly room: SharedArrayBuffer;
  readonly length: number;
  readonly resolve: (facts: BlockFacts) => void;
  readonly reject: (error: Error) => void;
}

interface Member {
  readonly thread: WorkerThread;
  /** Answers come in the order of the requests. */
  readonly waiting: Waiting[];
  /** How many of the pool's keys it was told of. */
  told: number;
  /** Seconds since it was last heard of or was given work with nothing else to do. */
  silent: number;
}

/** Threads that examine blocks. */
export class WorkerPool {
  readonly #members: Member[];
  readonly #keys: DeclaredKey[];
  readonly #keyids: Set<string>;
  readonly #clock: ReturnType<typeof setInterval>;
  #failure: Error | undefined;

  /**
   * @param threads - At least one.
   * @param declared - The keys that are known from the beginning.
   * @param patience - See {@link PATIENCE_S}, for tests.
   */
  constructor(threads: readonly WorkerThread[], declared: readonly DeclaredKey[], patience = PATIENCE_S) {
    this.#keys = [...declared];
    this.#keyids = new Set(declared.map(({ keyid }) => keyid));
    this.#members = threads.map((thread) => ({ thread, waiting: [], told: 0, silent: 0 }));
    for (const member of this.#members) {
      member.thread.onMessage((message) => this.#take(member, message as BlockAnswer));
      member.thread.onEnd((cause) => this.#fail('a thread of the verifier ended', cause));
    }
    // Ticks and not the time of day: a process that was stopped for an hour has not waited.
    this.#clock = setInterval(() => {
      for (const member of this.#members) {
        if (member.waiting.length === 0) continue;
        member.silent += 1;
        if (member.silent > patience) this.#fail('a thread of the verifier does not answer', undefined);
      }
    }, 1_000);
  }

  get size(): number {
    return this.#members.length;
  }

  /** Whether there is a thread that has little to do. */
  get hasRoom(): boolean {
    return this.#members.some(({ waiting }) => waiting.length < QUEUED);
  }

  /** The keys that were declared. */
  get keys(): readonly DeclaredKey[] {
    return this.#keys;
  }

  /**
   * Has a block examined. What it gives means something as long as nothing else is written to `room`.
   *
   * @throws NorthrootError as `examineBlock`; Error when a thread dies, hangs or is surprised: an internal error, which says nothing of
   *   the ledger.
   */
  examine(room: SharedArrayBuffer, length: number, depth: Depth, given?: Uint8Array): Promise<BlockFacts> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure);
    const member = this.#members.reduce((least, each) =>
      each.waiting.length < least.waiting.length ? each : least,
    );
    if (member.waiting.length === 0) member.silent = 0;
    const request: BlockRequest = {
      room,
      length,
      depth,
      given,
      declared: this.#keys.slice(member.told),
      threads: this.size + 1,
    };
    member.told = this.#keys.length;
    return new Promise((resolve, reject) => {
      member.waiting.push({ room, length, resolve, reject });
      member.thread.post(request);
    });
  }

  /** Keys that the threads are told of with their next blocks. */
  declare(declared: readonly DeclaredKey[]): void {
    for (const key of declared) {
      if (this.#keyids.has(key.keyid)) continue;
      this.#keyids.add(key.keyid);
      this.#keys.push(key);
    }
  }

  /** Ends the threads, whatever they do. */
  async close(): Promise<void> {
    clearInterval(this.#clock);
    this.#failure ??= new Error('the threads of the verifier were ended');
    await Promise.all(this.#members.map(({ thread }) => thread.stop()));
  }

  #take(member: Member, answer: BlockAnswer): void {
    member.silent = 0;
    const waiting = member.waiting.shift();
    if ('error' in answer) {
      this.#fail(`a thread of the verifier failed: ${answer.error}`, undefined, waiting);
    } else if ('refusal' in answer) {
      const { code, message, hint } = answer.refusal;
      waiting?.reject(new NorthrootError(code, message, hint === undefined ? {} : { hint }));
    } else if (waiting !== undefined) {
      const { room, length } = waiting;
      const facts = 'shared' in answer ? readFacts(room, length, answer.shared) : answer.facts;
      this.declare(facts.declared);
      waiting.resolve(facts);
    }
  }

  #fail(message: string, cause: unknown, first?: Waiting): void {
    this.#failure ??= new Error(message, { cause });
    first?.reject(this.#failure);
    for (const { waiting } of this.#members) for (const each of waiting.splice(0)) each.reject(this.#failure);
  }
}
