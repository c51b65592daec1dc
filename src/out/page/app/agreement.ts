/** Whether what the browser found is what the exporter reported. */

import type { ReportJson } from '../../../format/schema/generated/types.js';
import type { Report } from '../../../rules/report/report.js';

/** One thing that the two reports say differently. */
interface Difference {
  readonly what: string;
  readonly own: string;
  readonly exporter: string;
}

/** The two say the same; they differ; or they are about other things. */
export type Agreement =
  | { readonly kind: 'same' }
  | { readonly kind: 'differs'; readonly differences: readonly Difference[] }
  | { readonly kind: 'other' };

/** Holds the whole of both reports against each other, but for the versions that made them. */
export function compareReports(own: Report, exporter: ReportJson): Agreement {
  if (!isReport(exporter))
    return {
      kind: 'differs',
      differences: [{ what: 'Report', own: 'what stands here', exporter: 'nothing that can be read' }],
    };
  const differences: Difference[] = [];
  const differ = (what: string, a: unknown, b: unknown): void => {
    if (a !== b) differences.push({ what, own: String(a), exporter: String(b) });
  };
  differ('Verdict', own.verdict, exporter.verdict);
  differ('Records', own.ledger.records, exporter.ledger.records);
  differ('Root of the tree', own.ledger.root, exporter.ledger.root);
  differ('Findings', own.findings_total, exporter.findings_total);
  if (differences.length === 0 && plain(own) !== plain(exporter))
    differences.push({ what: 'Details of the report', own: 'others', exporter: 'some' });
  return differences.length === 0 ? { kind: 'same' } : { kind: 'differs', differences };
}

/** Whoever changed the page may have left anything there. */
function isReport(report: unknown): report is ReportJson {
  const { ledger } = (report ?? {}) as { readonly ledger?: unknown };
  return typeof ledger === 'object' && ledger !== null;
}

function plain(report: ReportJson): string {
  return JSON.stringify({ ...report, tool: undefined });
}
