/** Why a guarded function was not run, and what is told of one that was run and is not recorded. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type { RecordedDecision } from '../policy/authorize.js';
import { type DecidingBound, describeLeft } from '../policy/deciding-bound.js';
import type { Appended } from '../writer/ledger.js';

/** The ledger's grants do not allow it; the function was not run. Its `code` is that of the decision, such as `METER_CAP_EXCEEDED`. */
export class DeniedError extends NorthrootError {
  /** The decision and where it is recorded. */
  readonly decision: RecordedDecision;
  /** The bound that decided, and what is left of it; undefined where it was none. */
  readonly bound: DecidingBound | undefined;

  constructor(toolName: string, decision: RecordedDecision) {
    const { decisionCode, reason = '', bound, recorded } = decision;
    const left = bound && describeLeft(bound);
    const rest = left === undefined ? '' : `; ${left}`;
    super(decisionCode, `${printable(toolName)} was denied: ${printable(reason, 400)}${rest}`, {
      hint:
        recorded.status === 'exists'
          ? `the request was allowed before, by the record of seq ${recorded.seq}: ask again with another request key`
          : `the record of seq ${recorded.seq} says why`,
    });
    this.name = 'DeniedError';
    this.decision = decision;
    this.bound = bound;
  }
}

/** How a guarded function ended: with a value, with an error, or not in time. */
export type GuardedOutcome =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'left' };

/**
 * The function was run, but its execution could not be recorded; why is the `cause`, whose `code` this has too. Its start stands in the
 * ledger and counts until it is settled.
 */
export class UnrecordedExecutionError extends NorthrootError {
  /** How the function ended, with what it returned or threw. */
  readonly outcome: GuardedOutcome;
  /** The execution event's draft, for `append` when the cause is gone. */
  readonly event: object;
  /** The start that it settles, `sha-256:…`. */
  readonly startId: string;

  constructor(startId: string, event: object, outcome: GuardedOutcome, cause: unknown) {
    const known = cause instanceof NorthrootError ? cause : undefined;
    const why = known?.message ?? String(cause);
    super(known?.code ?? 'INTERNAL_ERROR', `what was done is not recorded: ${why}`, {
      cause,
      hint: 'append the event of this error when the cause is gone',
    });
    this.name = 'UnrecordedExecutionError';
    this.startId = startId;
    this.event = event;
    this.outcome = outcome;
  }
}

/**
 * The execution was recorded, and breaks a bound; its `code` is that of the worst finding. Thrown only where `onViolation` is `throw`: the
 * function was run, and `outcome` has its result.
 */
export class ViolationError extends NorthrootError {
  /** What verification says of the execution, worst first. */
  readonly findings: readonly Finding[];
  /** Where the execution is recorded. */
  readonly recorded: Appended;
  /** How the function ended, with what it returned or threw. */
  readonly outcome: GuardedOutcome;

  constructor(findings: readonly Finding[], recorded: Appended, outcome: GuardedOutcome) {
    const worst = findings[0] as Finding;
    super(worst.code, `the execution is recorded and breaks a bound: ${describeFinding(worst)}`);
    this.name = 'ViolationError';
    this.findings = findings;
    this.recorded = recorded;
    this.outcome = outcome;
  }
}
