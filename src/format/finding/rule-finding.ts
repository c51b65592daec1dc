/** The findings of rules, before their place is known. */

import type { Rational } from '../../base/value/rational.js';
import type { FindingCode, Severity } from './catalog.js';
import type { RelatedRecord } from './finding.js';

/** A limit, and the amount counted against it before the event. */
interface LimitFact {
  readonly unit: string;
  readonly limit: Rational;
  readonly used: Rational;
}

export interface RuleFinding {
  readonly code: FindingCode;
  /** RFC 6901 pointer, from the root that the rule works on. */
  readonly pointer?: string;
  readonly expected?: string;
  readonly actual?: string;
  /** Whether `expected`, `actual` and `limit` are accessors, with both texts present: words cost time, so they are made on first use. */
  readonly isWordedLate?: boolean;
  /** Byte offset from the line's start, for a part of the line. */
  readonly offset?: number;
  readonly related?: readonly RelatedRecord[];
  /** Overrides the code's severity; only errors affect the verdict. */
  readonly severity?: Severity;
  /** Later findings with the same cause only add to the first one's count. */
  readonly cause?: string;
  /** For a bound that is an amount, for live decisions; not part of findings. */
  readonly limit?: LimitFact;
}
