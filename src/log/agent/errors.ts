/** Errors of guarded calls. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { Finding } from '../../format/finding/finding.js';
import { describeFinding } from '../../format/finding/words.js';
import type { RecordedDecision } from '../policy/authorize.js';
import { type DecidingBound, describeLeft } from '../policy/deciding-bound.js';
import type { Appended } from '../writer/ledger.js';

/** The ledger's grants deny the call; the function was not run. `code` is that of the decision, such as `METER_CAP_EXCEEDED`. */
export class DeniedError extends NorthrootError {
  readonly decision: RecordedDecision;
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

export type GuardedOutcome =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'left' };

/** The function ran, but its execution could not be recorded: see `cause`, whose `code` this has. The start counts until it is settled. */
export class UnrecordedExecutionError extends NorthrootError {
  /** The function's result. */
  readonly outcome: GuardedOutcome;
  /** The execution event's draft, to `append` when the cause is gone. */
  readonly event: object;
  /** The start to settle, `sha-256:…`. */
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

/** The recorded execution breaks a bound; `code` is that of the worst finding. Thrown only where `onViolation` is `throw`. */
export class ViolationError extends NorthrootError {
  /** Worst first. */
  readonly findings: readonly Finding[];
  readonly recorded: Appended;
  /** The function's result. */
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
