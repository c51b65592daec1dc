/**
 * Where the state of a ledger's verification is kept between two turns, and from one process to the next. The default keeps it in
 * memory only; an index beside the ledger is another.
 */

import type { TrustPolicy } from '../../format/schema/generated/types.js';
import type { VerifyState } from '../../rules/verify/state.js';

/** Which signatures are verified when a ledger is read. */
export type SignatureDepth =
  /** All: the ledger may be sealed, and decided upon. */
  | 'all'
  /** Those that decide what counts: not those of executions and of extension events, which are taken as they are. */
  | 'deciding';

/** Which of the states of one ledger is meant: under a trust policy there are two, that of the ledger's own keys and the policy's. */
export interface StateView {
  readonly trust: TrustPolicy | undefined;
  /** A state of `deciding` has not verified all signatures: it will not do where `all` is asked for. */
  readonly depth: SignatureDepth;
}

/** See the head of this file. All is called with the store's turn held, but where it says otherwise. */
export interface StateCache {
  /**
   * Called before the writer catches up on what is stored.
   *
   * @param view - Which state.
   * @param current - The one that the writer goes on with otherwise; undefined where it has none, and would begin at the beginning.
   * @returns A state at least as far along, or undefined. It is the writer's from then on, and changed by it. That it belongs to this
   *   ledger is for the cache to prove.
   */
  load(view: StateView, current: VerifyState | undefined): Promise<VerifyState | undefined>;
  /**
   * Called without the turn, before the ledger is read for the first time: what takes long may be done while others append.
   *
   * @returns Whether a state will be loaded: otherwise the ledger is read now.
   */
  prepare?(view: StateView): Promise<boolean>;
  /** Called when the state that was loaded turns out to be damaged: what is kept is to be forgotten. */
  discard?(reason: string): Promise<void>;
  /** Called when what the state has seen is on disk, all of it: never with what was judged and not written. */
  save(view: StateView, state: VerifyState): Promise<void>;
  /**
   * Called instead of `release` where the turn is given back and asked for again at once. Where it does not come at once, somebody else
   * has it: `release` is called then, without the turn.
   *
   * @returns Whether anything is kept from others; `release` is called now where not.
   */
  pause?(): boolean;
  /** Called before the turn is given back, however the group ended. */
  release(): Promise<void>;
}

/** Keeps nothing but what the writer has. */
export const memoryOnly: StateCache = {
  load: () => Promise.resolve(undefined),
  save: () => Promise.resolve(),
  release: () => Promise.resolve(),
};
