/**
 * `northroot/export`: what is made of a verified ledger for those who have other tools. Everything here is exported by `northroot`
 * too.
 */

export { NorthrootError, type NorthrootErrorOptions } from '../base/error.js';

// Which records are meant
export {
  isSelected,
  isWhole,
  matchesSelection,
  type RecordSelection,
  type SelectableEvent,
} from '../rules/selection.js';
export type { UnmatchedName } from '../log/read/unmatched.js';
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
export { BUNDLE_START_BYTES, isBundle } from '../proof/bundle/bundle-start.js';
export {
  BUNDLE_CONTENT_TYPE,
  decodeBundle,
  MAX_BUNDLE_BYTES,
  type Bundle,
  type BundleDecoded,
  type BundledRecord,
  type BundleFile,
  type Stretch,
} from '../proof/bundle/bundle-file.js';
export {
  digestOf,
  formsOfContent,
  isSalted,
  listDigests,
  type ContentForm,
  type NamedDigest,
} from '../proof/bundle/contents.js';
export {
  attachContents,
  findContent,
  type ContentPlace,
  type FoundContent,
} from '../proof/bundle/disclose.js';
export { exportBundle, type BundleExport, type BundleOptions } from '../proof/bundle/export-bundle.js';
export { verifyBundle, type VerifyBundleOptions } from '../proof/bundle/verify-bundle.js';
export { renderBundleResult } from '../out/text/bundle-result.js';

// Statements: what verification found, signed for supply-chain tools
export {
  hashLedger,
  makeStatement,
  type MadeStatement,
  type StatementOptions,
} from '../proof/statement/export-statement.js';
export {
  STATEMENT_PAYLOAD_TYPE,
  STATEMENT_TYPE,
  VSA_TYPE,
  type DigestSet,
  type LedgerStatement,
  type ResourceDescriptor,
  type StatementExtension,
  type VerificationSummary,
} from '../proof/statement/statement.js';
export {
  isStatement,
  MAX_STATEMENT_BYTES,
  verifyStatement,
  type StatementResult,
  type VerifyStatementOptions,
} from '../proof/statement/verify-statement.js';
export { renderStatementResult } from '../out/text/proof-result.js';

// Northroot journals (.nrj)
export { exportJournal, type JournalExport } from '../out/export/journal/export-journal.js';
export {
  parseJournalEvent,
  toJournalPayload,
  type JournalEvent,
} from '../out/export/journal/journal-event.js';
export {
  formatJournalFrame,
  formatJournalHeader,
  isJournal,
  JOURNAL_START_BYTES,
  MAX_JOURNAL_EVENT_BYTES,
  readJournal,
  type JournalFrame,
  type JournalMode,
} from '../out/export/journal/journal-file.js';

// The page
export { exportPage, type PageExport, type PageOptions } from '../out/page/export-page.js';
// Rows for spreadsheets, databases and finance
export { describeExport, type AboutEntry } from '../out/export/about.js';
export {
  exportCsv,
  verificationCsv,
  type CsvSinks,
  type TableExport,
} from '../out/export/table/csv-tables.js';
export { currencyOf } from '../out/export/table/currencies.js';
export {
  exportFocus,
  FOCUS_COLUMNS,
  FOCUS_VERSION,
  type FocusExport,
  type FocusOptions,
  type FocusSinks,
} from '../out/export/table/focus.js';
export { exportParquet, type ParquetSinks } from '../out/export/table/parquet-tables.js';

// Events for SIEMs and spans for tracing
export { exportOcsf, OCSF_VERSION, type OcsfExport } from '../out/export/telemetry/ocsf.js';
export { exportOtlp, type OtlpExport } from '../out/export/telemetry/otlp.js';

// What was spent, allowed and refused
export { withoutGroups } from '../out/activity/limits.js';
export { ActivityCollector, type ActivityScope } from '../out/activity/collect.js';
export { ACTIVITY_GROUPINGS, type ActivityGrouping } from '../out/activity/groups.js';
export { reportActivity, type ActivityOptions } from '../out/activity/report-activity.js';
export { renderActivityCsv } from '../out/activity/csv.js';
export { renderActivityHtml } from '../out/text/activity-html.js';
export { renderActivityMarkdown } from '../out/text/activity-markdown.js';
export { renderActivity } from '../out/text/activity-text.js';
export type { ActivityReport } from '../format/schema/generated/types.js';
export { NOT_CHECKED_CODES, requireChecks, type NotCheckedCode } from '../rules/report/not-checked.js';
// JSON of any length
export { writeJson } from '../base/json/write-json.js';
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
} from '../out/ci/baseline.js';
export { MAX_BRIEF_COLUMNS, renderBrief } from '../out/ci/brief.js';
export { type AnnotationOptions } from '../out/ci/ci-words.js';
export { FindingSpool, type LineStore } from '../out/ci/finding-spool.js';
export { fingerprintFinding } from '../out/ci/fingerprint.js';
export { MAX_STEP_ANNOTATIONS, renderGithub } from '../out/ci/github.js';
export { renderGitlab } from '../out/ci/gitlab.js';
export { renderJunit, type JunitOptions } from '../out/ci/junit.js';
export { MAX_MARKDOWN_LENGTH, renderMarkdown } from '../out/ci/markdown.js';
export {
  MAX_SARIF_COMPRESSED,
  MAX_SARIF_RESULTS,
  MAX_SARIF_RUNS,
  writeSarif,
  type SarifOptions,
} from '../out/ci/sarif.js';
