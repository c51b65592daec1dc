/** Withdrawing what was asked of a ledger: what is not made yet when a signal aborts is not made, and its asker is told at once. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Entry } from './options.js';

/** How something is asked of a ledger that is open. */
export interface AskOptions {
  /**
   * Aborting withdraws what is still waiting, with the signal's reason. What is in a group already is written all the same, and
   * acknowledged as ever.
   */
  readonly signal?: AbortSignal | undefined;
}

/** How an event is decided on. */
export interface DecideOptions extends AskOptions {
  /**
   * Makes what is to be on disk before the event, in the same group: what is decided rests on it already. Called as what makes the event
   * is. Where one of these cannot be appended, nothing of them is decided.
   */
  readonly before?: ((state: VerifyState) => readonly Entry[]) | undefined;
}

/** One thing that was asked for with a signal. */
export class Withdrawal {
  readonly #signal: AbortSignal;
  readonly #listener: () => void;
  #isTaken = false;

  /** @param reject - Told the signal's reason when it is withdrawn. */
  constructor(signal: AbortSignal, reject: (reason: unknown) => void) {
    this.#signal = signal;
    this.#listener = () => {
      if (!this.#isTaken) reject(signal.reason);
    };
    signal.addEventListener('abort', this.#listener);
  }

  /** It is made now, and can be withdrawn no longer. @throws the signal's reason where it was withdrawn */
  take(): void {
    this.#signal.throwIfAborted();
    this.#isTaken = true;
  }

  /** It is settled, one way or the other. */
  end(): void {
    this.#signal.removeEventListener('abort', this.#listener);
  }
}
