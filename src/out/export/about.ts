/** What an export says of itself: what was verified, what was not, and which part of the ledger it is. */

import type { ExportPass } from '../../log/read/write-records.js';
import { isWhole, type RecordSelection } from '../../rules/selection.js';

/** A name and its value; names are snake_case, and each comes once. */
export type AboutEntry = readonly [name: string, value: string];

/** What every export says of the ledger that it was made of. */
export function describeExport(
  { result, report, selected }: ExportPass,
  selection: RecordSelection = {},
): AboutEntry[] {
  const { ledger, trust, counts, checkpoints } = report;
  const late = Object.values(result.ending.uncovered).reduce((all, n) => all + n, 0);
  const entries: (readonly [string, string | number | boolean | null | undefined])[] = [
    ['tool', report.tool.name],
    ['tool_version', report.tool.version],
    ['verdict', report.verdict],
    ['origin', ledger.origin],
    ['records', ledger.records],
    ['tree_size', ledger.tree_size],
    ['root', ledger.root],
    ['tip_event_id', ledger.tip_event_id],
    ['trust', trust.mode],
    ['sealed_tree_size', checkpoints.last_tree_size],
    ['records_ok', counts.by_verdict.ok],
    ['records_denied', counts.by_verdict.denied],
    ['records_violation', counts.by_verdict.violation],
    ['records_invalid', counts.by_verdict.invalid],
    ['records_invalid_only_at_end', late],
    ['findings', report.findings_total],
    ['is_selection', !isWhole(selection)],
    ['selected_records', selected],
    ['selected_since', selection.since],
    ['selected_until', selection.until],
    ['selected_principal', selection.principal],
    ['selected_tool', selection.tool],
    ['selected_grant', selection.grantId],
    ['selected_events', selection.eventIds?.size],
    ['not_checked', report.not_checked.map(({ code }) => code).join(' ')],
  ];
  return entries.flatMap(([name, value]) =>
    value === undefined || value === null ? [] : [[name, String(value)] as const],
  );
}
