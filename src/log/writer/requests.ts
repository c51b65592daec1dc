/** Requests: each becomes a queued job and a promise. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { GroupCommit } from './group-commit.js';
import type { Promised } from './jobs.js';
import {
  type Appended,
  type CheckpointResult,
  type Entry,
  nowOf,
  type OpeningOptions,
  willSeal,
} from './options.js';
import type { RecordMaker } from './record-maker.js';
import type { RunningVerification } from './running-verification.js';
import { type AskOptions, type DecideOptions, Withdrawal } from './withdrawal.js';

export interface RequestParts {
  readonly commits: GroupCommit;
  readonly maker: RecordMaker;
  readonly running: RunningVerification;
}

/** See `Ledger` for the contracts. */
export class Requests {
  readonly #parts: RequestParts;
  readonly #options: OpeningOptions;

  constructor(parts: RequestParts, options: OpeningOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  append(entry: Entry, { signal }: AskOptions): Promise<Appended> {
    const { commits, maker } = this.#parts;
    return ask<Appended>(signal, ({ withdrawal, resolve, reject }) => {
      commits.assertUsable();
      try {
        const prepared = maker.prepare(entry);
        const { givenAt } = prepared;
        commits.add({ kind: 'event', prepared, givenAt, withdrawal, resolve, reject });
      } catch (error) {
        commits.noteRefusal();
        throw error;
      }
    });
  }

  decide(makes: (state: VerifyState) => Entry, { signal, before }: DecideOptions): Promise<Appended> {
    const { commits } = this.#parts;
    return ask<Appended>(signal, (promised) => {
      commits.assertUsable();
      commits.add({ ...promised, kind: 'decision', makes, before, givenAt: nowOf(this.#options) });
    });
  }

  checkpoint(principalId: string | undefined, { signal }: AskOptions): Promise<CheckpointResult> {
    const { commits } = this.#parts;
    return ask<CheckpointResult>(signal, (promised) => {
      commits.assertUsable();
      if (!willSeal(this.#options)) throw new TypeError('the ledger was opened without checkpoints');
      commits.add({ ...promised, kind: 'checkpoint', givenAt: nowOf(this.#options), principalId });
    });
  }

  inspect<T>(
    look: (state: VerifyState, deciding: VerifyState) => T | Promise<T>,
    { signal }: AskOptions,
  ): Promise<T> {
    const { running, commits } = this.#parts;
    return ask<T>(signal, (promised) => {
      commits.assertOpen();
      const resolve = promised.resolve as (seen: unknown) => void;
      const sees = (): unknown => look(running.state, running.deciding);
      commits.add({ ...promised, kind: 'look', look: sees, givenAt: nowOf(this.#options), resolve });
    });
  }
}

/** Withdraws the request if the signal aborts before it is made. */
function ask<T>(signal: AbortSignal | undefined, add: (promised: Promised<T>) => void): Promise<T> {
  if (signal === undefined) return new Promise((resolve, reject) => add({ resolve, reject }));
  let withdrawal: Withdrawal | undefined;
  const asked = new Promise<T>((resolve, reject) => {
    signal.throwIfAborted();
    withdrawal = new Withdrawal(signal, reject);
    add({ withdrawal, resolve, reject });
  });
  return asked.finally(() => withdrawal?.end());
}
