/**
 * `northroot/export`: what is made of a verified ledger for those who have other tools. `northroot` exports all of
 * this too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Which records are meant
export { type RecordSelection } from '../rules/selection.js';
export type { UnmatchedName } from '../log/read/subject.js';
export { type ExportOptions, type ExportPass } from '../log/read/write-records.js';

// Events in envelopes
export { exportDsse, type DsseExport } from '../out/export/dsse.js';

// COSE receipts of many records
export {
  exportReceipts,
  type ReceiptsExport,
  type ReceiptsOptions,
  type RecordReceipt,
} from '../out/export/receipts.js';

// Bundles: records with what proves them, in one file
export {
  type Bundle,
  type BundledRecord,
  type BundleFile,
  type Stretch,
} from '../proof/bundle/bundle-file.js';
export { attachContents, listNamedDigests } from '../proof/bundle/disclose.js';
export { exportBundle, type BundleExport, type BundleOptions } from '../proof/bundle/export-bundle.js';
export {
  verifyBundle,
  verifyParentBundle,
  type ParentBundle,
  type VerifyBundleOptions,
} from '../proof/bundle/verify-bundle.js';

// Statements: what verification found, signed for supply-chain tools
export {
  makeStatement,
  type MadeStatement,
  type StatementOptions,
} from '../proof/statement/export-statement.js';
export type { LedgerStatement } from '../proof/statement/statement.js';
export {
  verifyStatement,
  type StatementResult,
  type VerifyStatementOptions,
} from '../proof/statement/verify-statement.js';

// Northroot journals (.nrj)
export { exportJournal, type JournalExport } from '../out/export/journal/export-journal.js';
export { readJournal, type JournalFrame, type JournalMode } from '../out/export/journal/journal-file.js';

// The page
export { exportPage, type PageExport, type PageOptions } from '../out/page/export-page.js';

// Rows for spreadsheets, databases and finance
export { exportCsv, type CsvSinks, type TableExport } from '../out/export/table/csv-tables.js';
export {
  exportFocus,
  type FocusExport,
  type FocusOptions,
  type FocusSinks,
} from '../out/export/table/focus.js';
export { exportParquet, type ParquetSinks } from '../out/export/table/parquet-tables.js';

// Events for SIEMs and spans for tracing
export { exportOcsf, type OcsfExport } from '../out/export/telemetry/ocsf.js';
export { exportOtlp, type OtlpExport } from '../out/export/telemetry/otlp.js';

// A fleet of ledgers
export { renderFleet } from '../out/text/fleet.js';

// What was spent, allowed and refused
export { type ActivityGrouping } from '../out/activity/groups.js';
export { readBill, type Bill, type BilledAmount, type BillKind } from '../out/activity/bill/read-bill.js';
export { reportActivity, type ActivityOptions } from '../out/activity/report-activity.js';
export { renderActivityCsv } from '../out/activity/csv.js';
export { renderActivityHtml } from '../out/text/activity-html.js';
export { renderRequest, type RequestGuide } from '../out/text/request.js';
export { renderActivity, renderActivityMarkdown } from '../out/text/activity-document.js';
export type { ActivityReport } from '../format/schema/generated/types.js';
export { requireChecks, type NotCheckedCode } from '../rules/report/not-checked.js';

// Reports for CI: SARIF, JUnit, annotations, Code Quality, summaries; what is acknowledged
export {
  decideExitStatus,
  parseBaseline,
  type Allowance,
  type Baseline,
  type FailOn,
  type NewFindings,
} from '../out/ci/baseline.js';
export { type AnnotationOptions } from '../out/ci/ci-words.js';
export { renderGithub } from '../out/ci/github.js';
export { renderGitlab } from '../out/ci/gitlab.js';
export { renderJunit, type JunitOptions } from '../out/ci/junit.js';
export { renderMarkdown } from '../out/ci/markdown.js';
export { writeSarif, type SarifOptions } from '../out/ci/sarif.js';
