/** What an activity report does not say, or counts in a way that its reader has to know: beside what was not checked. */

import type { ActivityReport, NotChecked } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { MAX_GROUPS } from './groups.js';

/** The most entries of each list of a report. */
export const MAX_LISTED = 100;

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
];

/** A report without its groups, as if none had been requested. Groups by day stay. */
export function withoutGroups(activity: ActivityReport): ActivityReport {
  const { by, limits } = activity;
  if (by === undefined || by === 'day') return activity;
  const { principal, tool } = activity.selection;
  const stays = (code: string): boolean =>
    (code === 'ADJUSTMENTS_BY_PRINCIPAL' && principal !== undefined && tool === undefined) ||
    (code === 'ADJUSTMENTS_BY_TOOL' && tool !== undefined);
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
  const { report, unread, brokenAnchors, late, decisionsBeyond, grantsCut } = collected;
  const { selection, totals, by, groups = [], others, evidence = [] } = activity;
  const { since, until, principal, tool, is_whole: isWhole } = selection;
  const { executions, uncounted, amounts_left_out: leftOut = 0 } = totals;
  const list: NotChecked[] = [];
  const add = (applies: boolean, code: string, message: string): void => {
    if (applies) list.push({ code, message });
  };
  const addCount = (n: number, code: string, what: string): void => add(n > 0, code, `${what}: ${n}`);
  const { invalid, violation } = report.counts.by_verdict;
  const outside = {
    invalid: invalid - totals.verdicts.invalid,
    violation: violation - totals.verdicts.violation,
  };
  const evidenceRecords = evidence.reduce((all, { records }) => all + records, 0);
  const evidenceLeftOut = evidence.reduce((all, { left_out: n = 0 }) => all + n, 0);
  const evidenceBeyond = collected.evidenceBeyond;
  add(
    true,
    'RECORDED_ONLY',
    'a ledger shows what was recorded in it, and not what was done without a record',
  );
  addCount(
    brokenAnchors,
    'NOT_EXTENDED',
    'held checkpoints that the ledger does not extend, so that records were cut off, changed or left out',
  );
  const part = `${totals.records} of ${report.ledger.records} records`;
  add(
    !isWhole,
    'SELECTION',
    `this is a part of the ledger, ${part}; the verdict, and the caps, use and rest of grants, are those of the whole ledger`,
  );
  const elsewhere = `records outside this part that are invalid: ${outside.invalid}; in violation: ${outside.violation}`;
  add(!isWhole && outside.invalid + outside.violation > 0, 'ELSEWHERE', elsewhere);
  addCount(
    unread,
    'UNREADABLE',
    'records outside this part that are unreadable or not well-formed, and may belong to it',
  );
  addCount(
    uncounted,
    'UNCOUNTED',
    'records that are unreadable, not well-formed or repeat an event, and are in no sum',
  );
  add(
    totals.meters.some((meter) => meter.in_invalid !== undefined),
    'INVALID_COUNTED',
    'use stated by invalid records is counted, as in the accounts of grants, so that breaking a record hides nothing; credits of invalid records are not',
  );
  addCount(
    executions.unauthorized,
    'UNAUTHORIZED_COUNTED',
    'executions without an authorization, whose use is counted here and in no account of a grant',
  );
  addCount(
    late,
    'LATE_VERDICTS',
    'records that only the end of the ledger shows to be invalid, and that sums count as they were when they were read',
  );
  const atEnd = 'what is open or reserved is so at the end of the ledger, not at the end of the period';
  add(until !== undefined, 'OPEN_AT_THE_END', atEnd);
  add(
    since !== undefined || until !== undefined || by === 'day',
    'TIMES',
    'periods and days (UTC) go by the time that each record states, which its writer set',
  );
  add(
    tool !== undefined || by === 'tool',
    'ADJUSTMENTS_BY_TOOL',
    tool === undefined
      ? 'an adjustment is with the tool of the execution that it corrects, or without a tool if it names none'
      : 'an adjustment is in this part if it names the execution that it corrects',
  );
  add(
    (principal !== undefined || by === 'principal') && tool === undefined,
    'ADJUSTMENTS_BY_PRINCIPAL',
    'an adjustment counts for the principal of the execution that it corrects, or else of the grant, not for its author',
  );
  const rest = `more than ${groups.length} groups: the others are summed together`;
  add(others !== undefined, 'GROUPS_BEYOND', rest);
  addCount(
    leftOut,
    'AMOUNTS_LEFT_OUT',
    'amounts that are in no sum: there are too many units, a denominator would be too long, or too many sums are long',
  );
  addCount(
    collected.groupAmountsLeftOut,
    'GROUP_AMOUNTS_LEFT_OUT',
    'amounts that are in no sum of their group, or of the grants above it, for the same reasons',
  );
  addCount(
    collected.delegatedLeftOut,
    'DELEGATED_LEFT_OUT',
    'amounts that are not in the delegated use of a grant: the denominator would be too long',
  );
  const ran = `more than ${MAX_GROUPS} principals ran something: the others are not counted among them`;
  add(collected.principalsBeyond, 'PRINCIPALS_BEYOND', ran);
  addCount(
    evidenceRecords,
    'EVIDENCE_NOT_ACCOUNTED',
    'records that state amounts and are no executions, such as imported logs; they are listed separately, and are in no sum and no account',
  );
  const dropped = `amounts of such records that are not listed, for too many names or too long a denominator: ${evidenceLeftOut}; records of further types: ${evidenceBeyond}`;
  add(evidenceBeyond + evidenceLeftOut > 0, 'EVIDENCE_LEFT_OUT', dropped);
  add(collected.grantsBeyond, 'GRANTS_BEYOND', `more than ${MAX_GROUPS} grants: the others are not listed`);
  addCount(
    grantsCut,
    'GRANTS_CUT',
    'grants that are not listed, as the amounts of all are too long together',
  );
  addCount(decisionsBeyond, 'DECISIONS_BEYOND', 'decisions by further policies and codes, not listed');
  const { revoked, suspended, resumed } = totals.revocations;
  const cut = [
    ['denied requests', activity.denied.length, totals.grants.denied + totals.actions.denied],
    ['blocked attempts', activity.blocked.length, executions.blocked],
    ['open authorizations', activity.open.length, totals.open.authorizations],
    ['starts', activity.starts.length, totals.open.starts],
    ['approvals', activity.approvals.length, totals.approvals.approved + totals.approvals.rejected],
    ['revocations', activity.revocations.length, revoked + suspended + resumed],
    ['adjustments', activity.adjustments.length, totals.adjustments.credits + totals.adjustments.debits],
  ] as const;
  for (const [what, listed, total] of cut)
    add(listed < total, 'LIST_CUT', `of ${total} ${what} the first ${listed} are listed`);
  return list;
}
