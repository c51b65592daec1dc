/** Observes each line as it is verified, for an index of the ledger. */

import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { Counted, EventVerdict, LineResult, SegmentName } from './line-result.js';

/** MUST NOT change the state. */
export interface LineObserver {
  /** Called before each leaf; with undefined for a line too long to be read. */
  beforeLine(examined: ExaminedLine | undefined): void;
  /** Called after each line. */
  afterLine(line: RawLine, segment: SegmentName, result: LineResult): void;
  /** Called instead after a line on the fast path, which does not report its changes in place. */
  afterFastLine(
    line: RawLine,
    segment: SegmentName,
    examined: WellFormedLine,
    result: Counted & { readonly verdict: EventVerdict },
  ): void;
}
