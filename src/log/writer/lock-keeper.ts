/**
 * Acquires and releases the store's write lock, for each group. Close appends share a lock while no one else writes: locking costs more
 * than a small group. Who is seen to wait gets it after the group. With other writers groups stay short, since each must verify the others'
 * records first.
 */

import { type Clock, sleep, systemClock, type Timer } from '../../base/clock.js';
import type { LedgerStore, WriteLock } from '../store/ledger-store.js';
import type { StateCache } from './state-cache.js';

interface LockOptions {
  readonly timeoutMs: number;
  readonly lingerMs: number;
  readonly signal: AbortSignal | undefined;
  readonly onWait: () => void;
  readonly cache: Pick<StateCache, 'pause' | 'release'>;
  /** Called before the lock is released. MUST NOT reject. */
  readonly save: () => Promise<void>;
  readonly clock?: Clock | undefined;
}

/** The longest hold while more groups wait. */
const MAX_HOLD_MS = 500;
/** A longer wait means other writers. */
const LONG_WAIT_MS = 100;
/** Other writers may return within this time. */
const BUSY_MS = 1_000;
/** The time for a group while others write. */
const SHORT_GROUP_MS = 10;
/** The longest time that a paused cache stays open. */
const MAX_PAUSE_MS = 50;
/** How often it is asked whether another waits for a lock that is kept. */
const LOOK_MS = 5;
/** A lock that was just released is left to others for this long: a waiting process must first wake up. */
const YIELD_MS = 2;

/** Acquires and releases the write lock; see the head of this file. */
export class LockKeeper {
  readonly #store: LedgerStore;
  readonly #options: LockOptions;
  readonly #clock: Clock;
  #lock: WriteLock | undefined;
  #takenAt = 0;
  #releasedAt = -Infinity;
  #lookedAt = -Infinity;
  #isLooking = false;
  #busyUntil = 0;
  #endedAt = -Infinity;
  #isClose = false;
  /** Set while the lock is kept between groups. */
  #timer: Timer | undefined;
  /** Set while the cache is paused. */
  #pause: Timer | undefined;
  #releasing: Promise<void> = Promise.resolve();

  constructor(store: LedgerStore, options: LockOptions) {
    this.#store = store;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Notes whether a request closely follows the last group. */
  noteRequest(): void {
    this.#isClose = this.#clock.ticks() - this.#endedAt <= this.#options.lingerMs;
  }

  /** @throws as `LedgerStore.acquire` */
  async acquire(): Promise<void> {
    this.#endLinger();
    await this.#releasing;
    if (this.#lock !== undefined) return;
    const { timeoutMs, signal, onWait } = this.#options;
    const start = this.#clock.ticks();
    if (start - this.#releasedAt < YIELD_MS) await sleep(this.#clock, YIELD_MS);
    // After an abort, what has begun must still be written or released.
    const waiting = signal?.aborted === true ? undefined : signal;
    try {
      this.#lock = await this.#store.acquire({ timeoutMs, signal: waiting, onWait });
    } catch (error) {
      await this.release();
      throw error;
    }
    this.#takenAt = this.#clock.ticks();
    this.#clock.clear(this.#pause);
    this.#pause = undefined;
    // The pause may have just ended.
    await this.#releasing;
    if (this.#takenAt - start > LONG_WAIT_MS) this.noteOthers();
  }

  get isHeld(): boolean {
    return this.#lock !== undefined;
  }

  noteOthers(): void {
    this.#busyUntil = this.#clock.ticks() + BUSY_MS;
  }

  /** The longest time for making a group, in milliseconds. */
  get groupMs(): number {
    return this.#isBusy ? SHORT_GROUP_MS : MAX_HOLD_MS;
  }

  /** Releases the lock after a group, unless the next one may share it. */
  async endGroup(hasMore: boolean): Promise<void> {
    const now = this.#clock.ticks();
    this.#endedAt = now;
    const { lingerMs } = this.#options;
    const mayKeep = !this.#isBusy && lingerMs > 0 && now - this.#takenAt < MAX_HOLD_MS;
    const hasNext = hasMore || this.#isClose;
    if (!mayKeep || !hasNext) return this.release(hasNext && !this.#isBusy);
    this.#look();
    if (!hasMore) this.#linger(Math.min(now + lingerMs, this.#takenAt + MAX_HOLD_MS));
  }

  #linger(until: number): void {
    const left = until - this.#clock.ticks();
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#look();
        if (this.#isBusy || until - this.#clock.ticks() <= 0) void this.release();
        else this.#linger(until);
      },
      Math.min(left, LOOK_MS) + 1,
    );
  }

  #endLinger(): void {
    this.#clock.clear(this.#timer);
    this.#timer = undefined;
  }

  /** Asks whether another waits for the lock, beside what goes on. */
  #look(): void {
    const now = this.#clock.ticks();
    const lock = this.#lock;
    if (lock?.isWanted === undefined || this.#isLooking || now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now;
    this.#isLooking = true;
    void lock
      .isWanted()
      .catch(() => false)
      .then((isWanted) => {
        this.#isLooking = false;
        if (!isWanted || lock !== this.#lock) return;
        this.noteOthers();
        if (this.#timer !== undefined) void this.release();
      });
  }

  /** @param isAgain - Whether it is requested again at once */
  release(isAgain = false): Promise<void> {
    this.#endLinger();
    const lock = this.#lock;
    this.#lock = undefined;
    if (lock !== undefined) this.#releasing = this.#release(lock, isAgain);
    else if (this.#pause !== undefined) this.#endPause();
    return this.#releasing;
  }

  get #isBusy(): boolean {
    return this.#clock.ticks() < this.#busyUntil;
  }

  async #release(lock: WriteLock, isAgain: boolean): Promise<void> {
    try {
      await this.#options.save();
      if (isAgain && this.#options.cache.pause?.() === true)
        this.#pause = this.#clock.setTimeout(() => this.#endPause(), MAX_PAUSE_MS);
      else await this.#releaseCache();
    } finally {
      await lock.release();
      this.#releasedAt = this.#clock.ticks();
    }
  }

  #endPause(): void {
    this.#clock.clear(this.#pause);
    this.#pause = undefined;
    this.#releasing = this.#releasing.then(() => this.#releaseCache());
  }

  async #releaseCache(): Promise<void> {
    try {
      await this.#options.cache.release();
    } catch {
      // A cache that cannot be closed costs a reading; the records are on disk.
    }
  }
}
