/** The result of verifying one line. */

import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding, FindingContext } from '../../format/finding/finding.js';
import type { ExaminedLine } from '../../format/record/examine-line.js';
import type { Role } from '../trust/authority.js';

/** An event's verdict (SPEC §8). */
export type EventVerdict = 'ok' | 'denied' | 'violation' | 'invalid';

/** The outcome of one signature of a record. */
export interface SignatureOutcome {
  readonly keyid: string;
  /**
   * `valid`: right, by an entitled key. `invalid`: wrong, or by a key that was not entitled. `unverified`: by an unknown key. `copy`: a
   * repeated signature, which counts once.
   */
  readonly outcome: 'valid' | 'invalid' | 'unverified' | 'copy';
  /** Why it is invalid or unverified: the code of its finding. */
  readonly code?: FindingCode;
  /** For a valid one the roles by which its key signs the event; absent where the event is malformed. */
  readonly roles?: readonly Role[];
  /** For a copy the index of the signature that it repeats. */
  readonly copyOf?: number;
}

/** A finding that is not listed, and its root, under which it folded. */
export interface FoldedFinding {
  readonly finding: Finding;
  readonly root: Finding;
  /** Whether both are pending: the root is reported later, as another finding with the same `context`. */
  readonly waits?: boolean;
}

/** The file of a line. */
export interface SegmentName {
  readonly file: string;
  readonly firstSeq: number | undefined;
}

/** What is told of a record. */
export interface Judged {
  /** Its own, unfolded. */
  readonly findings: readonly Finding[];
  readonly verdict: EventVerdict;
}

export interface LineResult {
  /** The findings to list, in the order of SPEC §8's steps. */
  readonly findings: readonly Finding[];
  /** The event names one that has not come: reported by a later line, or at the end. */
  readonly waiting: Finding | undefined;
  /** Undefined for a line that is no leaf or is too long to be read. */
  readonly examined: ExaminedLine | undefined;
  readonly verdict: EventVerdict;
  /** The outcome of each signature, in order. */
  readonly signatures: readonly SignatureOutcome[];
  /** The findings that are not listed, since they repeat an earlier cause. */
  readonly folded: readonly FoldedFinding[];
  /** All findings at the line, listed or folded, each cause once: `findings` as if it were the only line. */
  readonly own: readonly Finding[];
  /** What the event is about, as it claims, with the grants above it. */
  readonly context: FindingContext;
}

/** What is found of a record, all of it counted under earlier findings. */
export type Counted = Pick<LineResult, 'own' | 'folded'>;
