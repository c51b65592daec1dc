/** What an activity report does not say, or counts in a way that its reader has to know: beside what was not checked. */

import type { ActivityReport, NotChecked } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { MAX_GROUPS } from './groups.js';

/** The most entries of each list of a report. */
export const MAX_LISTED = 100;

/** What only the collector knows. */
export interface Collected {
  readonly report: LazyReport;
  /** Records that are in no selection, as they cannot be read or are not well-formed. */
  readonly unread: number;
  /** Checkpoints of the user, or that the ledger is published with, that the ledger does not extend. */
  readonly brokenAnchors: number;
  /** Records of which only the end of the ledger shows that they are invalid. */
  readonly late: number;
  readonly decisionsBeyond: number;
  readonly grantsBeyond: boolean;
  /** Grants that are not listed, as the amounts are too long together. */
  readonly grantsCut: number;
  /** Amounts that are in no sum of their group, or of the grants above it. */
  readonly groupAmountsLeftOut: number;
  /** Amounts that are not in what grants say was used under those delegated from them. */
  readonly delegatedLeftOut: number;
  readonly principalsBeyond: boolean;
  /** Records of further types that state amounts and are no executions. */
  readonly evidenceBeyond: number;
}

/** Codes that only groups bring. */
const OF_GROUPS = [
  'GROUPS_BEYOND',
  'GROUP_AMOUNTS_LEFT_OUT',
  'ADJUSTMENTS_BY_PRINCIPAL',
  'ADJUSTMENTS_BY_TOOL',
  'LATE_VERDICTS',
];

/** A report without its groups, as if none had been requested. Groups by day stay. */
export function withoutGroups(activity: ActivityReport): ActivityReport {
  const { by, limits } = activity;
  if (by === undefined || by === 'day') return activity;
  const { is_whole: isWhole, principal, tool } = activity.selection;
  const stays = (code: string): boolean =>
    (code === 'ADJUSTMENTS_BY_PRINCIPAL' && principal !== undefined && tool === undefined) ||
    (code === 'ADJUSTMENTS_BY_TOOL' && tool !== undefined) ||
    (code === 'LATE_VERDICTS' && !isWhole);
  const plain = {
    ...activity,
    limits: limits.filter(({ code }) => !OF_GROUPS.includes(code) || stays(code)),
  };
  delete plain.by;
  delete plain.groups;
  delete plain.others;
  return plain;
}

/** Most important first. */
export function listLimits(activity: Omit<ActivityReport, 'limits'>, collected: Collected): NotChecked[] {
  const { report, unread, brokenAnchors, late, decisionsBeyond } = collected;
  const { grantsBeyond, grantsCut, groupAmountsLeftOut, delegatedLeftOut, principalsBeyond } = collected;
  const { evidenceBeyond } = collected;
  const { selection, totals, by, groups = [], others } = activity;
  const list: NotChecked[] = [];
  const add = (when: boolean, code: string, message: string): void => {
    if (when) list.push({ code, message });
  };
  const { executions, uncounted, amounts_left_out: leftOut = 0 } = totals;
  const outside = {
    invalid: report.counts.by_verdict.invalid - totals.verdicts.invalid,
    violation: report.counts.by_verdict.violation - totals.verdicts.violation,
  };
  add(
    true,
    'RECORDED_ONLY',
    'a ledger shows what was recorded in it: what was done and not recorded is not here',
  );
  add(
    brokenAnchors > 0,
    'NOT_EXTENDED',
    `checkpoints kept elsewhere that the ledger does not extend, so that records were cut off, changed or left out: ${brokenAnchors}`,
  );
  add(
    !selection.is_whole,
    'SELECTION',
    `this is a part of the ledger, ${totals.records} of ${report.ledger.records} records; the verdict, and the caps, use and rest of each grant, are those of the whole ledger`,
  );
  add(
    !selection.is_whole && outside.invalid + outside.violation > 0,
    'ELSEWHERE',
    `records outside this part that are invalid: ${outside.invalid}; in violation: ${outside.violation}`,
  );
  add(
    unread > 0,
    'UNREADABLE',
    `records outside this part that cannot be read or are not well-formed, so that nobody can say whether they belong to it: ${unread}`,
  );
  add(
    uncounted > 0,
    'UNCOUNTED',
    `records that cannot be read, are not well-formed, or repeat an event, and so are in no sum: ${uncounted}`,
  );
  add(
    totals.meters.some((meter) => meter.in_invalid !== undefined),
    'INVALID_COUNTED',
    'what invalid records say that they used is counted, as in the accounts of the grants, so that nothing is hidden by breaking a record; a credit by an invalid record is not',
  );
  add(
    executions.unauthorized > 0,
    'UNAUTHORIZED_COUNTED',
    `executions that nothing authorized, whose use is counted here and in no account of a grant: ${executions.unauthorized}`,
  );
  add(
    late > 0 && !(selection.is_whole && by === undefined),
    'LATE_VERDICTS',
    `records that only the end of the ledger shows to be invalid, and that are counted here by what they were when they were read: ${late}`,
  );
  add(
    selection.until !== undefined,
    'OPEN_AT_THE_END',
    'what is open or reserved is so at the end of the ledger, not at the end of the period',
  );
  add(
    selection.since !== undefined || selection.until !== undefined || by === 'day',
    'TIMES',
    'periods and days (UTC) go by the time at which each record says that it occurred, which its writer set',
  );
  add(
    selection.tool !== undefined || by === 'tool',
    'ADJUSTMENTS_BY_TOOL',
    selection.tool === undefined
      ? 'an adjustment is with the tool of the execution that it corrects; one that names none is with what has no tool'
      : 'an adjustment is in this part where it names the execution that it corrects',
  );
  add(
    (selection.principal !== undefined || by === 'principal') && selection.tool === undefined,
    'ADJUSTMENTS_BY_PRINCIPAL',
    'an adjustment is counted for the principal of the execution that it corrects, or else of the grant, whoever made it',
  );
  add(
    others !== undefined,
    'GROUPS_BEYOND',
    `more than ${groups.length} groups: what came after is summed together`,
  );
  add(
    leftOut > 0,
    'AMOUNTS_LEFT_OUT',
    `amounts that are in no sum, as there are too many units, a sum would have had too long a denominator, or too many sums are long: ${leftOut}`,
  );
  add(
    groupAmountsLeftOut > 0,
    'GROUP_AMOUNTS_LEFT_OUT',
    `amounts that are in no sum of their group, or of the grants above it, for the same reasons: ${groupAmountsLeftOut}`,
  );
  add(
    delegatedLeftOut > 0,
    'DELEGATED_LEFT_OUT',
    `amounts that are not in what is listed of a grant as used under those delegated from it, as the sum would have had too long a denominator: ${delegatedLeftOut}`,
  );
  add(
    principalsBeyond,
    'PRINCIPALS_BEYOND',
    `more than ${MAX_GROUPS} principals ran something: the rest are not counted among them`,
  );
  const { evidence = [] } = activity;
  add(
    evidence.length > 0,
    'EVIDENCE_NOT_ACCOUNTED',
    `records that state amounts and are no executions, as imports keep what other systems logged: what they say is told apart, and is in no sum and no account: ${evidence.reduce((all, { records }) => all + records, 0)}`,
  );
  const evidenceLeftOut = evidence.reduce((all, { left_out: n = 0 }) => all + n, 0);
  add(
    evidenceBeyond > 0 || evidenceLeftOut > 0,
    'EVIDENCE_LEFT_OUT',
    `amounts of such records that are not told of, as they have too many names or a sum would have had too long a denominator: ${evidenceLeftOut}; records of further types: ${evidenceBeyond}`,
  );
  add(grantsBeyond, 'GRANTS_BEYOND', `more than ${MAX_GROUPS} grants: the rest are not listed`);
  add(
    grantsCut > 0,
    'GRANTS_CUT',
    `grants that are not listed, as the amounts of all are too long together: ${grantsCut}`,
  );
  add(
    decisionsBeyond > 0,
    'DECISIONS_BEYOND',
    `decisions by further policies and codes, not told apart: ${decisionsBeyond}`,
  );
  const cut = [
    ['denied requests', activity.denied.length, totals.grants.denied + totals.actions.denied],
    ['blocked attempts', activity.blocked.length, executions.blocked],
    ['open authorizations', activity.open.length, totals.open.authorizations],
    ['starts', activity.starts.length, totals.open.starts],
    ['adjustments', activity.adjustments.length, totals.adjustments.credits + totals.adjustments.debits],
  ] as const;
  for (const [what, listed, total] of cut) {
    add(listed < total, 'LIST_CUT', `of ${total} ${what} the first ${listed} are listed`);
  }
  return list;
}
