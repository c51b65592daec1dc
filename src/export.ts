/**
 * `northroot/export`: what is made of a verified ledger for those who have other tools. Everything here is exported by `northroot`
 * too.
 */

export { NorthrootError, type NorthrootErrorOptions } from './error.js';

// Which records are meant
export {
  isSelected,
  isWhole,
  matchesSelection,
  type RecordSelection,
  type SelectableEvent,
} from './export/selection.js';
export type { UnmatchedName } from './export/unmatched.js';
export { type ExportOptions, type ExportPass } from './export/write-records.js';

// Events in envelopes
export { exportDsse, type DsseExport } from './export/dsse.js';

// COSE receipts of many records
export {
  exportReceipts,
  type ReceiptsExport,
  type ReceiptsOptions,
  type RecordReceipt,
} from './export/receipts.js';

// Bundles: records with what proves them, in one file
export { BUNDLE_START_BYTES, isBundle } from './bundle/bundle-start.js';
export {
  BUNDLE_CONTENT_TYPE,
  decodeBundle,
  MAX_BUNDLE_BYTES,
  type Bundle,
  type BundleDecoded,
  type BundledRecord,
  type BundleFile,
  type Stretch,
} from './bundle/bundle-file.js';
export {
  digestOf,
  formsOfContent,
  isSalted,
  listDigests,
  type ContentForm,
  type NamedDigest,
} from './bundle/contents.js';
export { attachContents, findContent, type ContentPlace, type FoundContent } from './bundle/disclose.js';
export { exportBundle, type BundleExport, type BundleOptions } from './bundle/export-bundle.js';
export { verifyBundle, type VerifyBundleOptions } from './bundle/verify-bundle.js';
export { renderBundleResult } from './text/bundle-result.js';

// Statements: what verification found, signed for supply-chain tools
export {
  hashLedger,
  makeStatement,
  type MadeStatement,
  type StatementOptions,
} from './statement/export-statement.js';
export {
  STATEMENT_PAYLOAD_TYPE,
  STATEMENT_TYPE,
  VSA_TYPE,
  type DigestSet,
  type LedgerStatement,
  type ResourceDescriptor,
  type StatementExtension,
  type VerificationSummary,
} from './statement/statement.js';
export {
  isStatement,
  MAX_STATEMENT_BYTES,
  verifyStatement,
  type StatementResult,
  type VerifyStatementOptions,
} from './statement/verify-statement.js';
export { renderStatementResult } from './text/proof-result.js';

// Northroot journals (.nrj)
export { exportJournal, type JournalExport } from './journal/export-journal.js';
export { parseJournalEvent, toJournalPayload, type JournalEvent } from './journal/journal-event.js';
export {
  formatJournalFrame,
  formatJournalHeader,
  isJournal,
  JOURNAL_START_BYTES,
  MAX_JOURNAL_EVENT_BYTES,
  readJournal,
  type JournalFrame,
  type JournalMode,
} from './journal/journal-file.js';

// The page
export { exportPage, type PageExport, type PageOptions } from './page/export-page.js';
// Rows for spreadsheets, databases and finance
export { describeExport, type AboutEntry } from './export/about.js';
export { exportCsv, verificationCsv, type CsvSinks, type TableExport } from './table/csv-tables.js';
export { currencyOf } from './table/currencies.js';
export {
  exportFocus,
  FOCUS_COLUMNS,
  FOCUS_VERSION,
  type FocusExport,
  type FocusOptions,
  type FocusSinks,
} from './table/focus.js';
export { exportParquet, type ParquetSinks } from './table/parquet-tables.js';

// Events for SIEMs and spans for tracing
export { exportOcsf, OCSF_VERSION, type OcsfExport } from './telemetry/ocsf.js';
export { exportOtlp, type OtlpExport } from './telemetry/otlp.js';

// What was spent, allowed and refused
export { withoutGroups } from './activity/limits.js';
export { ActivityCollector, type ActivityScope } from './activity/collect.js';
export { ACTIVITY_GROUPINGS, type ActivityGrouping } from './activity/groups.js';
export { reportActivity, type ActivityOptions } from './activity/report-activity.js';
export { renderActivityCsv } from './activity/csv.js';
export { renderActivityHtml } from './text/activity-html.js';
export { renderActivityMarkdown } from './text/activity-markdown.js';
export { renderActivity } from './text/activity-text.js';
export type { ActivityReport } from './schema/generated/types.js';
export { NOT_CHECKED_CODES, requireChecks, type NotCheckedCode } from './report/not-checked.js';
// JSON of any length
export { writeJson } from './json/write-json.js';
// Reports for CI: SARIF, JUnit, annotations, Code Quality, summaries; what is acknowledged
export {
  BaselineMatch,
  decideExitStatus,
  MAX_BASELINE_BYTES,
  parseBaseline,
  type Allowance,
  type Baseline,
  type BaselineOutcome,
  type FailOn,
  type NewFindings,
} from './ci/baseline.js';
export { MAX_BRIEF_COLUMNS, renderBrief } from './ci/brief.js';
export { type AnnotationOptions } from './ci/ci-words.js';
export { FindingSpool, type LineStore } from './ci/finding-spool.js';
export { fingerprintFinding } from './ci/fingerprint.js';
export { MAX_STEP_ANNOTATIONS, renderGithub } from './ci/github.js';
export { renderGitlab } from './ci/gitlab.js';
export { renderJunit, type JunitOptions } from './ci/junit.js';
export { MAX_MARKDOWN_LENGTH, renderMarkdown } from './ci/markdown.js';
export {
  MAX_SARIF_COMPRESSED,
  MAX_SARIF_RESULTS,
  MAX_SARIF_RUNS,
  writeSarif,
  type SarifOptions,
} from './ci/sarif.js';
