/** The activity report as Markdown, for a comment, a job summary or a file. */

import type { ActivityReport } from '../../format/schema/generated/types.js';
import { describeActivity } from './activity-document.js';
import { documentMarkdown } from './document-markdown.js';
import type { Guide } from './guide.js';

/** The activity report as Markdown. Outside text stands in spans of code, in which nothing is markup and no host links anything. */
export function renderActivityMarkdown(report: ActivityReport, guide: Guide = {}): string {
  return documentMarkdown(describeActivity(report, guide));
}
