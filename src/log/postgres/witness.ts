/**
 * A witness of positions: a place outside of the database, which is told each position before it is acknowledged. A database that lacks a
 * witnessed position has lost what was acknowledged, and is not written to.
 */

import type { StoredEnd } from '../store/ledger-store.js';

/** Keeps the furthest acknowledged position of one ledger, for all who write to it. */
export interface PositionWitness {
  /** The furthest position; undefined before the first. @throws as the place does */
  read(): Promise<StoredEnd | undefined>;
  /**
   * Moves on to a further position, durably, if the present one is as expected.
   * @param from - Undefined for none
   * @returns false if it is another one, changing nothing
   * @throws as the place does, if that is not known
   */
  advance(from: StoredEnd | undefined, to: StoredEnd): Promise<boolean>;
  close?(): Promise<void>;
}
