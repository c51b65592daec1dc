/** A report as Markdown for a job summary or a comment. Outside text is in code spans; the size is bounded. */

import type { FindingJson } from '../../format/schema/generated/types.js';
import type { LazyReport } from '../../rules/report/report.js';
import { markdownCode } from '../text/markdown.js';
import { count, countsText, grouped, toTell } from '../text/words.js';
import { changeOf, messageOf, nameOf, placeOf, summaryOf } from './ci-words.js';
import { MAX_SHOWN } from './escape.js';

/** The longest comment that GitHub takes, in characters; a job's summary may have 1 MiB. */
export const MAX_MARKDOWN_LENGTH = 65_536;

/** A ledger may be a folder of very many files. */
const MAX_PATHS = 3;

/** Room for the last line. */
const RESERVE = 200;

const MARKS = { ok: '✅', violation: '❌', invalid: '❌', undecided: '⚠️' } as const;

/** Neither well nor new: a baseline acknowledges all that is wrong. */
const ACKNOWLEDGED = '🟡';

const TRUST_WORDS = {
  policy: 'the keys of a trust policy',
  'self-declared': "the ledger's own keys, which no trust policy confirms",
  none: 'no keys are known: signatures were not checked',
} as const;

/** The report as Markdown of at most {@link MAX_MARKDOWN_LENGTH} characters: verdict, counts, what was not checked, findings. */
export function renderMarkdown(report: LazyReport): string {
  const { ledger, trust, counts, checkpoints, baseline, not_checked: notChecked, findings } = report;
  const { valid, invalid, unverified, missing } = trust.signatures;
  const signatures = { valid, invalid, unverified, missing };
  const change = changeOf(report);
  const head = [
    `### ${markOf(report)} northroot: ${report.verdict}${isAcknowledged(report) ? ', acknowledged' : ''}`,
    '',
    `${listPaths(ledger.paths)}: ${summaryOf(report)}`,
    '',
    ...(change === undefined ? [] : [`**What began it:** ${codeOf(change)}`, '']),
    ...(ledger.origin === null ? [] : [`- origin: ${codeOf(ledger.origin)}`]),
    `- tree: ${count(ledger.tree_size, 'record')}, root ${codeOf(String(ledger.root))}`,
    `- verdicts: ${countsText(counts.by_verdict)}`,
    `- signatures: ${countsText(signatures)}; trusted: ${TRUST_WORDS[trust.mode]}`,
    `- checkpoints: ${grouped(checkpoints.count)}, ${count(checkpoints.unsealed, 'record')} after the last`,
    ...(baseline === undefined
      ? []
      : [
          `- baseline: ${grouped(baseline.known)} known, ${grouped(baseline.new)} new, ${grouped(baseline.gone)} gone${baseline.unlisted > 0 ? `, ${grouped(baseline.unlisted)} that it counts but does not list` : ''}`,
        ]),
    ...(notChecked.length === 0 ? [] : ['', '**Not checked**', '']),
    ...notChecked.map(
      ({ code, message, required = false }) =>
        `- ${codeOf(code)}${required ? ' (**required**)' : ''}: ${codeOf(message)}`,
    ),
    ...(findings.length === 0
      ? []
      : ['', `**${baseline === undefined ? 'Findings' : 'New findings'}** (worst first)`, '']),
  ];
  let text = '';
  const add = (line: string): boolean => {
    // Never a part of a line: a span of code that is not closed is none.
    const fits = text.length + line.length < MAX_MARKDOWN_LENGTH - RESERVE;
    if (fits) text += `${line}\n`;
    return fits;
  };
  for (const line of head) add(line);
  let listed = 0;
  for (const finding of findings) {
    if (!add(lineOf(finding))) break;
    listed += 1;
  }
  const rest = toTell(report) - listed;
  return rest <= 0 ? text : `${text}\n… and ${count(rest, 'more finding')}.\n`;
}

function markOf(report: LazyReport): string {
  const { verdict, not_checked: notChecked } = report;
  const isWell = verdict === 'ok' || isAcknowledged(report);
  if (isWell && notChecked.some(({ required }) => required === true)) return MARKS.undecided;
  return isAcknowledged(report) ? ACKNOWLEDGED : MARKS[verdict];
}

/** Whether all errors are acknowledged. New findings are listed worst first; an unlisted one may be an error. */
function isAcknowledged({ verdict, baseline, findings }: LazyReport): boolean {
  if (baseline === undefined || verdict === 'ok' || verdict === 'undecided') return false;
  return baseline.new === 0 || (findings.length > 0 && findings[0]?.severity !== 'error');
}

/** As many as say enough, and how many more there are. */
function listPaths(paths: readonly string[]): string {
  const shown = paths.slice(0, MAX_PATHS).map((path) => codeOf(nameOf(path)));
  const rest = paths.length - shown.length;
  return `${shown.join(', ')}${rest > 0 ? ` and ${count(rest, 'more file')}` : ''}`;
}

/** Outside text, as all Markdown of the project has it. */
function codeOf(text: string): string {
  return markdownCode(text, MAX_SHOWN) || '(empty)';
}

function lineOf(finding: FindingJson): string {
  const { severity, code, seq } = finding;
  const at = `${codeOf(placeOf(finding))}${seq === null ? '' : ` (seq ${seq})`}`;
  return `- **${severity}** ${codeOf(code)} at ${at}: ${codeOf(messageOf(finding))}`;
}
