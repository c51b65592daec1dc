/** Withdraws requests that were not yet made when a signal aborts. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, Entry } from './options.js';

export interface AskOptions {
  /** Aborting withdraws a waiting request with its reason. What is in a group already is written and acknowledged. */
  readonly signal?: AbortSignal | undefined;
}

export interface PatientOptions extends AskOptions {
  /**
   * Whether it may wait up to 10 milliseconds for a later request, to share its write and sync. Queries may come before it; what is
   * appended does not. Default false.
   */
  readonly mayWait?: boolean | undefined;
}

export interface DecideOptions extends PatientOptions {
  /**
   * Whether the event does not depend on the verification that it is made with: it may then be made shortly before its turn, together with
   * those next to it, which are signed faster in a row, and once more where that turn is in a later group. Without `before` and `after`. Default false.
   */
  readonly ignoresState?: boolean | undefined;
  /**
   * Makes the entries that the event and those after it will probably be, shortly before its turn, together with those next to it, which
   * are signed faster in a row. `complete` answers an entry's id, `sha-256:…`, and throws what is thrown for one that is malformed. Where
   * `makes` or `after` then returns one of these very entries, it is complete. What it throws has no effect.
   */
  readonly expects?: ((complete: (entry: Entry) => string) => void) | undefined;
  /** Makes entries for the same group, before the event. If one cannot be appended, nothing is. */
  readonly before?: ((state: VerifyState) => readonly Entry[]) | undefined;
  /**
   * Makes entries for the same group, after the event, given the verification that includes it. If it throws, or an entry is refused, the
   * event and the entries before it are appended all the same.
   */
  readonly after?: ((state: VerifyState, appended: Appended) => readonly Entry[]) | undefined;
}

export interface Decided extends Appended {
  /** What `after` appended, in order; absent without `after`. */
  readonly followers?: readonly Appended[];
  /** Why nothing more of `after` was appended: what it threw, or why an entry was refused. */
  readonly refusal?: unknown;
}

/** By signal. Hundreds may be asked with one at once, and Node.js warns of more than ten listeners: they share a single one. */
const waiting = new WeakMap<AbortSignal, Withdrawals>();

class Withdrawals {
  readonly #signal: AbortSignal;
  readonly #all = new Set<() => void>();
  readonly #withdraw = (): void => {
    for (const withdraw of this.#all) withdraw();
  };

  private constructor(signal: AbortSignal) {
    this.#signal = signal;
    signal.addEventListener('abort', this.#withdraw);
  }

  static of(signal: AbortSignal): Withdrawals {
    let all = waiting.get(signal);
    if (all === undefined) waiting.set(signal, (all = new Withdrawals(signal)));
    return all;
  }

  add(withdraw: () => void): void {
    this.#all.add(withdraw);
  }

  remove(withdraw: () => void): void {
    this.#all.delete(withdraw);
    if (this.#all.size > 0) return;
    this.#signal.removeEventListener('abort', this.#withdraw);
    waiting.delete(this.#signal);
  }
}

export class Withdrawal {
  readonly #signal: AbortSignal;
  readonly #withdraw: () => void;
  #isTaken = false;

  /** @param reject - Called with the signal's reason */
  constructor(signal: AbortSignal, reject: (reason: unknown) => void) {
    this.#signal = signal;
    this.#withdraw = () => {
      if (!this.#isTaken) reject(signal.reason);
    };
    Withdrawals.of(signal).add(this.#withdraw);
  }

  /** From now on it cannot be withdrawn. @throws the signal's reason if it was */
  take(): void {
    this.#signal.throwIfAborted();
    this.#isTaken = true;
  }

  end(): void {
    Withdrawals.of(this.#signal).remove(this.#withdraw);
  }
}

export interface Promised<T> {
  /** If it can be withdrawn. */
  readonly withdrawal?: Withdrawal | undefined;
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

/** Withdraws the request if the signal aborts before it is made. */
export function ask<T>(signal: AbortSignal | undefined, add: (promised: Promised<T>) => void): Promise<T> {
  if (signal === undefined) return new Promise((resolve, reject) => add({ resolve, reject }));
  let withdrawal: Withdrawal | undefined;
  const asked = new Promise<T>((resolve, reject) => {
    signal.throwIfAborted();
    withdrawal = new Withdrawal(signal, reject);
    add({ withdrawal, resolve, reject });
  });
  return asked.finally(() => withdrawal?.end());
}
