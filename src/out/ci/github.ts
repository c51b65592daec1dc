/** A report as GitHub's workflow commands, which become annotations: within what the host shows, worst first, the rest counted. */

import type { FindingJson } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, toTell } from '../text/words.js';
import { type AnnotationOptions, changeOf, messageOf, notCheckedOf, pointOf, summaryOf } from './ci-words.js';
import { escapeCommandMessage, escapeCommandProperty } from './escape.js';

/** The host shows so many errors, and so many warnings, of a step, and passes over the others. */
export const MAX_STEP_ANNOTATIONS = 10;

/**
 * Lines of workflow commands: at most {@link MAX_STEP_ANNOTATIONS} errors and as many warnings, and one notice with the verdict, what
 * was not checked, and how many findings there are besides. Infos are counted there.
 */
export function renderGithub(report: LazyReport, { anchor }: AnnotationOptions = {}): string {
  const of = (severity: FindingJson['severity']): FindingJson[] =>
    report.findings.filter((finding) => finding.severity === severity).slice(0, MAX_STEP_ANNOTATIONS);
  const annotated = [...of('error'), ...of('warning')];
  const rest = toTell(report) - annotated.length;
  const change = changeOf(report);
  const notice = [
    summaryOf(report),
    ...(change === undefined ? [] : [change]),
    ...(rest > 0 ? [`${count(rest, 'more finding')} without an annotation`] : []),
    ...notCheckedOf(report),
  ].join('; ');
  const isOpen =
    report.verdict === 'undecided' || report.not_checked.some(({ required }) => required === true);
  const lines = [
    ...annotated.map((finding) => annotate(finding, anchor)),
    `::${isOpen ? 'error' : 'notice'} title=northroot::${escapeCommandMessage(notice)}`,
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function annotate(finding: FindingJson, anchor: string | undefined): string {
  const { file, line } = pointOf(finding, anchor);
  const title = `${finding.code}${finding.seq === null ? '' : ` (seq ${finding.seq})`}`;
  const properties = `file=${escapeCommandProperty(file)},line=${line},title=${escapeCommandProperty(title)}`;
  const message = escapeCommandMessage(messageOf(finding, anchor));
  return `::${finding.severity === 'error' ? 'error' : 'warning'} ${properties}::${message}`;
}
