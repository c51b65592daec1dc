/**
 * A witness of positions: a place outside of the database, which is told each position before it is acknowledged. A database that lacks a
 * witnessed position has lost what was acknowledged, and is not written to.
 */

import type { StoredEnd } from '../store/ledger-store.js';

/** Keeps the furthest acknowledged position of one ledger, for all who write to it. */
export interface PositionWitness {
  /**
   * The furthest position, of size 0 before the first. Undefined where nothing is kept: then a ledger that has records is not written to,
   * since what was kept of it may be lost, or elsewhere.
   * @throws as the place does
   */
  read(): Promise<StoredEnd | undefined>;
  /**
   * Moves on to a further position, durably, if the present one is as expected.
   * @param from - Undefined where nothing is kept
   * @param to - Of size 0 for a ledger without records: it shows that positions can be kept, and MAY be forgotten
   * @returns false if it is another one, changing nothing
   * @throws as the place does, if that is not known
   */
  advance(from: StoredEnd | undefined, to: StoredEnd): Promise<boolean>;
  /** How a witness where nothing is kept is begun with a ledger that has records: for people. */
  hintToBegin?(end: StoredEnd): string;
  close?(): Promise<void>;
}
