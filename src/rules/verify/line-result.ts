/** What verification says of one line. */

import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding, FindingContext } from '../../format/finding/finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { Role } from '../trust/authority.js';

/** An event's verdict (SPEC §8). */
export type EventVerdict = 'ok' | 'denied' | 'violation' | 'invalid';

/** What became of one signature of a record. */
export interface SignatureOutcome {
  readonly keyid: string;
  /**
   * Right, and by a key that was entitled; wrong, or by a key that was not; by a key that is not known; or the same signature
   * again, which counts once.
   */
  readonly outcome: 'valid' | 'invalid' | 'unverified' | 'copy';
  /** Why it is invalid or unverified: the code of its finding. */
  readonly code?: FindingCode;
  /** Of a valid one, the roles by which its key signs the event; absent where the event is not well-formed. */
  readonly roles?: readonly Role[];
  /** Of a copy, the place of the signature that it repeats, counted from 0. */
  readonly copyOf?: number;
}

/** A finding that is not listed, and the one under which it folded. */
export interface FoldedFinding {
  readonly finding: Finding;
  readonly root: Finding;
  /** Whether neither is known for certain yet: the root is given later, as another finding with the same `context`. */
  readonly waits?: boolean;
}

/** The file that a line stands in. */
export interface SegmentName {
  readonly file: string;
  readonly firstSeq: number | undefined;
}

/** What one line gave. */
export interface LineResult {
  /** The findings to list, in the order of SPEC §8's steps; empty for a line without fault. */
  readonly findings: readonly Finding[];
  /** That the event names one that has not come: `findings` of a later line, or of the end, tell of it. */
  readonly waiting: Finding | undefined;
  /** What the line says; undefined for one that takes no place in the ledger or is too long to be read. */
  readonly examined: ExaminedLine | undefined;
  readonly verdict: EventVerdict;
  /** What became of each signature of the record, in its order. */
  readonly signatures: readonly SignatureOutcome[];
  /** Findings of the line that are not listed, since they say of it what an earlier one says of another. */
  readonly folded: readonly FoldedFinding[];
  /** What there is to say of the line itself, listed or folded, each cause once: what `findings` would be if it were the only one. */
  readonly own: readonly Finding[];
  /** What the event is about, as it says: also the grants above it. */
  readonly context: FindingContext;
}
