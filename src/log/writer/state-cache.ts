/** Keeps verification states between locks and processes: in memory by default, or in an index. */

import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { VerifyState } from '../../rules/verify/state.js';

export type SignatureDepth =
  /** All, as sealing and deciding require. */
  | 'all'
  /** Those that decide what counts; those of executions and extension events are assumed. */
  | 'deciding';

/** A ledger's own state, or the one under a trust policy. */
export interface StateView {
  readonly trust: TrustPolicy | undefined;
  /** A `deciding` state cannot serve where `all` is required. */
  readonly depth: SignatureDepth;
}

/** All methods require the write lock, unless stated otherwise. */
export interface StateCache {
  /**
   * Called before the writer catches up.
   * @param current - The writer's own state; undefined if it would start anew
   * @returns A state at least as far along, owned and changed by the writer; the cache MUST check that it belongs to this ledger
   */
  load(view: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined>;
  /**
   * Called without the write lock before the first read, for slow work.
   * @returns Whether a state will be loaded; else the ledger is read now
   */
  prepare?(view: StateView): Promise<boolean>;
  /** Called when a loaded state turns out to be damaged. */
  discard?(reason: string): Promise<void>;
  /** Called when lines after the state that is saved were written, before they are on disk, and before any of them is saved. Never rejects. */
  noteWritten?(view: StateView, state: VerifyState): Promise<void>;
  /** Called only when all that the state has applied is on disk; for groups that share a lock not after each, but before `release`. */
  save(view: StateView, state: VerifyState): Promise<void>;
  /**
   * Called instead of `release` where the lock is released and requested again at once. If it is not reacquired at once, `release` follows
   * without the lock.
   * @returns Whether anything stays open; if not, `release` follows now
   */
  pause?(): boolean;
  /** Called before the lock is released, in any case. */
  release(): Promise<void>;
}

/** The default: keeps nothing. */
export const memoryOnly: StateCache = {
  load: () => Promise.resolve(undefined),
  save: () => Promise.resolve(),
  release: () => Promise.resolve(),
};
