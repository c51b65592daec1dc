/**
 * Groups findings by cause: a changed line breaks the link of the next one and the root of the next checkpoint. Reports for people list
 * these under their cause, and name its record first.
 */

import type { FindingJson } from '../../format/schema/generated/types.js';

interface CausedFindings {
  readonly finding: FindingJson;
  /** After the last finding of its record. */
  readonly consequences: readonly FindingJson[];
}

type Placed = Pick<FindingJson['at'], 'file' | 'line'>;

/** The codes of consequences of a changed record. */
const LINK_CODES: ReadonlySet<string> = new Set(['PREV_MISMATCH', 'SEQ_GAP']);
const CHANGED_CODES: ReadonlySet<string> = new Set(['PAYLOAD_DIGEST_MISMATCH', 'EVENT_ID_MISMATCH']);
const ROOT_CODES: ReadonlySet<string> = new Set(['CHECKPOINT_ROOT_MISMATCH', 'FORKED']);

/** The findings in order, those of one record together, with its consequences under the last. */
export function groupByCause(findings: readonly FindingJson[]): CausedFindings[] {
  const byRecord = new Map<string, FindingJson[]>();
  for (const finding of findings) {
    const key = keyOf(finding.at);
    const list = byRecord.get(key);
    if (list === undefined) byRecord.set(key, [finding]);
    else list.push(finding);
  }
  const broken = findings.filter(({ severity, class: of }) => severity === 'error' && of === 'invalid');
  const first = firstOf(broken);
  const brokenPlaces = new Set(broken.map(({ at }) => keyOf(at)));
  const causeOf = (finding: FindingJson): string | undefined => {
    const { at, code, severity } = finding;
    if (severity !== 'error') return undefined;
    const before = { file: at.file, line: at.line - 1 };
    if (LINK_CODES.has(code) && brokenPlaces.has(keyOf(before))) return keyOf(before);
    const related = (finding.related ?? []).find(
      (other) => isBefore(other, at) && brokenPlaces.has(keyOf(other)),
    );
    if (related !== undefined) return keyOf(related);
    return ROOT_CODES.has(code) && first !== undefined && isBefore(first.at, at)
      ? keyOf(first.at)
      : undefined;
  };
  const causes = new Map(findings.map((finding) => [finding, causeOf(finding)]));
  /** The first record of a chain of causes. Causes are earlier lines, so this ends. */
  const rootOf = (key: string): string => {
    const [cause, ...others] = (byRecord.get(key) ?? [])
      .filter(({ severity }) => severity === 'error')
      .map((finding) => causes.get(finding));
    return cause === undefined || others.includes(undefined) ? key : rootOf(cause);
  };
  const consequences = new Map<string, FindingJson[]>();
  for (const finding of findings) {
    const cause = causes.get(finding);
    if (cause === undefined) continue;
    const root = rootOf(cause);
    consequences.set(root, [...(consequences.get(root) ?? []), finding]);
  }
  return [...byRecord].flatMap(([key, list]) => {
    const own = list.filter((finding) => causes.get(finding) === undefined);
    return own.map((finding, index) => ({
      finding,
      consequences: index === own.length - 1 ? (consequences.get(key) ?? []) : [],
    }));
  });
}

/** A changed record, and how many findings it has and causes. */
export interface ChangedRecord {
  readonly finding: FindingJson;
  readonly own: number;
  readonly consequences: number;
}

/** The first record, in ledger order, whose content does not match its id or digest. */
export function findFirstChanged(findings: readonly FindingJson[]): ChangedRecord | undefined {
  const finding = firstOf(
    findings.filter(({ code, severity }) => severity === 'error' && CHANGED_CODES.has(code)),
  );
  if (finding === undefined) return undefined;
  const groups = groupByCause(findings).filter(({ finding: { at } }) => keyOf(at) === keyOf(finding.at));
  return {
    finding,
    own: groups.length,
    consequences: groups.reduce((sum, { consequences }) => sum + consequences.length, 0),
  };
}

/** The first record, in ledger order, with an error. */
export function findFirstBad(findings: readonly FindingJson[]): FindingJson | undefined {
  return firstOf(findings.filter(({ severity }) => severity === 'error'));
}

/** Whether a finding is at the end of the ledger. */
export function isAtEnd({ at, seq, line_digest: digest }: FindingJson): boolean {
  return at.byte_length === 0 && seq === null && digest === undefined;
}

function firstOf(findings: readonly FindingJson[]): FindingJson | undefined {
  return findings.reduce<FindingJson | undefined>(
    (first, finding) => (first === undefined || isBefore(finding.at, first.at) ? finding : first),
    undefined,
  );
}

/** The names of segments are in order. */
function isBefore(a: Placed, b: Placed): boolean {
  return a.file === b.file ? a.line < b.line : a.file < b.file;
}

function keyOf({ file, line }: Placed): string {
  return `${line}:${file}`;
}
