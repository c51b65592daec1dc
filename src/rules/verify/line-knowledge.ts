/** What may be known of a line before its turn comes: the verdict does not depend on it. */

import type { ExaminedLine, Layout } from '../../format/record/examine-line.js';
import type { LedgerLine } from '../source/read-lines.js';

/** What is known of a line before its turn comes. */
export interface LineKnowledge {
  /** Its RFC 6962 leaf hash, a binary string. */
  readonly leaf: string;
  /**
   * What `examineLine` says of it in a ledger of that layout; undefined where that is to be asked.
   *
   * @param isBrief - Whether it is used up before the next lines are asked for.
   */
  examine(layout: Layout | undefined, isBrief: boolean): ExaminedLine | undefined;
  /** Whether the signature at `index` is valid; undefined where it was not computed. */
  isValid(index: number): boolean | undefined;
}

/** A line, and what is known of it; of one that is too long nothing is. */
export interface KnownLine extends LedgerLine {
  readonly known: LineKnowledge | undefined;
}
