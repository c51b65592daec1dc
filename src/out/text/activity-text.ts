/** The activity report for terminals. */

import type { ActivityReport } from '../../format/schema/generated/types.js';
import { describeActivity } from './activity-document.js';
import { documentLines } from './document-text.js';
import type { Guide } from './guide.js';
import { type Paint, plainPaint } from './paint.js';

/** The activity report as lines of text, each ending in `\n`. Everything that comes from the ledger is made printable. */
export function renderActivity(report: ActivityReport, paint: Paint = plainPaint, guide: Guide = {}): string {
  return documentLines(describeActivity(report, guide), paint)
    .map((line) => `${line}\n`)
    .join('');
}
