/** What others append to a ledger that is open, for whoever wants to know of it: kept for each watcher up to a bound. */

import type { LedgerStore, StorePosition } from '../store/ledger-store.js';
import type { OtherRecord } from './running-verification.js';

/** How {@link Ledger.watch} works. */
export interface WatchOptions {
  /** Aborting ends it, without an error. */
  readonly signal?: AbortSignal | undefined;
  /** How many records wait at most for who does not take them. Default 1,000. */
  readonly limit?: number | undefined;
}

/** So many records were left out, since they were not taken in time; `seq` is the first one's. They can be read from the ledger. */
export interface MissedRecords {
  readonly missed: number;
  readonly seq: number;
}

const DEFAULT_LIMIT = 1_000;

/** One who watches. */
class Watcher {
  readonly #limit: number;
  readonly #records: (OtherRecord | MissedRecords)[] = [];
  #gap: { missed: number; seq: number } | undefined;
  #wake: () => void = () => undefined;
  #failure: { readonly error: unknown } | undefined;
  isEnded = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  push(record: OtherRecord): void {
    if (this.#gap !== undefined) this.#gap.missed += 1;
    else if (this.#records.length < this.#limit) this.#records.push(record);
    else this.#gap = { missed: 1, seq: record.seq };
    this.#wake();
  }

  end(failure?: { readonly error: unknown }): void {
    this.isEnded = true;
    this.#failure ??= failure;
    this.#wake();
  }

  async *take(): AsyncGenerator<OtherRecord | MissedRecords, void, void> {
    for (;;) {
      const next = this.#records.shift() ?? this.#gap;
      if (next !== undefined) {
        if (next === this.#gap) this.#gap = undefined;
        yield next;
        continue;
      }
      if (this.#failure !== undefined) throw this.#failure.error;
      if (this.isEnded) return;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Those who watch one ledger. */
export class Watchers {
  readonly #store: LedgerStore;
  readonly #position: () => StorePosition;
  readonly #look: () => Promise<void>;
  readonly #watchers = new Set<Watcher>();
  #ending = new AbortController();
  #loop: Promise<void> | undefined;

  /** @param look - Catches up on what others wrote, which tells of it. */
  constructor(store: LedgerStore, position: () => StorePosition, look: () => Promise<void>) {
    this.#store = store;
    this.#position = position;
    this.#look = look;
  }

  tell(record: OtherRecord): void {
    for (const watcher of this.#watchers) watcher.push(record);
  }

  async *watch({
    signal,
    limit = DEFAULT_LIMIT,
  }: WatchOptions): AsyncGenerator<OtherRecord | MissedRecords, void, void> {
    const watcher = new Watcher(limit);
    const end = (): void => watcher.end();
    if (signal?.aborted === true || this.#ending.signal.aborted) return;
    signal?.addEventListener('abort', end);
    this.#watchers.add(watcher);
    this.#loop ??= this.#follow();
    try {
      yield* watcher.take();
    } finally {
      signal?.removeEventListener('abort', end);
      this.#watchers.delete(watcher);
      if (this.#watchers.size === 0) this.#pause();
    }
  }

  /** Ends every watch. */
  async close(): Promise<void> {
    this.#ending.abort();
    for (const watcher of this.#watchers) watcher.end();
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
      if (!signal.aborted) for (const watcher of this.#watchers) watcher.end({ error });
    } finally {
      this.#loop = undefined;
      // Somebody may have come while the last one left.
      if (signal.aborted && !this.#ending.signal.aborted && this.#watchers.size > 0)
        this.#loop = this.#follow();
    }
  }
}
