/** The report for people: the verdict first, then what it rests on, what was not checked, and what was found. */

import { printable } from '../../base/bytes/printable.js';
import { CODE_PAGES, isFindingCode } from '../../format/finding/catalog.js';
import type { FindingJson, RevokedKeyJson } from '../../format/schema/generated/types.js';
import { findFirstBad, findFirstChanged, groupByCause, isAtEnd } from '../../rules/report/causes.js';
import type { LazyReport } from '../../rules/report/report.js';
import { renderAccounts, renderSigners, shortId } from './accounts.js';
import { type Guide, moreOf, notCheckedLines, type Paint, plainPaint } from './guide.js';
import {
  count,
  countsText,
  describeChange,
  effectWord,
  grouped,
  inFlightText,
  row,
  toTell,
} from './words.js';

/** The most of each that the summary lists. */
const MAX_GRANTS = 10;
const MAX_APPROVALS = 10;
const MAX_REVOCATIONS = 10;
const MAX_OPEN = 5;

/** The path of what was read from a stream. */
const STREAM = '-';

export const VERDICT_STYLES = { ok: 'green', violation: 'red', invalid: 'red', undecided: 'yellow' } as const;

const SEVERITY_STYLES = { error: 'red', warning: 'yellow', info: 'dim' } as const;

/** The keys by which signatures were judged. */
export const TRUST_WORDS = {
  policy: 'pinned: the keys of your trust policy',
  'self-declared': "self-declared: the ledger's own keys, which no trust policy confirms",
  none: 'none: no keys are known, and signatures were not checked',
} as const;

const ANCHOR_WORDS = {
  extends: 'the ledger extends it',
  truncated: 'the ledger is shorter',
  forked: 'the ledger has another history',
  'other-origin': 'it is of another log',
} as const;

const PREDECESSOR_WORDS = {
  continues: 'the predecessor is it',
  'other-ledger': 'the predecessor is another ledger',
  truncated: 'the predecessor is shorter',
  forked: 'the predecessor has another history',
} as const;

const BASIS_WORDS = {
  checkpoints_by_others: 'checkpoints that others signed, or that you hold',
  own_checkpoints: 'checkpoints by revoked keys, or by keys that these added',
  nothing: 'nothing: no checkpoint covers all of them',
} as const;

/** The report as lines of text, each ending in `\n`. Everything that comes from the ledger is made printable. */
export function renderReport(report: LazyReport, paint: Paint = plainPaint, guide: Guide = {}): string {
  const { ledger, trust, counts } = report;
  const verdict = paint('bold', paint(VERDICT_STYLES[report.verdict], report.verdict));
  const lines = [
    `${verdict}  ${ledger.paths.map((path) => printable(path)).join(', ')}: ${summarise(report)}${renderMissed(report)}`,
    ...renderFirstBad(report),
    ...renderFirstChanged(report),
    ...renderBaseline(report),
    row('trust', TRUST_WORDS[trust.mode]),
    row('signatures', countsText(trust.signatures)),
    row('verdicts', countsText(counts.by_verdict)),
    row('events', countsText(counts.by_type)),
    ...(ledger.origin === null ? [] : [row('origin', printable(ledger.origin))]),
    ...renderContinuation(ledger),
    row('tree', `${count(ledger.tree_size, 'record')}, root ${ledger.root}`),
    row('size', count(ledger.bytes, 'byte')),
    ...renderFurther(report),
    ...renderCheckpoints(report),
    ...trust.signers.map((signer) =>
      row(
        'signer',
        `${signer.keyid}${signer.name === undefined ? '' : ` (${printable(signer.name)})`} signed ${count(signer.records, 'record')} for ${printable(signer.principals.join(', '))}`,
      ),
    ),
    ...(trust.revoked ?? []).map(renderRevoked),
    ...notCheckedLines(report.not_checked, paint, guide),
    ...renderBudgets(report, paint, guide),
  ];
  if (toTell(report) > 0) lines.push('', ...renderFindings(report, paint, guide));
  return lines.map((line) => `${line}\n`).join('');
}

/**
 * One finding: place, code and message; its record, and how to show it; then a hint.
 *
 * @param ledger - The path by which the record can be shown; without it only what it is is said.
 */
export function renderFinding(
  finding: FindingJson,
  paint: Paint = plainPaint,
  { guide = {}, ledger }: { readonly guide?: Guide; readonly ledger?: string } = {},
): string[] {
  const hint = hintOf(finding, guide);
  return [
    renderFindingLine(finding, paint),
    ...renderRecordLine(finding, paint, guide, ledger),
    ...(hint === undefined ? [] : [renderHint(hint, paint)]),
  ];
}

/** What the verdict rests on, in a few words. */
function summarise(report: LazyReport): string {
  const { verdict, ledger, counts, findings: listed, findings_total: findings } = report;
  const { violation, invalid } = counts.by_verdict;
  const of = `of ${count(ledger.records, 'record')}`;
  const are = (n: number): string => `${grouped(n)} ${of} ${n === 1 ? 'is' : 'are'}`;
  switch (verdict) {
    case 'ok':
      return findings === 0
        ? `nothing wrong in ${count(ledger.records, 'record')}`
        : `nothing broken in ${count(ledger.records, 'record')}, ${count(findings, 'finding')} to look at`;
    case 'undecided':
      return 'there is no record to verify';
    case 'violation':
      return `${are(violation)} in violation`;
    case 'invalid': {
      const others = violation === 0 ? '' : `, ${grouped(violation)} in violation`;
      return invalid + violation === 0
        ? `${outsideOf(listed)}, though none ${of} is invalid`
        : `${are(invalid)} invalid${others}`;
    }
  }
}

/** An "ok" alone would be taken for the exit status. */
function renderMissed({ not_checked: all }: LazyReport): string {
  const missed = all.filter(({ required = false }) => required).map(({ code }) => code);
  return missed.length === 0 ? '' : `; required, and not checked: ${missed.join(', ')}`;
}

/** What makes a ledger invalid of which no record is. A filter may have left it out. */
function outsideOf(findings: readonly FindingJson[]): string {
  const codes = findings.filter(({ severity }) => severity === 'error').map(({ code }) => code);
  return [...new Set(codes)].join(', ') || 'not whole, or not the ledger that was expected';
}

function renderContinuation({ continues }: LazyReport['ledger']): string[] {
  if (continues === undefined) return [];
  const { ledger_id: id, tree_size: size, relation } = continues;
  const words = relation === undefined ? 'which was not given' : PREDECESSOR_WORDS[relation];
  return [row('continues', `${id}, of ${count(size, 'record')}: ${words}`)];
}

/** How far the ledger is sealed, by whom, and how it relates to the held checkpoints. */
function renderCheckpoints({ checkpoints }: LazyReport): string[] {
  const { count: total, last_tree_size: size, unsealed, signers = [], anchors = [] } = checkpoints;
  const last =
    size === null
      ? 'none of them right and signed by a known key'
      : `the last over ${count(size, 'record')}, ${grouped(unsealed)} after it`;
  // That of a tile tree stands beside its records.
  const where = total === 0 ? 'none among the records' : grouped(total);
  return [
    ...(total === 0 && size === null ? [] : [row('checkpoints', `${where}, ${last}`)]),
    ...signers
      .filter(({ role }) => role === 'witness')
      .map(({ name, declared, tree_size }) =>
        declared === true
          ? row(
              'declared',
              `${printable(name)}, the ledger's own witness, over ${count(tree_size, 'record')}`,
            )
          : row('witness', `${printable(name)} cosigned ${count(tree_size, 'record')}`),
      ),
    ...anchors.map(({ path, tree_size, relation }) =>
      row('anchor', `${printable(path)}, of ${count(tree_size, 'record')}: ${ANCHOR_WORDS[relation]}`),
    ),
  ];
}

function renderRevoked({ keyid, revoked_at_seq: seq, records, rests_on: basis }: RevokedKeyJson): string {
  const rests = basis === undefined ? '' : `; its ${count(records, 'record')} rest on ${BASIS_WORDS[basis]}`;
  return row('revoked', `${keyid} at seq ${seq}${rests}`);
}

/** Grants with their accounts, and what is open. */
function renderBudgets(report: LazyReport, paint: Paint, guide: Guide): string[] {
  const { grants, open_authorizations: open, open_starts: starts = [], counts } = report;
  const accounts = renderAccounts(grants, paint, MAX_GRANTS, keyNamer(report.trust), guide);
  const lines = grants.length === 0 ? [] : ['', paint('bold', 'grants'), ...accounts];
  const { denied } = counts.by_verdict;
  if (denied > 0) lines.push('', `${count(denied, 'event')} denied${moreOf(guide.more?.denied, ' (', ')')}`);
  const list = (words: string, of: Iterable<OpenRecord> & { readonly length: number }): string[] => {
    const names = firstOf(of, MAX_OPEN).map(({ seq, tool_name: tool }) => `seq ${seq} ${printable(tool)}`);
    const more = of.length > MAX_OPEN ? `, … ${of.length - MAX_OPEN} more` : '';
    return of.length === 0 ? [] : ['', `${words}: ${names.join(', ')}${more}`];
  };
  return [
    ...lines,
    ...renderApprovals(report, paint),
    ...renderRevocations(report, paint),
    ...list(`${count(open.length, 'authorization')} open (allowed, not executed)`, open),
    ...list(`${count(starts.length, 'start')} not recorded (running, or killed)`, starts),
  ];
}

/** Who approved what was used. */
function renderApprovals({ approvals, trust }: LazyReport, paint: Paint): string[] {
  if (approvals.length === 0) return [];
  const nameOf = keyNamer(trust);
  const lines: string[] = [];
  let used = 0;
  for (const { seq, principal_id: principal, tool_name: tool, signers, used_by: action } of approvals) {
    if (action === null) continue;
    used += 1;
    if (used > MAX_APPROVALS) continue;
    const what = `${printable(principal)} approved ${printable(tool)}, used by ${shortId(action)}`;
    lines.push(`  seq ${seq}  ${what}`, `    signed by ${renderSigners(signers, nameOf)}`);
  }
  if (used > MAX_APPROVALS) lines.push(`  … and ${count(used - MAX_APPROVALS, 'more approval')}`);
  return ['', paint('bold', `approvals (${grouped(approvals.length)}, ${grouped(used)} used)`), ...lines];
}

/** What was revoked, suspended and resumed, by whom. */
function renderRevocations({ revocations, trust }: LazyReport, paint: Paint): string[] {
  if (revocations.length === 0) return [];
  const nameOf = keyNamer(trust);
  const lines = firstOf(revocations, MAX_REVOCATIONS).flatMap((each) => {
    const { seq, principal_id: principal, effect, in_flight: inFlight, grant_event_id: grant } = each;
    const what = `${printable(principal)} ${effectWord(effect)} grant ${shortId(grant)}`;
    return [
      `  seq ${seq}  ${what}${inFlightText(inFlight)}`,
      `    signed by ${renderSigners(each.signers, nameOf)}`,
    ];
  });
  const more = revocations.length - MAX_REVOCATIONS;
  if (more > 0) lines.push(`  … and ${count(more, 'more revocation')}`);
  return ['', paint('bold', `revocations (${grouped(revocations.length)})`), ...lines];
}

function keyNamer({ signers }: LazyReport['trust']): (keyid: string) => string | undefined {
  const names = new Map(signers.map(({ keyid, name }) => [keyid, name]));
  return (keyid) => names.get(keyid);
}

interface OpenRecord {
  readonly seq: number;
  readonly tool_name: string;
}

function firstOf<T>(list: Iterable<T>, limit: number): T[] {
  const first: T[] = [];
  for (const each of list) if (first.push(each) === limit) break;
  return first;
}

/** Each hint is printed once, after the first run of findings that it is for. */
function renderFindings(report: LazyReport, paint: Paint, guide: Guide): string[] {
  const { findings, baseline } = report;
  const total = toTell(report);
  const name = baseline === undefined ? 'findings' : 'new findings';
  const lines = [paint('bold', `${name} (${grouped(total)}, worst first)`)];
  const given = new Set<string>();
  const { paths } = report.ledger;
  const path = paths.length === 1 && paths[0] !== STREAM ? paths[0] : undefined;
  const show = (finding: FindingJson, next: FindingJson | undefined): string[] => {
    const shown = [renderFindingLine(finding, paint), ...renderRecordLine(finding, paint, guide, path)];
    const hint = hintOf(finding, guide);
    if (hint === undefined || given.has(hint) || (next !== undefined && hintOf(next, guide) === hint))
      return shown;
    given.add(hint);
    return [...shown, renderHint(hint, paint)];
  };
  const groups = groupByCause(findings);
  for (const [index, { finding, consequences }] of groups.entries()) {
    lines.push(...show(finding, groups[index + 1]?.finding));
    if (consequences.length === 0) continue;
    lines.push('  and, because of that record:');
    for (const [at, each] of consequences.entries())
      lines.push(...show(each, consequences[at + 1]).map((line) => `    ${line}`));
  }
  const rest = total - findings.length;
  if (rest > 0) lines.push(`… and ${grouped(rest)} more${moreOf(guide.more?.findings, ': ')}`);
  return lines;
}

function renderFurther({ decisions, prices }: LazyReport): string[] {
  const lines: string[] = [];
  if (decisions !== undefined) {
    const { denials, by_others: others, ...outcomes } = decisions;
    lines.push(
      row(
        'denials',
        `${grouped(denials)}, decided again: ${countsText({ ...outcomes, 'by others': others })}`,
      ),
    );
  }
  if (prices !== undefined) {
    const { executions, ...outcomes } = prices;
    lines.push(row('prices', `${count(executions, 'amount')}, computed again: ${countsText(outcomes)}`));
  }
  return lines;
}

function renderBaseline({ baseline }: LazyReport): string[] {
  if (baseline === undefined) return [];
  const { known, new: fresh, gone, unlisted } = baseline;
  const words = `${grouped(known)} known and acknowledged, ${grouped(fresh)} new, ${grouped(gone)} gone`;
  const cut =
    unlisted === 0 ? '' : `; it counts ${grouped(unlisted)} more that it does not list, nor acknowledge`;
  return [row('baseline', `${words}${cut}`)];
}

function renderFirstBad(report: LazyReport): string[] {
  const first = findFirstBad(report.findings);
  if (first === undefined) return [];
  const { at, seq } = first;
  if (isAtEnd(first)) return [row('first bad', `the end of ${printable(at.file)}`)];
  const place = `${printable(at.file)}:${at.line}`;
  return [row('first bad', seq === null ? `record at ${place}` : `record seq ${seq}, ${place}`)];
}

/** The first changed record: one change causes many findings. */
function renderFirstChanged({ findings }: LazyReport): string[] {
  const changed = findFirstChanged(findings);
  if (changed === undefined) return [];
  const { seq, at } = changed.finding;
  const place = `${printable(at.file)}:${at.line}`;
  const record = seq === null ? `record at ${place}` : `record seq ${seq}, ${place}`;
  return [row('changed', `${record}, ${describeChange(changed)}`)];
}

function renderFindingLine(finding: FindingJson, paint: Paint): string {
  const { at, severity, code } = finding;
  const place = `${printable(at.file)}${isAtEnd(finding) ? ', at its end' : `:${at.line}`} (byte ${at.byte_offset})`;
  const folded = finding.folded === undefined ? '' : ` [and ${count(finding.folded, 'more record')} alike]`;
  return `${paint(SEVERITY_STYLES[severity], severity)}: ${place} ${paint('bold', code)}: ${finding.message}${folded}`;
}

/** Of which record a finding is, by whom, with which tool; and how it is shown. */
function renderRecordLine(
  finding: FindingJson,
  paint: Paint,
  guide: Guide,
  ledger: string | undefined,
): string[] {
  const { seq, event_id: id, principal_id: principal, tool_name: tool, amounts } = finding;
  const reference = seq === null ? id && shortId(id) : String(seq);
  if (reference === null) return [];
  const parts = [seq === null ? reference : `seq ${seq}`, principal, tool, amounts].filter(
    (part) => part !== undefined,
  );
  const show = moreOf(ledger === undefined ? undefined : guide.record?.(ledger, reference), ': ');
  return [`  ${paint('dim', `${parts.map((part) => printable(part)).join(', ')}${show}`)}`];
}

function renderHint(hint: string, paint: Paint): string {
  return `  ${paint('dim', `hint: ${hint}`)}`;
}

function hintOf({ code, severity }: FindingJson, guide: Guide): string | undefined {
  if (severity === 'info' || !isFindingCode(code)) return undefined;
  return guide.finding?.(code) ?? CODE_PAGES[code].remedy;
}
