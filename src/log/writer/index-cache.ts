/** The states of a ledger's verification in its index: what one process has verified, another goes on from. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { IndexedState } from '../cache/indexed-state.js';
import { type IndexOptions, isIndexed, LedgerIndex } from '../cache/ledger-index.js';
import type { LedgerStore } from '../store/ledger-store.js';
import type { StateCache, StateView } from './state-cache.js';

/** With the turn held nobody waits for longer than this for a process that has the index open: there is the ledger. In milliseconds. */
const MAX_WAIT_MS = 250;
/** Nor is it asked again so soon. */
const RETRY_MS = 10_000;
/** Whoever looks at the index while somebody writes all the time is let in after so long. In milliseconds. */
const MAX_OPEN_MS = 600;
/** A state in memory that is further along than the index by more lines than this is gone on with. */
const MAX_LAG_LINES = 5_000;

/** See the head of this file. The index is open from `load` to `release`: to open it costs more than to write what a turn has added. */
export class IndexCache implements StateCache {
  readonly #path: string;
  readonly #options: IndexOptions;
  readonly #signal: AbortSignal | undefined;
  /** Whose the index's lines come from. */
  readonly #store: LedgerStore;
  #index: LedgerIndex | undefined;
  #isOpen = false;
  #openedAt = -Infinity;
  /** When the index was last found in use by another process. */
  #busySince = -Infinity;
  readonly #views = new WeakMap<VerifyState, IndexedState>();

  constructor(path: string, store: LedgerStore, options: IndexOptions, signal?: AbortSignal) {
    this.#path = path;
    this.#store = store;
    this.#options = options;
    this.#signal = signal;
  }

  /** Brings the index up to date before anybody is kept waiting. */
  async prepare({ trust }: StateView): Promise<boolean> {
    try {
      const index = await this.#opened();
      if (index === undefined) return false;
      const view = await index.view(this.#store, trust, this.#signal);
      await index.catchUp(view, this.#store, { signal: this.#signal });
      return true;
    } finally {
      // However it ended: nobody waits for the turn with the index open.
      await this.release();
    }
  }

  async load({ trust }: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined> {
    const wasOpen = this.#isOpen;
    const mayDoWithout = current !== undefined && !this.#views.has(current);
    const index = await this.#opened(mayDoWithout ? MAX_WAIT_MS : undefined, current?.bytes);
    if (index === undefined) {
      // A state of the index cannot be asked without it: another process has it open for too long.
      if (current !== undefined && this.#views.has(current)) throw new Error('the index cannot be opened');
      return undefined;
    }
    if (current === undefined) index.dropView(trust);
    else if (wasOpen && this.#views.has(current)) return undefined;
    const view = await index.view(this.#store, trust, this.#signal);
    // Everybody waits for the turn meanwhile: what takes long is left to who opens the ledger next.
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
      // What it has learnt since is neither kept nor known to be missing.
      this.#views.delete(state);
      throw error;
    }
  }

  pause(): boolean {
    return this.#isOpen && performance.now() - this.#openedAt < MAX_OPEN_MS;
  }

  async release(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#index?.close();
  }

  /**
   * @param waitMs - How long to wait where the ledger will do; else as long as an index is waited for.
   * @param bytes - The size of the ledger, where it is known.
   */
  async #opened(waitMs?: number, bytes?: number): Promise<LedgerIndex | undefined> {
    if (this.#isOpen) return this.#index;
    const start = performance.now();
    if (waitMs !== undefined && start - this.#busySince < RETRY_MS) return undefined;
    if (this.#index === undefined) {
      // A ledger that grows has none at first.
      const isLarge = isIndexed(this.#path, this.#options.fileSystem, bytes);
      if (!(await isLarge.catch(() => false))) return undefined;
      this.#index = await LedgerIndex.open(this.#path, {
        ...this.#options,
        ...(waitMs === undefined ? {} : { waitMs }),
      });
      this.#isOpen = this.#index !== undefined;
    } else {
      this.#isOpen = await this.#index.reopen(waitMs);
    }
    const isBusy = !this.#isOpen && waitMs !== undefined && performance.now() - start >= waitMs;
    if (isBusy) this.#busySince = performance.now();
    this.#openedAt = performance.now();
    return this.#isOpen ? this.#index : undefined;
  }
}
