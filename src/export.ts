/**
 * `northroot/export`: what is made of a verified ledger for those who have other tools. Everything here is exported by `northroot`
 * too.
 */

export { NorthrootError, type NorthrootErrorOptions } from './error.js';

// Which records are meant
export { isSelected, isWhole, type RecordSelection } from './export/selection.js';
export { type ExportOptions, type ExportPass } from './export/write-records.js';

// Events in envelopes
export { exportDsse, type DsseExport } from './export/dsse.js';

// The page
export { exportPage, type PageExport, type PageOptions } from './page/export-page.js';
