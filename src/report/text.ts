/** The report for people: the verdict first, then what it rests on, what was not checked, and what was found. */

import { printable } from '../bytes/printable.js';
import { CODE_PAGES, isFindingCode } from '../finding/catalog.js';
import type { FindingJson } from '../schema/generated/types.js';
import type { Report } from './report.js';

/** Wraps text in a terminal style, or leaves it as it is. */
export type Paint = (style: 'bold' | 'dim' | 'green' | 'red' | 'yellow', text: string) => string;

/** No colours. */
export const plainPaint: Paint = (_style, text) => text;

const VERDICT_STYLES = { ok: 'green', violation: 'red', invalid: 'red', undecided: 'yellow' } as const;

const TRUST_WORDS = {
  policy: 'keys pinned by the trust policy',
  'self-declared': "the ledger's own keys (self-declared, not pinned)",
  none: 'no keys known: signatures were not checked',
} as const;

/** The report as lines of text, each ending in `\n`. Everything that comes from the ledger is made printable. */
export function renderReport(report: Report, paint: Paint = plainPaint): string {
  const { ledger, trust, counts } = report;
  const { signatures } = trust;
  const lines = [
    `${paint('bold', paint(VERDICT_STYLES[report.verdict], report.verdict))}  ${ledger.paths.map((path) => printable(path)).join(', ')}`,
    row('trust', TRUST_WORDS[trust.mode]),
    row('records', `${number(ledger.records, 'record')}, ${number(ledger.bytes, 'byte')}`),
    row('signatures', nonZero(signatures) || 'none'),
    ...(ledger.origin === null ? [] : [row('origin', printable(ledger.origin))]),
    row('root', `${ledger.root} at tree size ${ledger.tree_size}`),
    row('events', nonZero(counts.by_type) || 'none'),
    row('verdicts', nonZero(counts.by_verdict) || 'none'),
    ...trust.signers.map((signer) =>
      row(
        'signer',
        `${signer.keyid} signed ${number(signer.records, 'record')} for ${printable(signer.principals.join(', '))}`,
      ),
    ),
    '',
    paint('bold', 'not checked'),
    ...report.not_checked.map(({ code, message }) => `  ${paint('yellow', code)}  ${message}`),
  ];
  if (report.findings_total > 0) lines.push('', ...renderFindings(report, paint));
  return lines.map((line) => `${line}\n`).join('');
}

/** One finding: where, its code, what was expected and found; then what to do. */
export function renderFinding(finding: FindingJson, paint: Paint = plainPaint): string[] {
  const { at } = finding;
  const place = `${printable(at.file)}:${at.line} (byte ${at.byte_offset})`;
  const style = finding.severity === 'error' ? 'red' : 'yellow';
  const folded = finding.folded === undefined ? '' : ` [and ${number(finding.folded, 'more record')} alike]`;
  const lines = [
    `${paint(style, finding.severity)}: ${place} ${paint('bold', finding.code)}: ${finding.message}${folded}`,
  ];
  if (finding.severity !== 'info' && isFindingCode(finding.code)) {
    lines.push(`  ${paint('dim', `hint: ${CODE_PAGES[finding.code].remedy}`)}`);
  }
  return lines;
}

function renderFindings(report: Report, paint: Paint): string[] {
  const { findings, findings_total: total } = report;
  const lines = [paint('bold', `findings (${total}, worst first)`)];
  for (const finding of findings) lines.push(...renderFinding(finding, paint));
  if (findings.length < total) lines.push(`  … and ${total - findings.length} more (--max-findings)`);
  return lines;
}

function row(name: string, text: string): string {
  return `  ${name.padEnd(11)} ${text}`;
}

function nonZero(counts: Readonly<Record<string, number>>): string {
  const present = Object.entries(counts).filter(([, count]) => count > 0);
  return present.map(([name, count]) => `${count} ${printable(name)}`).join(', ');
}

function number(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
