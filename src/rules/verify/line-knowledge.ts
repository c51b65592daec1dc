/** Facts of a line that were computed in advance. The verdict does not depend on them. */

import type { ExaminedLine, Layout } from '../../format/record/examine-line.js';
import type { LedgerLine } from '../source/read-lines.js';

export interface LineKnowledge {
  /** Its RFC 6962 leaf hash, a binary string. */
  readonly leaf: string;
  /**
   * The result of `examineLine` for a ledger of that layout; undefined where that has to be called.
   *
   * @param isBrief - Whether it is used only until the next line.
   */
  examine(layout: Layout | undefined, isBrief: boolean): ExaminedLine | undefined;
  /** Whether the signature at `index` is valid; undefined where it was not computed. */
  isValid(index: number): boolean | undefined;
}

export interface KnownLine extends LedgerLine {
  readonly known: LineKnowledge | undefined;
}
