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
export { type ExportOptions, type ExportPass } from './export/write-records.js';

// Events in envelopes
export { exportDsse, type DsseExport } from './export/dsse.js';

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
export { ActivityCollector, type ActivityScope } from './activity/collect.js';
export { ACTIVITY_GROUPINGS, type ActivityGrouping } from './activity/groups.js';
export { reportActivity, type ActivityOptions } from './activity/report-activity.js';
export { renderActivityCsv } from './activity/csv.js';
export { renderActivityHtml } from './text/activity-html.js';
export { renderActivityMarkdown } from './text/activity-markdown.js';
export { renderActivity } from './text/activity-text.js';
export type { ActivityReport } from './schema/generated/types.js';
