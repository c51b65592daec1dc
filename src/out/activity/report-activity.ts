/** The front door to the activity report: a ledger in, what was spent, allowed and refused in it out. */

import { checkOptions, type OptionTypes } from '../../base/options.js';
import type { ActivityReport } from '../../format/schema/generated/types.js';
import { type LedgerInput, openVerifiable } from '../../log/read/verify-ledger.js';
import { idsOf, type Sample } from '../../log/read/draw-sample.js';
import { EXPORT_OPTIONS, type ExportOptions } from '../../log/read/write-records.js';
import { runVerification } from '../../rules/verify/run-verification.js';
import { isWhole } from '../../rules/selection.js';
import { BillComparison } from './bill/compare-bill.js';
import type { Bill } from './bill/read-bill.js';
import { ActivityCollector } from './collect.js';
import { ACTIVITY_GROUPINGS, type ActivityGrouping } from './groups.js';

/** How a ledger is verified for the report, which records are summed, and by what. */
export interface ActivityOptions extends ExportOptions {
  /** Default: no groups. */
  readonly by?: ActivityGrouping | undefined;
  /** From `drawSample`: only these executions, of those that are selected. */
  readonly sample?: Sample | undefined;
  /** From `readBill`: what of it the ledger explains. Not with `selection` or `sample`, which leave executions out. */
  readonly bill?: Bill | undefined;
  /** With `bill`: only executions of this provider, as their `provider` has it, explain something. */
  readonly billProvider?: string | undefined;
}

const OPTIONS: OptionTypes<ActivityOptions> = {
  ...EXPORT_OPTIONS,
  by: 'string',
  sample: 'object',
  bill: 'object',
  billProvider: 'string',
};

/**
 * Verifies a whole ledger, and adds up what was spent, allowed, refused and left open in the part of it that is selected. Sums are
 * exact, of all units, capped or not.
 *
 * @example
 * ```ts
 * const report = await reportActivity('ledger.jsonl', { selection: { principal: 'agent:a1' }, by: 'day' });
 * for (const { unit, spent } of report.totals.meters) console.log(unit, spent);
 * ```
 * @throws TypeError, RangeError and NorthrootError as `verifyLedger`; RangeError for a grouping that is not known.
 */
export async function reportActivity(
  ledger: LedgerInput,
  given: ActivityOptions = {},
): Promise<ActivityReport> {
  checkOptions('reportActivity', given, OPTIONS);
  const { by, sample, bill, billProvider, selection: asked, ...options } = given;
  const selection = sample === undefined ? asked : { ...asked, eventIds: idsOf(sample) };
  if (by !== undefined && !ACTIVITY_GROUPINGS.includes(by))
    throw new RangeError(`by: expected ${ACTIVITY_GROUPINGS.join(', ')}`);
  if (bill !== undefined && (sample !== undefined || !isWhole(asked ?? {})))
    throw new RangeError('bill: expected no selection and no sample, as a bill is of all executions');
  const comparison = bill && new BillComparison(bill, billProvider);
  const collector = new ActivityCollector(selection, by, sample);
  const result = await runVerification(await openVerifiable('reportActivity', ledger), {
    ...options,
    onRecord: (record) => {
      collector.take(record);
      comparison?.take(record);
      return undefined;
    },
  });
  const report = collector.finish(result);
  return comparison === undefined ? report : { ...report, bill: comparison.finish() };
}
