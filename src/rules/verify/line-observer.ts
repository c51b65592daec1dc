/** Who is told of each line as it is verified: to keep what is said of it. The rules know nothing of that. */

import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import type { RawLine } from '../../format/record/line-splitter.js';
import type { EventVerdict, LineResult, SegmentName } from './line-result.js';

/** See the head of this file. It changes nothing in the state. */
export interface LineObserver {
  /** Called with a line that takes a place, while the state is as it was before it; with undefined for one that is too long to be read. */
  beforeLine(examined: ExaminedLine | undefined): void;
  /** Called with every line, when the state is as it is after it. */
  afterLine(line: RawLine, segment: SegmentName, result: LineResult): void;
  /** Called instead with a line that the fast step (`fast-step.ts`) went over: it says nothing of what it changed in place. */
  afterFastLine(line: RawLine, segment: SegmentName, examined: WellFormedLine, verdict: EventVerdict): void;
}
