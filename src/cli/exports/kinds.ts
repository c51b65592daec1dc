/** Every kind of export, in the order in which help lists them. */

import { BUNDLE } from './bundle.js';
import { DSSE } from './dsse.js';
import type { ExportKind } from './export-kind.js';
import { IN_TOTO } from './in-toto.js';
import { JOURNAL } from './journal.js';

export const EXPORT_KINDS: readonly ExportKind[] = [DSSE, BUNDLE, IN_TOTO, JOURNAL];
