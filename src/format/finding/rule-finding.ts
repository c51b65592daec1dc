/** What a rule says of the event or line that it judges, before its place is known. */

import type { Rational } from '../../base/value/rational.js';
import type { FindingCode, Severity } from './catalog.js';
import type { RelatedRecord } from './finding.js';

/** The limit that was held against, and what counted against it before the event that is judged. */
export interface LimitFact {
  readonly unit: string;
  readonly limit: Rational;
  readonly used: Rational;
}

/** A finding without its place. */
export interface RuleFinding {
  readonly code: FindingCode;
  /** RFC 6901 pointer, from the root that the rule works on. */
  readonly pointer?: string;
  readonly expected?: string;
  readonly actual?: string;
  /** Whether `expected`, `actual` and `limit` are accessors, both texts there: their words cost something, and are made when they are read. */
  readonly isWordedLate?: boolean;
  /** Byte offset from the line's start, where a part of the line is meant. */
  readonly offset?: number;
  readonly related?: readonly RelatedRecord[];
  /** Overrides the code's own severity; anything less than an error does not touch the verdict. */
  readonly severity?: Severity;
  /** Findings with the same cause after the first only add to its count. */
  readonly cause?: string;
  /** Of a bound that is an amount: for whoever decides live. Not a part of findings. */
  readonly limit?: LimitFact;
}
