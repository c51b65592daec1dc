/** Counts and sums of one group of records. */

import type { ActivityTotals } from '../../format/schema/generated/types.js';
import { type SumBudget, Sums } from './sums.js';

/** The caller increments the counts. */
export class Totals {
  records = 0;
  readonly verdicts = { ok: 0, denied: 0, violation: 0, invalid: 0 };
  uncounted = 0;
  readonly grants = { allowed: 0, denied: 0 };
  readonly actions = { allowed: 0, denied: 0 };
  readonly executions = { success: 0, failure: 0, unknown: 0, unauthorized: 0, blocked: 0, released: 0 };
  /** Executions whose outcome was unknown, and that were reported later. */
  reportedLate = 0;
  readonly adjustments = { credits: 0, debits: 0, refused: 0 };
  readonly approvals = { approved: 0, rejected: 0, used: 0 };
  readonly revocations = { revoked: 0, suspended: 0, resumed: 0, refused: 0 };
  readonly open = { authorizations: 0, starts: 0 };
  readonly sums: Sums;

  constructor(budget: SumBudget) {
    this.sums = new Sums(budget);
  }

  toJson(): ActivityTotals {
    const { records, verdicts, uncounted, grants, actions, executions, adjustments, open, sums } = this;
    const { approvals, revocations } = this;
    return {
      records,
      verdicts: { ...verdicts },
      uncounted,
      grants: { ...grants },
      actions: { ...actions },
      executions: {
        ...executions,
        ...(this.reportedLate === 0 ? {} : { reported_late: this.reportedLate }),
      },
      adjustments: { ...adjustments },
      approvals: { ...approvals },
      revocations: { ...revocations },
      open: { ...open },
      meters: sums.list(),
      ...(sums.leftOut === 0 ? {} : { amounts_left_out: sums.leftOut }),
    };
  }
}
