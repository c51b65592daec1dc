/** The activity report as CSV: a row for each unit of each group, or of all records. */

import type { ActivityMeter, ActivityReport, ActivityTotals } from '../../format/schema/generated/types.js';
import { csvRow } from '../export/table/csv.js';

const COLUMNS = [
  ...['group_by', 'group', 'scope', 'unit', 'spent', 'used', 'debited', 'credited'],
  ...[
    'measured',
    'reported',
    'estimated',
    'billed',
    'unstated',
    'unauthorized',
    'in_violation',
    'in_invalid',
  ],
  ...['reserved', 'executions', 'failed', 'denied', 'blocked', 'released', 'open'],
  ...['records_violation', 'records_invalid', 'ledger_verdict', 'ledger_records', 'selected_records'],
  ...['not_checked', 'limits', 'stated'],
];

/**
 * The report as CSV (RFC 4180), with a heading; amounts are exact. `scope` is `all`, `group`, `others`, `with_delegated` (a grant with
 * those delegated from it: such rows MUST NOT be added up), `bill` (`spent` is what executions explain, `stated` what was billed) or `evidence` (its type is the group, its name the unit, its amount is in
 * `stated`). Records without an amount have a row without a unit.
 */
export function renderActivityCsv(report: ActivityReport): string {
  const { by = '', groups = [], others, totals, bill, evidence = [] } = report;
  const about = [
    report.verdict,
    report.ledger.records,
    report.selection.records,
    report.not_checked.map(({ code }) => code).join(' '),
    report.limits.map(({ code }) => code).join(' '),
  ];
  const rows = (
    group: string,
    scope: string,
    counts: ActivityTotals | undefined,
    meters: readonly ActivityMeter[],
  ): string =>
    (meters.length === 0 ? [undefined] : meters)
      .map((meter) => csvRow([by, group, scope, ...meterFields(meter), ...countFields(counts), ...about, '']))
      .join('');
  const empty = [...meterFields(undefined), ...countFields(undefined)].slice(1);
  return [
    csvRow(COLUMNS),
    rows('', 'all', totals, totals.meters),
    ...groups.map(
      ({ key, totals: own, with_delegated: all }) =>
        rows(key ?? '', 'group', own, own.meters) +
        (all === undefined ? '' : rows(key ?? '', 'with_delegated', undefined, all)),
    ),
    ...(others === undefined ? [] : [rows('', 'others', others, others.meters)]),
    ...(bill?.rows ?? []).map(({ day, model, unit, billed, explained }) =>
      csvRow([
        'bill',
        `${day} ${model ?? ''}`.trim(),
        'bill',
        unit,
        explained,
        ...empty.slice(1),
        ...about,
        billed,
      ]),
    ),
    ...evidence.flatMap(({ event_type: type, amounts }) =>
      amounts.map(({ name, amount }) =>
        csvRow(['event_type', type, 'evidence', name, ...empty, ...about, amount]),
      ),
    ),
  ].join('');
}

function meterFields(meter: ActivityMeter | undefined): string[] {
  if (meter === undefined) return Array.from({ length: 14 }, () => '');
  const { unit, spent, used, debited, credited, basis, reserved } = meter;
  const { measured = '0', reported = '0', estimated = '0', billed = '0', unstated = '0' } = basis;
  const { unauthorized = '0', in_violation: violation = '0', in_invalid: invalid = '0' } = meter;
  return [
    ...[unit, spent, used, debited, credited],
    ...[measured, reported, estimated, billed, unstated],
    ...[unauthorized, violation, invalid, reserved],
  ];
}

function countFields(counts: ActivityTotals | undefined): (string | number)[] {
  if (counts === undefined) return Array.from({ length: 8 }, () => '');
  const { grants, actions, executions, open, verdicts } = counts;
  const { success, failure, unknown, blocked, released } = executions;
  return [
    success + failure + unknown,
    failure,
    grants.denied + actions.denied,
    blocked,
    released,
    open.authorizations,
    verdicts.violation,
    verdicts.invalid,
  ];
}
