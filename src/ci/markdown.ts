/** A report as Markdown, for the summary of a job or a comment: what is from outside stands in code spans, and the size is bounded. */

import type { Report } from '../report/report.js';
import type { FindingJson } from '../schema/generated/types.js';
import { count, grouped } from '../text/words.js';
import { messageOf, nameOf, placeOf, summaryOf, toTell } from './ci-words.js';
import { toCodeSpan } from './escape.js';

/** The longest comment that GitHub takes, in characters; a job's summary may have 1 MiB. */
export const MAX_MARKDOWN_LENGTH = 65_536;

/** Room for the last line. */
const RESERVE = 200;

const MARKS = { ok: '✅', violation: '❌', invalid: '❌', undecided: '⚠️' } as const;

const TRUST_WORDS = {
  policy: 'the keys of a trust policy',
  'self-declared': "the ledger's own keys, which nobody vouches for",
  none: 'no keys are known: signatures were not checked',
} as const;

/** The report as Markdown of at most {@link MAX_MARKDOWN_LENGTH} characters: verdict, counts, what was not checked, findings. */
export function renderMarkdown(report: Report): string {
  const { ledger, trust, counts, checkpoints, baseline, not_checked: notChecked, findings } = report;
  const { valid, invalid, unverified, missing } = trust.signatures;
  const signatures = { valid, invalid, unverified, missing };
  const head = [
    `### ${MARKS[report.verdict]} northroot: ${report.verdict}`,
    '',
    `${ledger.paths.map((path) => toCodeSpan(nameOf(path))).join(', ')}: ${summaryOf(report)}`,
    '',
    ...(ledger.origin === null ? [] : [`- origin: ${toCodeSpan(ledger.origin)}`]),
    `- tree: ${count(ledger.tree_size, 'record')}, root ${toCodeSpan(String(ledger.root))}`,
    `- verdicts: ${countsOf(counts.by_verdict)}`,
    `- signatures: ${countsOf(signatures)}; trusted: ${TRUST_WORDS[trust.mode]}`,
    `- checkpoints: ${grouped(checkpoints.count)}, ${count(checkpoints.unsealed, 'record')} after the last`,
    ...(baseline === undefined
      ? []
      : [
          `- baseline: ${grouped(baseline.known)} known, ${grouped(baseline.new)} new, ${grouped(baseline.gone)} gone${baseline.unlisted > 0 ? `, ${grouped(baseline.unlisted)} that it counts but does not list` : ''}`,
        ]),
    ...(notChecked.length === 0 ? [] : ['', '**Not checked**', '']),
    ...notChecked.map(({ code, message }) => `- ${toCodeSpan(code)}: ${toCodeSpan(message)}`),
    ...(findings.length === 0
      ? []
      : ['', `**${baseline === undefined ? 'Findings' : 'New findings'}** (worst first)`, '']),
  ];
  // Each of its texts is bounded, but there may be many paths.
  let text = `${head.join('\n')}\n`.slice(0, MAX_MARKDOWN_LENGTH - RESERVE);
  let listed = 0;
  for (const finding of findings) {
    const line = `${lineOf(finding)}\n`;
    if (text.length + line.length > MAX_MARKDOWN_LENGTH - RESERVE) break;
    text += line;
    listed += 1;
  }
  const rest = toTell(report) - listed;
  return rest <= 0 ? text : `${text}\n… and ${count(rest, 'more finding')}.\n`;
}

function lineOf(finding: FindingJson): string {
  const { severity, code, seq } = finding;
  const at = `${toCodeSpan(placeOf(finding))}${seq === null ? '' : ` (seq ${seq})`}`;
  return `- **${severity}** ${toCodeSpan(code)} at ${at}: ${toCodeSpan(messageOf(finding))}`;
}

function countsOf(counts: Readonly<Record<string, number>>): string {
  const present = Object.entries(counts).filter(([, n]) => n > 0);
  return present.map(([name, n]) => `${grouped(n)} ${name}`).join(', ') || 'none';
}
