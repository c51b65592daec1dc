/** Requests to an open ledger, queued until a group makes them or they are withdrawn. */

import type { VerifyState } from '../../rules/verify/state.js';
import type { Appended, CheckpointResult, Entry } from './options.js';
import type { Prepared } from './record-maker.js';
import type { Withdrawal } from './withdrawal.js';

export interface Promised<T> {
  /** If it can be withdrawn. */
  readonly withdrawal?: Withdrawal | undefined;
  readonly resolve: (result: T) => void;
  readonly reject: (error: unknown) => void;
}

export interface EventJob extends Promised<Appended> {
  readonly kind: 'event';
  readonly prepared: Prepared;
  readonly givenAt: string;
}

/** A requested checkpoint, made when its place is known. */
export interface CheckpointJob extends Promised<CheckpointResult> {
  readonly kind: 'checkpoint';
  readonly givenAt: string;
  readonly principalId: string | undefined;
}

export interface DueJob {
  readonly kind: 'due';
  readonly givenAt: string;
}

/** An event made when its place is known. */
export interface DecisionJob extends Promised<Appended> {
  readonly kind: 'decision';
  readonly makes: (state: VerifyState) => Entry;
  /** As in `DecideOptions`. */
  readonly before?: ((state: VerifyState) => readonly Entry[]) | undefined;
  readonly givenAt: string;
}

/** A query, other writers' records included. */
export interface LookJob extends Promised<unknown> {
  readonly kind: 'look';
  /** Called under the write lock, which is held until a promise settles. */
  readonly look: () => unknown;
  readonly givenAt: string;
}

/** An action under the write lock, after the group is on disk. */
export interface ActJob extends Promised<void> {
  readonly kind: 'act';
  readonly act: () => Promise<void>;
  readonly givenAt: string;
}

export type Job = EventJob | CheckpointJob | DueJob | DecisionJob | LookJob | ActJob;
