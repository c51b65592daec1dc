/** Every kind of export, in the order in which help lists them. */

import { BUNDLE } from './bundle.js';
import type { ExportKind } from './export-kind.js';
import { FOCUS } from './focus.js';
import { IN_TOTO } from './in-toto.js';
import { RECEIPTS } from './receipts.js';
import { DSSE, HTML, JOURNAL, OCSF, OTLP } from './single-file.js';
import { CSV, PARQUET } from './tables.js';

export const EXPORT_KINDS: readonly ExportKind[] = [
  HTML,
  BUNDLE,
  CSV,
  PARQUET,
  FOCUS,
  OCSF,
  OTLP,
  DSSE,
  IN_TOTO,
  RECEIPTS,
  JOURNAL,
];
