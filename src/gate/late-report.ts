/**
 * What is reported of a call after it was settled as unknown. An action has one execution (SPEC §8 rule 2), so that the report is an event
 * of its own, and what was used beyond what was charged is a debit. Nothing is given back: nobody refunds itself (rule 11).
 */

import { parseDigest } from '../base/value/digest.js';
import type { AmountsByUnit, MeterVector } from '../base/value/meter.js';
import { formatQuantity, toRational } from '../base/value/quantity.js';
import { compareRationals, subtractRationals } from '../base/value/rational.js';
import type { LiveLedger } from '../log/agent/live-ledger.js';
import { draftAdjustment } from '../log/policy/draft-adjustment.js';
import { draftExecution, type ExecutionOutcome, type Permission } from '../log/policy/record.js';
import type { Appended } from '../log/writer/ledger.js';
import type { AskOptions } from '../log/writer/withdrawal.js';
import { sumQuantity } from '../rules/bounds/balance.js';

export const LATE_REPORT_TYPE = 'x.northroot.late_report';
const REASON = 'LATE_REPORT';

export interface LateReport {
  readonly permission: Permission;
  /** The grant that it counts under. */
  readonly grantId: string | undefined;
  readonly outcome: ExecutionOutcome;
  /** What the settlement charged. */
  readonly charged: MeterVector;
  /** The execution that settled it, `sha-256:…`. */
  readonly settlement: string;
}

/**
 * Records a report that came late: as its own event, shaped as an execution, that follows the settlement.
 * @returns That event
 * @throws as `LiveLedger.append`
 */
export async function recordLate(
  ledger: LiveLedger,
  { permission, grantId, outcome, charged, settlement }: LateReport,
  options: AskOptions,
): Promise<Appended> {
  const report = {
    ...draftExecution(permission, outcome),
    event_type: LATE_REPORT_TYPE,
    prev_event_id: parseDigest(settlement),
  };
  const debit =
    grantId === undefined ? {} : await beyond(ledger, grantId, outcome.meterUsed, charged, options);
  const debits =
    grantId === undefined || Object.keys(debit).length === 0
      ? []
      : [
          draftAdjustment({
            grantId,
            debit,
            reason: REASON,
            executionId: settlement,
            principalId: permission.principalId,
            meterBasis: outcome.meterBasis ?? 'reported',
          }),
        ];
  // Both wait together, and are one write.
  const [recorded] = await Promise.all([
    ledger.append({ event: report }, options),
    ...debits.map((event) => ledger.append({ event })),
  ]);
  return recorded;
}

/** What was used of the grant's units beyond what was charged. */
async function beyond(
  ledger: LiveLedger,
  grantId: string,
  used: MeterVector,
  charged: MeterVector,
  options: AskOptions,
): Promise<AmountsByUnit> {
  const { balances } = await ledger.budget(grantId, options);
  const capped = new Set(balances.map(({ unit }) => unit));
  const paid = new Map(charged.map(({ unit, amount }) => [unit, toRational(amount)]));
  return Object.fromEntries(
    used.flatMap(({ unit, amount }) => {
      const [all, before] = [toRational(amount), paid.get(unit) ?? { n: 0n, d: 1n }];
      if (!capped.has(unit) || compareRationals(all, before) <= 0) return [];
      return [[unit, formatQuantity(sumQuantity(subtractRationals(all, before)))]];
    }),
  );
}
