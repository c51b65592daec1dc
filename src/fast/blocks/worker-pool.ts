/** Distributes blocks and keys to threads, and detects a thread that dies or hangs. */

import { NorthrootError } from '../../base/error.js';
import type { WorkerThread } from '../../base/platform/platform.js';
import type { BlockFacts, Depth } from './examine-block.js';
import type { DeclaredKey } from './known-keys.js';
import { readFacts, type SharedFacts } from './shared-facts.js';

export interface BlockRequest {
  /** Its first `length` bytes are the block. Only the thread may write to it until it answers. */
  readonly room: SharedArrayBuffer;
  readonly length: number;
  readonly depth: Depth;
  /** See `examineBlock`. */
  readonly given: Uint8Array | undefined;
  /** Keys that are new to the thread. */
  readonly declared: readonly DeclaredKey[];
  /** How many threads share the memory for tables, the caller's included. */
  readonly threads: number;
}

/**
 * An answer: the facts, behind the block where there is room; a fault of the input; or an internal error.
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

/** A thread with work that is silent for so many seconds hangs: the slowest block takes a few. */
const PATIENCE_S = 120;
/** Blocks queued for a thread, the current one included: it has work while this thread is busy with its own. */
const QUEUED = 6;

interface Waiting {
  readonly room: SharedArrayBuffer;
  readonly length: number;
  readonly resolve: (facts: BlockFacts) => void;
  readonly reject: (error: Error) => void;
}

interface Member {
  readonly thread: WorkerThread;
  /** In the order of the requests, as answers come. */
  readonly waiting: Waiting[];
  /** How many of the pool's keys it has. */
  told: number;
  /** Seconds since its last answer, or since it got work while idle. */
  silent: number;
}

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
    // Ticks instead of the clock: a process that was suspended for an hour has not waited.
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

  get hasRoom(): boolean {
    return this.#members.some(({ waiting }) => waiting.length < QUEUED);
  }

  get keys(): readonly DeclaredKey[] {
    return this.#keys;
  }

  /**
   * Has a block examined. The facts are valid until `room` is overwritten.
   *
   * @throws NorthrootError as `examineBlock`; Error, an internal one, when a thread dies, hangs or fails.
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

  /** Keys to send with the next blocks. */
  declare(declared: readonly DeclaredKey[]): void {
    for (const key of declared) {
      if (this.#keyids.has(key.keyid)) continue;
      this.#keyids.add(key.keyid);
      this.#keys.push(key);
    }
  }

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
