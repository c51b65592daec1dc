/** Withdraws requests that were not yet made when a signal aborts. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Entry } from './options.js';

export interface AskOptions {
  /** Aborting withdraws a waiting request with its reason. What is in a group already is written and acknowledged. */
  readonly signal?: AbortSignal | undefined;
}

export interface DecideOptions extends AskOptions {
  /** Makes entries for the same group, before the event. If one cannot be appended, nothing is. */
  readonly before?: ((state: VerifyState) => readonly Entry[]) | undefined;
}

export class Withdrawal {
  readonly #signal: AbortSignal;
  readonly #listener: () => void;
  #isTaken = false;

  /** @param reject - Called with the signal's reason */
  constructor(signal: AbortSignal, reject: (reason: unknown) => void) {
    this.#signal = signal;
    this.#listener = () => {
      if (!this.#isTaken) reject(signal.reason);
    };
    signal.addEventListener('abort', this.#listener);
  }

  /** From now on it cannot be withdrawn. @throws the signal's reason if it was */
  take(): void {
    this.#signal.throwIfAborted();
    this.#isTaken = true;
  }

  end(): void {
    this.#signal.removeEventListener('abort', this.#listener);
  }
}
