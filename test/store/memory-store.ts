/** A ledger in memory, for tests of programs that keep ledgers: behaves like the file store, within one process. */

import { type Clock, sleep, systemClock } from '../../src/base/clock.js';
import { NorthrootError } from '../../src/base/error.js';
import { LineSplitter } from '../../src/format/record/line-splitter.js';
import type { LedgerSource } from '../../src/rules/source/ledger-source.js';
import { bytesSource } from '../bytes-source.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import {
  type AcquireOptions,
  conflict,
  type LedgerStore,
  type LinePlace,
  needsLock,
  type NextPlace,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from '../../src/log/store/ledger-store.js';

export interface MemoryStoreOptions {
  /** For messages. Default `memory`. */
  readonly name?: string;
  /** Whether writers lock. Without, they meet only in `appendIf`, as with a database. Default true. */
  readonly hasLocks?: boolean;
  readonly clock?: Clock;
}

interface Waiter {
  readonly grant: () => void;
}

const SILENT_MS = 1_000;
const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));

/** One ledger; each {@link MemoryStore.open} returns a store for one writer. */
export class MemoryStore {
  readonly name: string;
  readonly clock: Clock;
  readonly #hasLocks: boolean;
  /** Each with its `\n`. */
  readonly #lines: Buffer[] = [];
  readonly #offsets: number[] = [0];
  /** The sizes after each append. */
  #groups: number[] = [];
  readonly #waiters: Waiter[] = [];
  readonly #listeners = new Set<() => void>();
  #isTaken = false;

  constructor({ name = 'memory', hasLocks = true, clock = systemClock }: MemoryStoreOptions = {}) {
    this.name = name;
    this.clock = clock;
    this.#hasLocks = hasLocks;
  }

  /** The content of the equivalent file, for `verifyLedger`. */
  bytes(): Uint8Array {
    return Buffer.concat(this.#lines);
  }

  get size(): number {
    return this.#lines.length;
  }

  end(): StoredEnd {
    return { size: this.size, tip: this.#tip(this.size) };
  }

  /** Lines from one on, each with its `\n`; undefined if there are not as many. */
  linesFrom(size: number, count: number): readonly Uint8Array[] | undefined {
    const lines = this.#lines.slice(size, size + count);
    return lines.length === count ? lines : undefined;
  }

  /** The size after the last whole group of lines up to a size. */
  groupEndBefore(size: number): number {
    return this.#groups.findLast((end) => end <= size) ?? 0;
  }

  /** Forgets all lines but the first ones, as a standby that is promoted may have. */
  rollBack(size: number): void {
    this.#groups = this.#groups.filter((end) => end <= size);
    this.#lines.splice(size);
    this.#offsets.splice(size + 1);
    for (const listener of [...this.#listeners]) listener();
  }

  open(): LedgerStore {
    return new MemoryView(this, {
      read: (from) => this.#read(from),
      append: (expected, lines) => this.#append(expected, lines),
      acquire: (options) => this.#acquire(options),
      waitForMore: (from, signal) => this.#waitForMore(from, signal),
      line: ({ ordinal, byteOffset, byteLength }) => {
        const line = this.#lines[ordinal];
        const isThere = this.#offsets[ordinal] === byteOffset && line?.length === byteLength + 1;
        return isThere ? line.subarray(0, -1) : undefined;
      },
      bytes: () => this.bytes(),
      place: () => ({
        file: this.name,
        line: this.#lines.length + 1,
        byteOffset: this.#offsets[this.#lines.length] ?? 0,
      }),
    });
  }

  #tip(size: number): string {
    const last = this.#lines[size - 1];
    return last === undefined ? EMPTY_TIP : hashToBase64url(leafHash(last.subarray(0, -1)));
  }

  #read(from: StorePosition | undefined): Stored[] {
    const { size = 0, tip = EMPTY_TIP } = from ?? {};
    if (size > this.#lines.length || tip !== this.#tip(size)) throw conflict(this.name);
    const file = this.name;
    const splitter = new LineSplitter({ offset: this.#offsets[size] ?? 0, lines: size });
    const lines = splitter.push(Buffer.concat(this.#lines.slice(size)));
    const begin: Stored[] = size === 0 ? [{ kind: 'file', file, firstSeq: undefined }] : [];
    return [...begin, { kind: 'lines', file, firstSeq: undefined, lines }];
  }

  #append({ size, tip }: StoredEnd, lines: readonly Uint8Array[]): void {
    if (size !== this.#lines.length || tip !== this.#tip(size)) throw conflict(this.name);
    for (const line of lines) {
      this.#lines.push(Buffer.from(line));
      this.#offsets.push((this.#offsets.at(-1) ?? 0) + line.length);
    }
    this.#groups.push(this.#lines.length);
    for (const listener of [...this.#listeners]) listener();
  }

  async #acquire({ timeoutMs, signal, onWait }: AcquireOptions): Promise<WriteLock> {
    signal?.throwIfAborted();
    if (!this.#hasLocks) return { release: () => Promise.resolve() };
    if (this.#isTaken || this.#waiters.length > 0) await this.#queue(timeoutMs, signal, onWait);
    this.#isTaken = true;
    let isReleased = false;
    return {
      release: () => {
        if (!isReleased) {
          isReleased = true;
          this.#isTaken = false;
          this.#waiters.shift()?.grant();
        }
        return Promise.resolve();
      },
    };
  }

  #queue(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    onWait: (() => void) | undefined,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.clock.clear(timer);
        this.clock.clear(telling);
        signal?.removeEventListener('abort', abort);
        settle();
      };
      const waiter = {
        grant: () => {
          // Before any other writer can acquire it.
          this.#isTaken = true;
          end(resolve);
        },
      };
      const leave = (reason: Error): void => {
        const at = this.#waiters.indexOf(waiter);
        if (at !== -1) this.#waiters.splice(at, 1);
        end(() => reject(reason));
      };
      const abort = (): void => leave(signal?.reason as Error);
      const late = (): void =>
        leave(new NorthrootError('LEDGER_LOCKED', `another writer is appending to ${this.name}`));
      const timer = this.clock.setTimeout(late, Math.min(timeoutMs, 2 ** 31 - 1));
      const telling = onWait === undefined ? undefined : this.clock.setTimeout(onWait, SILENT_MS);
      signal?.addEventListener('abort', abort);
      this.#waiters.push(waiter);
    });
  }

  async #waitForMore(from: StorePosition, signal: AbortSignal): Promise<void> {
    while (this.#lines.length <= from.size) {
      signal.throwIfAborted();
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          this.#listeners.delete(wake);
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#listeners.add(wake);
        signal.addEventListener('abort', wake);
      });
    }
    signal.throwIfAborted();
  }
}

interface Access {
  read(from: StorePosition | undefined): Stored[];
  append(expected: StoredEnd, lines: readonly Uint8Array[]): void;
  acquire(options: AcquireOptions): Promise<WriteLock>;
  waitForMore(from: StorePosition, signal: AbortSignal): Promise<void>;
  place(): NextPlace;
  line(place: LinePlace): Uint8Array | undefined;
  bytes(): Uint8Array;
}

class MemoryView implements LedgerStore {
  readonly name: string;
  readonly durability = 'local';
  readonly #access: Access;
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #lock: WriteLock | undefined;

  constructor({ name, clock }: MemoryStore, access: Access) {
    this.name = name;
    this.#clock = clock;
    this.#access = access;
  }

  async *read(from?: StorePosition): AsyncGenerator<Stored, void, void> {
    // Asynchronous, like a disk.
    await sleep(this.#clock, 0);
    yield* this.#access.read(from);
  }

  readLine(place: LinePlace): Promise<Uint8Array | undefined> {
    return Promise.resolve(this.#access.line(place));
  }

  source(): Promise<LedgerSource> {
    return Promise.resolve(bytesSource(this.#access.bytes(), this.name));
  }

  async nextPlace(): Promise<NextPlace> {
    this.#assertLocked();
    return Promise.resolve(this.#access.place());
  }

  async appendIf(expected: StoredEnd, lines: readonly Uint8Array[]): Promise<void> {
    this.#assertLocked();
    await sleep(this.#clock, 0);
    this.#access.append(expected, lines);
  }

  async acquire(options: AcquireOptions): Promise<WriteLock> {
    if (this.#lock !== undefined) throw new TypeError('the store is acquired already');
    const lock = await this.#access.acquire(options);
    this.#lock = lock;
    return {
      release: async () => {
        if (this.#lock === lock) this.#lock = undefined;
        await lock.release();
      },
    };
  }

  confirm(): Promise<void> {
    return Promise.resolve();
  }

  settleTornTail(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  async waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void> {
    const closed = this.#closed.signal;
    const either = signal === undefined ? closed : AbortSignal.any([closed, signal]);
    await this.#access.waitForMore(from, either).catch((error: unknown) => {
      if (signal?.aborted === true || !closed.aborted) throw error;
    });
  }

  discard(): Promise<void> {
    return Promise.resolve();
  }

  async close(): Promise<void> {
    this.#closed.abort();
    await this.#lock?.release();
    this.#lock = undefined;
  }

  #assertLocked(): void {
    if (this.#lock === undefined) throw needsLock();
  }
}
