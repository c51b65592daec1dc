/** Every kind of export, in the order in which help lists them. */

import { DSSE } from './dsse.js';
import type { ExportKind } from './export-kind.js';
import { FOCUS } from './focus.js';
import { OCSF, OTLP } from './telemetry.js';
import { CSV, PARQUET } from './tables.js';

export const EXPORT_KINDS: readonly ExportKind[] = [DSSE, CSV, PARQUET, FOCUS, OCSF, OTLP];
