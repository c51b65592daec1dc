/** The status of a ledger for people: one screen. */

import { printable } from '../../base/bytes/printable.js';
import { formatQuantity } from '../../base/value/quantity.js';
import type { LedgerStatus, ScarceMeter, StatusKey } from '../../log/read/status.js';
import { type Guide, moreOf, notCheckedLines, type Paint, plainPaint } from './guide.js';
import { VERDICT_STYLES } from './report.js';
import { count, grouped, row } from './words.js';

/** The most lines of each kind: it is one screen. */
const MAX_LINES = 6;
/** The most numbers in one line. */
const MAX_NAMED = 5;

/** The status as lines of text, each ending in `\n`. Everything that comes from the ledger is made printable. */
export function renderStatus(status: LedgerStatus, paint: Paint = plainPaint, guide: Guide = {}): string {
  const { ledger, verdict, period, checkpoints, keys, grants, withdrawn, scarce } = status;
  const { last_tree_size: sealed, unsealed } = checkpoints;
  const current = keys.filter(({ revoked_at_seq: revoked }) => revoked === null);
  const revoked = keys.length - current.length;
  const lines = [
    `${paint('bold', paint(VERDICT_STYLES[verdict], verdict))}  ${ledger.paths.map((path) => printable(path)).join(', ')}: ${count(ledger.records, 'record')}, ${count(ledger.bytes, 'byte')}`,
    ...(ledger.origin === null ? [] : [row('origin', printable(ledger.origin))]),
    ...(period === null ? [] : [row('period', `${period.first} to ${period.last} (first and last record)`)]),
    ...(ledger.tip_event_id === null
      ? []
      : [row('tip', `seq ${ledger.records - 1}, ${printable(ledger.tip_event_id)}`)]),
    row(
      'checkpoint',
      sealed === null
        ? `none that is right and signed by a known key: ${count(ledger.records, 'record')} not sealed`
        : `over ${count(sealed, 'record')}, ${grouped(unsealed)} after it`,
    ),
    ...limit(current.map(renderKey), 'keys'),
    ...(keys.length === 0 ? [row('key', 'none is known')] : []),
    ...(revoked === 0 ? [] : [row('revoked', count(revoked, 'key'))]),
    ...(grants === 0
      ? []
      : [row('grants', `${count(grants, 'grant')} in force, ${count(scarce.length, 'cap')} nearly used up`)]),
    ...limit(scarce.map(renderScarce), 'caps'),
    ...(withdrawn === 0 ? [] : [row('withdrawn', `${count(withdrawn, 'grant')} revoked or suspended`)]),
    ...renderOpen('open', 'authorization', 'allowed, not executed', status.open_authorizations),
    ...renderOpen('started', 'start', 'running, or killed', status.open_starts),
    ...renderFindings(status, paint, guide),
    ...notCheckedLines(status.not_checked, paint, guide),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function renderKey({ keyid, name, roles, principals, since_seq: since, records }: StatusKey): string {
  const called = name === undefined ? '' : ` (${printable(name)})`;
  const from = since === null ? 'pinned' : `since seq ${since}`;
  const signs = principals.map((pattern) => printable(pattern)).join(', ');
  return row(
    'key',
    `${printable(keyid)}${called}: ${roles.join(', ')}, for ${signs}; ${from}; signed ${count(records, 'record')}`,
  );
}

function renderScarce({ grant_seq: seq, principal_id: principal, meter }: ScarceMeter): string {
  const { unit, left, cap } = meter;
  return row(
    '',
    `seq ${seq} ${printable(principal)}: ${formatQuantity(left)} of ${formatQuantity(cap)} ${printable(unit)} left`,
  );
}

function renderOpen(
  label: string,
  noun: string,
  meaning: string,
  list: readonly { readonly seq: number; readonly tool_name: string }[],
): string[] {
  if (list.length === 0) return [];
  const named = list.slice(0, MAX_NAMED).map(({ seq, tool_name: tool }) => `seq ${seq} ${printable(tool)}`);
  const more = list.length > MAX_NAMED ? `, … ${list.length - MAX_NAMED} more` : '';
  return [row(label, `${count(list.length, noun)} (${meaning}): ${named.join(', ')}${more}`)];
}

function renderFindings(
  { findings_total: total, worst_finding: worst }: LedgerStatus,
  paint: Paint,
  guide: Guide,
): string[] {
  if (worst === null) return [];
  const where = worst.seq === null ? `${printable(worst.at.file)}:${worst.at.line}` : `seq ${worst.seq}`;
  const code = paint(worst.severity === 'error' ? 'red' : 'yellow', worst.code);
  return [
    row(
      'findings',
      `${count(total, 'finding')}, the worst ${code} at ${where}${moreOf(guide.more?.status, '; ')}`,
    ),
  ];
}

function limit(lines: readonly string[], what: string): string[] {
  if (lines.length <= MAX_LINES) return [...lines];
  return [...lines.slice(0, MAX_LINES - 1), row('', `… ${lines.length - MAX_LINES + 1} more ${what}`)];
}
