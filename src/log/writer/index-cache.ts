/** Verification states in the ledger's index, shared between processes. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { VerifyState } from '../../rules/verify/state.js';
import type { IndexedState } from '../cache/indexed-state.js';
import { type IndexNotice, type IndexOptions, isIndexed, LedgerIndex } from '../cache/ledger-index.js';
import type { LedgerStore } from '../store/ledger-store.js';
import type { StateCache, StateView } from './state-cache.js';

/** With the write lock held, the longest wait for another process to close the index, in milliseconds. */
const MAX_WAIT_MS = 250;
/** After a failed wait, no further try for this long. */
const RETRY_MS = 10_000;
/** A continuous writer closes the index after this long, in milliseconds, though no reader has said that it waits. */
const MAX_OPEN_MS = 3_000;
/** How long it is then left to readers that have, in milliseconds. */
const LEFT_MS = 20;
/** A state in memory is kept if the index is further behind than this. */
const MAX_LAG_LINES = 5_000;

/** States over an index, open from `load` to `release`: opening costs more than writing a group's changes. */
export class IndexCache implements StateCache {
  readonly #path: string;
  readonly #options: IndexOptions;
  readonly #signal: AbortSignal | undefined;
  readonly #store: LedgerStore;
  readonly #onNotice: IndexOptions['onNotice'];
  #isSaid = false;
  #index: LedgerIndex | undefined;
  #isOpen = false;
  #openedAt = -Infinity;
  /** Until when it is left to readers. */
  #leftUntil = -Infinity;
  /** When another process was last found to use the index. */
  #busySince = -Infinity;
  readonly #views = new WeakMap<VerifyState, IndexedState>();

  constructor(path: string, store: LedgerStore, options: IndexOptions, signal?: AbortSignal) {
    this.#path = path;
    this.#store = store;
    this.#options = { ...options, onNotice: (notice) => this.#say(notice) };
    this.#signal = signal;
    this.#onNotice = options.onNotice;
  }

  /** Updates the index before taking the write lock. */
  async prepare({ trust }: StateView): Promise<boolean> {
    try {
      const index = await this.#opened();
      if (index === undefined) return false;
      const view = await index.view(this.#store, trust, this.#signal);
      await index.catchUp(view, this.#store, { signal: this.#signal });
      return true;
    } finally {
      // The index MUST NOT stay open while waiting for the lock.
      await this.release();
    }
  }

  async load({ trust }: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined> {
    const wasOpen = this.#isOpen;
    const mayDoWithout = current !== undefined && !this.#views.has(current);
    const index = await this.#opened(mayDoWithout ? MAX_WAIT_MS : undefined, current?.bytes);
    if (index === undefined) {
      // A state over the index needs it open.
      if (current !== undefined && this.#views.has(current)) throw new Error('the index cannot be opened');
      return undefined;
    }
    if (current === undefined) index.dropView(trust);
    else if (wasOpen && this.#views.has(current)) return undefined;
    const view = await index.view(this.#store, trust, this.#signal);
    // Other writers wait for the lock: a long catch-up is left to the next opening.
    if (mayDoWithout && current.lines - view.state.lines > MAX_LAG_LINES) return undefined;
    await index.catchUp(view, this.#store, { signal: this.#signal });
    this.#views.set(view.state, view);
    return view.state;
  }

  async discard(reason: string): Promise<void> {
    const index = await this.#opened();
    await index?.rebuild(reason);
  }

  async save(_view: StateView, state: VerifyState): Promise<void> {
    const view = this.#views.get(state);
    if (view === undefined || !this.#isOpen) return;
    try {
      await this.#index?.save(view, this.#store);
    } catch (error) {
      // Its unsaved changes are lost.
      this.#views.delete(state);
      throw error;
    }
  }

  async noteWritten(_view: StateView, state: VerifyState): Promise<void> {
    const view = this.#views.get(state);
    if (view === undefined || !this.#isOpen) return;
    // What is not noted costs a reading.
    await this.#index?.noteAppended(view, this.#store).catch(() => undefined);
  }

  pause(): boolean {
    return (
      this.#isOpen &&
      performance.now() - this.#openedAt < MAX_OPEN_MS &&
      this.#index !== undefined &&
      !this.#index.isWanted
    );
  }

  async release(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const isWanted = this.#index?.isWanted === true;
    await this.#index?.close();
    if (isWanted) this.#leftUntil = performance.now() + LEFT_MS;
  }

  /**
   * @param waitMs - How long to wait, if the ledger can be read instead
   * @param bytes - The ledger's size, if known
   */
  async #opened(waitMs?: number, bytes?: number): Promise<LedgerIndex | undefined> {
    if (this.#isOpen) return this.#index;
    const start = performance.now();
    if (waitMs !== undefined && start - this.#busySince < RETRY_MS) return undefined;
    if (this.#index === undefined) {
      // A growing ledger has none at first.
      const { folder, fileSystem } = this.#options;
      const isLarge =
        folder !== undefined || (await isIndexed(this.#path, fileSystem, bytes).catch(() => false));
      if (!isLarge) return undefined;
      this.#index = await LedgerIndex.open(this.#path, {
        ...this.#options,
        ...(waitMs === undefined ? {} : { waitMs }),
      });
      this.#isOpen = this.#index !== undefined;
    } else {
      const left = this.#leftUntil - performance.now();
      if (left > 0) await sleep(left);
      this.#isOpen = await this.#index.reopen(waitMs);
    }
    const isBusy = !this.#isOpen && waitMs !== undefined && performance.now() - start >= waitMs;
    if (isBusy) this.#busySince = performance.now();
    this.#openedAt = performance.now();
    return this.#isOpen ? this.#index : undefined;
  }

  /** It tries again at each turn, and says once that it cannot be used. */
  #say(notice: IndexNotice): void {
    const isUnusable = notice.code === 'INDEX_UNUSABLE';
    if (!isUnusable || !this.#isSaid) this.#onNotice?.(notice);
    this.#isSaid ||= isUnusable;
  }
}
