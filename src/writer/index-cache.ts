/** The states of a ledger's verification in its index: what one process has verified, another goes on from. */

import { LedgerIndex, type IndexOptions } from '../cache/ledger-index.js';
import type { IndexedState } from '../cache/indexed-state.js';
import type { LedgerStore } from '../store/ledger-store.js';
import type { VerifyState } from '../verify/state.js';
import type { StateCache, StateView } from './state-cache.js';

/** See the head of this file. The index is open from `load` to `release`. */
export class IndexCache implements StateCache {
  readonly #path: string;
  readonly #options: IndexOptions;
  readonly #signal: AbortSignal | undefined;
  /** Whose the index's lines come from. */
  readonly #store: LedgerStore;
  #index: LedgerIndex | undefined;
  #isOpen = false;
  readonly #views = new WeakMap<VerifyState, IndexedState>();

  constructor(path: string, store: LedgerStore, options: IndexOptions, signal?: AbortSignal) {
    this.#path = path;
    this.#store = store;
    this.#options = options;
    this.#signal = signal;
  }

  /** Brings the index up to date before anybody is kept waiting. */
  async prepare({ trust }: StateView): Promise<void> {
    try {
      const index = await this.#opened();
      if (index !== undefined)
        await index.catchUp(await index.view(this.#store, trust), this.#store, this.#signal);
    } finally {
      // However it ended: nobody waits for the turn with the index open.
      await this.release();
    }
  }

  async load({ trust }: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined> {
    const wasOpen = this.#isOpen;
    const index = await this.#opened();
    if (index === undefined) {
      // A state of the index cannot be asked without it: another process has it open for too long.
      if (current !== undefined && this.#views.has(current)) throw new Error('the index cannot be opened');
      return undefined;
    }
    if (current === undefined) index.dropView(trust);
    else if (wasOpen && this.#views.has(current)) return undefined;
    const view = await index.view(this.#store, trust);
    await index.catchUp(view, this.#store, this.#signal);
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
      await this.#index?.save(view);
    } catch (error) {
      // What it has learnt since is neither kept nor known to be missing.
      this.#views.delete(state);
      throw error;
    }
  }

  async release(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    await this.#index?.close();
  }

  async #opened(): Promise<LedgerIndex | undefined> {
    if (this.#isOpen) return this.#index;
    if (this.#index === undefined) {
      this.#index = await LedgerIndex.open(this.#path, this.#options);
      this.#isOpen = this.#index !== undefined;
    } else {
      this.#isOpen = await this.#index.reopen();
    }
    return this.#isOpen ? this.#index : undefined;
  }
}
