/**
 * When the store's turn is taken and when it is given back. It is taken for a group and given back after it. Appends that follow each
 * other closely share a turn as long as nobody else writes: taking it costs more than a small group. Where somebody does, groups are
 * kept small too, since everybody else has to verify what is in them before the own group can be written.
 */

import type { LedgerStore, Turn } from '../store/ledger-store.js';
import type { StateCache } from './state-cache.js';

/** How a {@link TurnKeeper} takes turns. */
export interface TurnOptions {
  readonly timeoutMs: number;
  readonly lingerMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onWait: () => void;
  readonly cache: Pick<StateCache, 'pause' | 'release'>;
}

/** A turn is given back after so long even where more waits to be written: whoever asks for it need not wait for longer. */
const MAX_HOLD_MS = 500;
/** Where the turn came only after so long, others had it. */
const LONG_WAIT_MS = 100;
/** So long after the last sign of others they may come again. */
const BUSY_MS = 1_000;
/** For so long a group is made where others wait. */
const SHORT_GROUP_MS = 10;
/** Who is given the turn instead waits for no longer for what the cache keeps to itself. */
const MAX_PAUSE_MS = 50;

/** See the head of this file. */
export class TurnKeeper {
  readonly #store: LedgerStore;
  readonly #options: TurnOptions;
  #turn: Turn | undefined;
  #takenAt = 0;
  #busyUntil = 0;
  #endedAt = -Infinity;
  #isClose = false;
  #timer: NodeJS.Timeout | undefined;
  /** Runs while the cache pauses. */
  #pause: NodeJS.Timeout | undefined;
  #releasing: Promise<void> = Promise.resolve();

  constructor(store: LedgerStore, options: TurnOptions) {
    this.#store = store;
    this.#options = options;
  }

  /** Something was asked for: whether it follows the last group closely. */
  noteRequest(): void {
    this.#isClose = performance.now() - this.#endedAt <= this.#options.lingerMs;
  }

  /** Has the turn. @throws as `LedgerStore.acquire` */
  async take(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#releasing;
    if (this.#turn !== undefined) return;
    const { timeoutMs, signal, onWait } = this.#options;
    const start = performance.now();
    // What was begun before somebody gave up, and what he gives back then, is still to be written.
    const waiting = signal?.aborted === true ? undefined : signal;
    try {
      this.#turn = await this.#store.acquire({ timeoutMs, signal: waiting, onWait });
    } catch (error) {
      await this.giveBack();
      throw error;
    }
    this.#takenAt = performance.now();
    clearTimeout(this.#pause);
    this.#pause = undefined;
    // The pause may just have ended.
    await this.#releasing;
    if (this.#takenAt - start > LONG_WAIT_MS) this.noteOthers();
  }

  /** Somebody else writes too. */
  noteOthers(): void {
    this.#busyUntil = performance.now() + BUSY_MS;
  }

  /** For how long a group may be made, in milliseconds. */
  get groupMs(): number {
    return this.#isBusy ? SHORT_GROUP_MS : MAX_HOLD_MS;
  }

  /** A group is on disk: gives the turn back, unless the next one may share it. */
  async endGroup(hasMore: boolean): Promise<void> {
    const now = performance.now();
    this.#endedAt = now;
    const { lingerMs } = this.#options;
    const mayKeep = !this.#isBusy && lingerMs > 0 && now - this.#takenAt < MAX_HOLD_MS;
    if (!mayKeep || !(hasMore || this.#isClose)) return this.giveBack(hasMore && !this.#isBusy);
    if (hasMore) return;
    const left = Math.min(lingerMs, MAX_HOLD_MS - (now - this.#takenAt));
    this.#timer = setTimeout(() => void this.giveBack(), left);
  }

  /** Gives the turn back now. @param isAgain - Whether it is asked for again at once. */
  giveBack(isAgain = false): Promise<void> {
    clearTimeout(this.#timer);
    const turn = this.#turn;
    this.#turn = undefined;
    if (turn !== undefined) this.#releasing = this.#release(turn, isAgain);
    else if (this.#pause !== undefined) this.#endPause();
    return this.#releasing;
  }

  get #isBusy(): boolean {
    return performance.now() < this.#busyUntil;
  }

  async #release(turn: Turn, isAgain: boolean): Promise<void> {
    try {
      if (isAgain && this.#options.cache.pause?.() === true)
        this.#pause = setTimeout(() => this.#endPause(), MAX_PAUSE_MS);
      else await this.#releaseCache();
    } finally {
      await turn.release();
    }
  }

  #endPause(): void {
    clearTimeout(this.#pause);
    this.#pause = undefined;
    this.#releasing = this.#releasing.then(() => this.#releaseCache());
  }

  async #releaseCache(): Promise<void> {
    try {
      await this.#options.cache.release();
    } catch {
      // A cache that could not be given up costs the next one a reading: what was appended is on disk.
    }
  }
}
