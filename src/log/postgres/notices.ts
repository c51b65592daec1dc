/** Tells the readers of a ledger that there is more: by notifications, and by looking now and then where none come. */

import { setTimeout as sleep } from 'node:timers/promises';
import type { Session } from './session.js';

/** How often is looked, in milliseconds: with notifications, and without. */
const SLOW_MS = 1_000;
const FAST_MS = 200;
/** The least time between two notifications of one writer. */
const PAUSE_MS = 10;
/** How long the last notification is waited for, in milliseconds: readers look for themselves. */
const LAST_MS = 1_000;

export class Notices {
  readonly #channel: string;
  readonly #reading: () => Promise<Session>;
  readonly #waiting = new Set<() => void>();
  #listening: Session | undefined;
  #isWatched = false;
  #isDue = false;
  #isClosed = false;
  #telling: Promise<void> | undefined;

  constructor(number: number, reading: () => Promise<Session>) {
    this.#channel = `northroot_${number}`;
    this.#reading = reading;
  }

  /** A new session for reading was opened. */
  listen(session: Session): void {
    session.onNotification((channel) => {
      if (channel === this.#channel) this.#wake();
    });
    session.onLost(() => this.#wake());
    if (this.#isWatched) void this.#subscribe(session);
  }

  /** Notifies others, soon: several appends share one notification. */
  tell(): void {
    this.#wake();
    this.#isDue = true;
    this.#telling ??= this.#tellAll().finally(() => {
      this.#telling = undefined;
    });
  }

  /** Resolves when there may be more, or when the signal is aborted. */
  async wait(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    if (!this.#isWatched) {
      this.#isWatched = true;
      await this.#reading()
        .then((session) => this.#subscribe(session))
        .catch(() => undefined);
      // What came before that is not told.
      return;
    }
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waiting.delete(end);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, this.#listening?.isLost === false ? SLOW_MS : FAST_MS);
      this.#waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#wake();
    await Promise.race([this.#telling, sleep(LAST_MS, undefined, { ref: false })]);
  }

  #wake(): void {
    for (const wake of [...this.#waiting]) wake();
  }

  async #subscribe(session: Session): Promise<void> {
    try {
      await session.run(`listen ${this.#channel}`);
      this.#listening = session;
    } catch {
      // A standby cannot.
    }
  }

  async #tellAll(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      try {
        const session = await this.#reading();
        // Its commit need not last.
        await session.run(`set local synchronous_commit = off; notify ${this.#channel}`);
      } catch {
        // Readers look for themselves.
      }
      if (!this.#isClosed) await sleep(PAUSE_MS, undefined, { ref: false });
    }
  }
}
