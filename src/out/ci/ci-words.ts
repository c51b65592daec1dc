/** Words that the formats for CI share. */

import { defined } from '../../base/defined.js';
import { describeSubject } from '../../format/finding/words.js';
import type { FindingJson } from '../../format/schema/generated/types.js';
import { findFirstChanged, isAtEnd } from '../../rules/report/causes.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, describeChange, grouped } from '../text/words.js';

/** The path of what was read from a stream, as a file of its own name. */
const STREAM = '-';

/** Options of formats that point to files. */
export interface AnnotationOptions {
  /**
   * A file of the repository that findings point to, at its first line, since a ledger is rarely one of them; their text then names
   * the place in the ledger. Default: the ledger's own file.
   */
  readonly anchor?: string | undefined;
}

/** `ledger.jsonl:12`, for people. */
export function placeOf(finding: FindingJson): string {
  return `${nameOf(finding.at.file)}:${pointOf(finding).line}`;
}

/** The name of a ledger's file; a stream is called one. */
export function nameOf(file: string): string {
  return file === STREAM ? 'stdin' : file;
}

/** The file and line of a finding. Hosts show nothing after the last line, so the line is one that the file has. */
export function pointOf(
  finding: FindingJson,
  anchor?: string,
): { readonly file: string; readonly line: number } {
  if (anchor !== undefined) return { file: anchor, line: 1 };
  const { file, line } = finding.at;
  return { file: nameOf(file), line: isAtEnd(finding) ? Math.max(1, line - 1) : line };
}

/** A finding's message: its subject, what was found, the number folded under it and, with an anchor, its own place. */
export function messageOf(finding: FindingJson, anchor?: string): string {
  const subject = subjectOf(finding);
  const folded = finding.folded === undefined ? '' : ` [and ${count(finding.folded, 'more record')} alike]`;
  const place = anchor === undefined ? '' : ` (${placeOf(finding)})`;
  return `${subject === undefined ? '' : `${subject}: `}${finding.message}${folded}${place}`;
}

function subjectOf(finding: FindingJson): string | undefined {
  const { principal_id: principalId, tool_name: toolName, event_type: eventType, amounts } = finding;
  return describeSubject({
    ...defined({ principalId, toolName, eventType, amounts }),
  });
}

/** Which record was changed first and what follows from that, where the listed findings show one. */
export function changeOf({ findings }: LazyReport): string | undefined {
  const changed = findFirstChanged(findings);
  return changed === undefined ? undefined : `${recordOf(changed.finding)} ${describeChange(changed)}`;
}

function recordOf(finding: FindingJson): string {
  return `record ${finding.seq === null ? '' : `seq ${finding.seq}, `}${placeOf(finding)}`;
}

/** The codes of what was not checked, what was required first. */
export function notCheckedOf({ not_checked: list }: LazyReport): string[] {
  const of = (isRequired: boolean): string =>
    list
      .filter(({ required = false }) => required === isRequired)
      .map(({ code }) => code)
      .join(', ');
  const [required, other] = [of(true), of(false)];
  return [
    ...(required === '' ? [] : [`required, and not checked: ${required}`]),
    ...(other === '' ? [] : [`not checked: ${other}`]),
  ];
}

/** The verdict, the number of records, and the findings by baseline. */
export function summaryOf(report: LazyReport): string {
  const { verdict, ledger, counts } = report;
  const { invalid, violation } = counts.by_verdict;
  const bad = [
    ...(invalid === 0 ? [] : [`${grouped(invalid)} invalid`]),
    ...(violation === 0 ? [] : [`${grouped(violation)} in violation`]),
  ];
  const of = bad.length === 0 ? '' : `, ${bad.join(', ')}`;
  return `${verdict}: ${count(ledger.records, 'record')}${of}, ${baselineOf(report)}`;
}

function baselineOf({ findings_total: total, baseline }: LazyReport): string {
  if (baseline === undefined) return count(total, 'finding');
  return baseline.new === 0
    ? `all ${count(total, 'finding')} acknowledged`
    : `${count(baseline.new, 'new finding')}, ${grouped(baseline.known)} acknowledged`;
}
