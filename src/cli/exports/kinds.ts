/** Every kind of export, in the order in which help lists them. */

import { BUNDLE } from './bundle.js';
import { DSSE } from './dsse.js';
import type { ExportKind } from './export-kind.js';
import { FOCUS } from './focus.js';
import { HTML } from './html.js';
import { IN_TOTO } from './in-toto.js';
import { JOURNAL } from './journal.js';
import { RECEIPTS } from './receipts.js';
import { CSV, PARQUET } from './tables.js';
import { OCSF, OTLP } from './telemetry.js';

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
