/** What is asked of a ledger that is open: each waits in the queue until it is made in a group, or withdrawn. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, CheckpointResult, Entry } from './options.js';
import type { Prepared } from './record-maker.js';
import type { Withdrawal } from './withdrawal.js';

/** Who asked, and is told. */
export interface Promised<T> {
  /** Where it can be withdrawn until it is made. */
  readonly withdrawal?: Withdrawal | undefined;
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

/** An event that is complete. */
export interface EventJob extends Promised<Appended> {
  readonly kind: 'event';
  readonly prepared: Prepared;
  readonly givenAt: string;
}

/** A checkpoint that is asked for, made when its place is known. */
export interface CheckpointJob extends Promised<CheckpointResult> {
  readonly kind: 'checkpoint';
  readonly givenAt: string;
  readonly principalId: string | undefined;
}

/** A checkpoint that is due by time; left out when records before it made one already. */
export interface DueJob {
  readonly kind: 'due';
  readonly givenAt: string;
}

/** An event that is made when its place is known. */
export interface DecisionJob extends Promised<Appended> {
  readonly kind: 'decision';
  readonly makes: (state: VerifyState) => Entry;
  /** What comes before it, as of `DecideOptions`. */
  readonly before?: ((state: VerifyState) => readonly Entry[]) | undefined;
  readonly givenAt: string;
}

/** A look at what the ledger says, with what others wrote. */
export interface LookJob extends Promised<unknown> {
  readonly kind: 'look';
  /** Called with the turn held, which is kept until a promise is settled. */
  readonly look: () => unknown;
  readonly givenAt: string;
}

/** Something that is done while nobody else has the turn, when the group is on disk. */
export interface ActJob extends Promised<void> {
  readonly kind: 'act';
  readonly act: () => Promise<void>;
  readonly givenAt: string;
}

export type Job = EventJob | CheckpointJob | DueJob | DecisionJob | LookJob | ActJob;
