/** Delivers other writers' records to watchers, each with a bounded queue. */

import type { LedgerStore, StorePosition } from '../store/ledger-store.js';
import type { OtherRecord } from './running-verification.js';

export interface WatchOptions {
  /** Aborting ends the iteration without an error. */
  readonly signal?: AbortSignal | undefined;
  /** The longest queue. Default 1,000. */
  readonly limit?: number | undefined;
}

/** Records dropped from a full queue, from `seq` on; they can be read from the ledger. */
export interface MissedRecords {
  readonly missed: number;
  readonly seq: number;
}

const DEFAULT_LIMIT = 1_000;

export type WatchedRecords = AsyncIterableIterator<OtherRecord | MissedRecords>;

class Watcher implements WatchedRecords {
  readonly #limit: number;
  readonly #onEnd: (watcher: Watcher) => void;
  readonly #records: OtherRecord[] = [];
  #gap: { missed: number; seq: number } | undefined;
  #wake: () => void = () => undefined;
  #failure: { readonly error: unknown } | undefined;
  #isEnded = false;

  constructor(limit: number, onEnd: (watcher: Watcher) => void) {
    this.#limit = limit;
    this.#onEnd = onEnd;
  }

  push(record: OtherRecord): void {
    if (this.#gap !== undefined) this.#gap.missed += 1;
    else if (this.#records.length < this.#limit) this.#records.push(record);
    else this.#gap = { missed: 1, seq: record.seq };
    this.#wake();
  }

  end(failure?: { readonly error: unknown }): void {
    this.#failure ??= failure;
    this.#isEnded = true;
    this.#onEnd(this);
    this.#wake();
  }

  async next(): Promise<IteratorResult<OtherRecord | MissedRecords, undefined>> {
    for (;;) {
      const record = this.#records.shift() ?? this.#gap;
      if (record !== undefined) {
        if (record === this.#gap) this.#gap = undefined;
        return { done: false, value: record };
      }
      const failure = this.#failure;
      this.#failure = undefined;
      if (failure !== undefined) throw failure.error;
      if (this.#isEnded) return { done: true, value: undefined };
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  return(): Promise<IteratorResult<OtherRecord | MissedRecords, undefined>> {
    this.#records.length = 0;
    this.#gap = undefined;
    this.end();
    return Promise.resolve({ done: true, value: undefined });
  }

  [Symbol.asyncIterator](): this {
    return this;
  }
}

export class Watchers {
  readonly #store: LedgerStore;
  readonly #position: () => StorePosition;
  readonly #look: () => Promise<void>;
  readonly #watchers = new Set<Watcher>();
  readonly #listeners = new Set<(record: OtherRecord) => void>();
  #ending = new AbortController();
  #loop: Promise<void> | undefined;

  /** @param look - Catches up with other writers, which calls `tell` */
  constructor(store: LedgerStore, position: () => StorePosition, look: () => Promise<void>) {
    this.#store = store;
    this.#position = position;
    this.#look = look;
  }

  tell(record: OtherRecord): void {
    for (const watcher of this.#watchers) watcher.push(record);
    for (const listener of this.#listeners) listener(record);
  }

  /** @returns An unsubscribe function */
  listen(listener: (record: OtherRecord) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** @throws RangeError for an invalid limit */
  watch({ signal, limit = DEFAULT_LIMIT }: WatchOptions): WatchedRecords {
    if (!(Number.isSafeInteger(limit) && limit > 0)) throw new RangeError('limit must be an integer above 0');
    const abort = (): void => watcher.end();
    const watcher = new Watcher(limit, (ended) => {
      signal?.removeEventListener('abort', abort);
      this.#watchers.delete(ended);
      if (this.#watchers.size === 0) this.#pause();
    });
    this.#watchers.add(watcher);
    if (signal?.aborted === true) watcher.end();
    else {
      signal?.addEventListener('abort', abort);
      this.#loop ??= this.#follow();
    }
    return watcher;
  }

  async close(): Promise<void> {
    for (const watcher of [...this.#watchers]) watcher.end();
    this.#ending.abort();
    await this.#loop;
  }

  #pause(): void {
    if (this.#loop === undefined) return;
    this.#ending.abort();
    this.#ending = new AbortController();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#ending;
    try {
      while (!signal.aborted) {
        await this.#store.waitForMore(this.#position(), signal);
        if (!signal.aborted) await this.#look();
      }
    } catch (error) {
      if (!signal.aborted) for (const watcher of [...this.#watchers]) watcher.end({ error });
    } finally {
      this.#loop = undefined;
      // A watcher may have come while the last one left.
      if (signal.aborted && !this.#ending.signal.aborted && this.#watchers.size > 0)
        this.#loop = this.#follow();
    }
  }
}
