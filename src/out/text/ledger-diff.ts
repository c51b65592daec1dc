/** Where two ledgers part, for people. */

import { printable } from '../../base/bytes/printable.js';
import type { DiffRecord, DiffSide, LedgerDiff } from '../../proof/ledger-diff.js';
import { type Guide, moreOf, type Paint } from './guide.js';

/** The most members that are listed. */
const MAX_MEMBERS = 20;

/** The result as lines of text, each ending in `\n`. Everything that comes from the ledgers is made printable. */
export function renderLedgerDiff(diff: LedgerDiff, paint: Paint, guide: Guide = {}): string {
  const { a, b, common, fork } = diff;
  const lines = [
    `${paint('bold', paint(fork === null ? 'green' : 'red', diff.relation.replaceAll('_', ' ')))}  ${summarise(diff)}`,
    `  a           ${renderSide(a)}`,
    `  b           ${renderSide(b)}`,
    `  in common   ${count(common.records)}, root ${common.root}`,
  ];
  if (fork !== null) {
    lines.push('', ...renderRecord('a', fork.a, paint), '', ...renderRecord('b', fork.b, paint));
    const more = fork.differs.length - MAX_MEMBERS;
    const members = fork.differs.slice(0, MAX_MEMBERS).map((pointer) => printable(pointer));
    if (members.length > 0)
      lines.push('', `  differ in   ${members.join(', ')}${more > 0 ? `, and ${more} more` : ''}`);
  }
  lines.push('', `neither was verified${moreOf(guide.more?.diff, ': ')}`);
  return lines.map((line) => `${line}\n`).join('');
}

function summarise({ relation, a, b, common }: LedgerDiff): string {
  switch (relation) {
    case 'identical':
      return `both have the same ${count(a.records)}`;
    case 'a_extends_b':
      return `a has all that b has, and ${count(a.records - b.records)} more`;
    case 'b_extends_a':
      return `b has all that a has, and ${count(b.records - a.records)} more`;
    case 'forked':
      return `after ${count(common.records)} in common they are not the same`;
  }
}

function renderSide({ paths, records, torn_bytes: torn }: DiffSide): string {
  const names = paths.map((path) => printable(path)).join(', ');
  return `${names}: ${count(records)}${torn === 0 ? '' : `, and ${torn} bytes of a torn line`}`;
}

function renderRecord(name: string, record: DiffRecord, paint: Paint): string[] {
  const { file, line, byte_offset: offset, seq, code } = record;
  const lines = [
    `${paint('bold', name)} has at ${printable(file)}:${line} (byte ${offset})`,
    ...(seq === null ? [] : [`  seq         ${seq}`]),
    ...(record.event_id === null ? [] : [`  event       ${record.event_id}`]),
    ...(record.event_type === null ? [] : [`  type        ${printable(record.event_type)}`]),
    ...(record.principal_id === null ? [] : [`  who         ${printable(record.principal_id)}`]),
    ...(record.occurred_at === null ? [] : [`  when        ${printable(record.occurred_at)}`]),
  ];
  if (code !== null) lines.push(`  fault       ${code}`);
  return lines;
}

function count(records: number): string {
  return `${records} ${records === 1 ? 'record' : 'records'}`;
}
