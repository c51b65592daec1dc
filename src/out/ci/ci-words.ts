/** Words that the formats for CI share. */

import { describeSubject } from '../../format/finding/words.js';
import type { FindingJson } from '../../format/schema/generated/types.js';
import { findFirstChanged, isAtEnd } from '../../rules/report/causes.js';
import type { LazyReport } from '../../rules/report/report.js';
import { count, describeChange, grouped } from '../text/words.js';

/** The path of what was read from a stream, as a file of its own name. */
const STREAM = '-';

/** How findings are told of in formats that point to files. */
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

/** Where a finding points to: a line that the file has, for hosts show nothing that stands behind the last one. */
export function pointOf(
  finding: FindingJson,
  anchor?: string,
): { readonly file: string; readonly line: number } {
  if (anchor !== undefined) return { file: anchor, line: 1 };
  const { file, line } = finding.at;
  return { file: nameOf(file), line: isAtEnd(finding) ? Math.max(1, line - 1) : line };
}

/** A finding's message: whose act it is about, what was found, what folded under it and, where it points elsewhere, its own place. */
export function messageOf(finding: FindingJson, anchor?: string): string {
  const subject = subjectOf(finding);
  const folded = finding.folded === undefined ? '' : ` [and ${count(finding.folded, 'more record')} alike]`;
  const place = anchor === undefined ? '' : ` (${placeOf(finding)})`;
  return `${subject === undefined ? '' : `${subject}: `}${finding.message}${folded}${place}`;
}

function subjectOf(finding: FindingJson): string | undefined {
  const { principal_id: principalId, tool_name: toolName, event_type: eventType, amounts } = finding;
  return describeSubject({
    ...(principalId === undefined ? {} : { principalId }),
    ...(toolName === undefined ? {} : { toolName }),
    ...(eventType === undefined ? {} : { eventType }),
    ...(amounts === undefined ? {} : { amounts }),
  });
}

/** How many findings there are to tell of: all, or with a baseline the new ones. */
export function toTell({ baseline, findings_total: total }: LazyReport): number {
  return baseline === undefined ? total : baseline.new;
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

/** What the verdict is, of what, and how the findings stand to a baseline. */
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
