/** The options that select records. */

import { type Command, InvalidArgumentError } from 'commander';
import { printable } from '../base/bytes/printable.js';
import { defined } from '../base/defined.js';
import { isJsonObject } from '../base/json/value.js';
import { tryReadTime } from '../base/value/when.js';
import { findRecord, type ReadRecord } from '../log/read/read-records.js';
import type { UnmatchedName } from '../log/read/subject.js';
import { isWhole, type RecordSelection } from '../rules/selection.js';
import { usageError } from './command-error.js';
import type { Context } from './context.js';
import { openLedgerInput, STDIN } from './input.js';
import { assertPatterns, assertSpan, pastInstant, SINCE } from './options.js';
import { shellWord } from './shell-word.js';
import type { Terminal } from './terminal.js';

export interface SelectionOptions {
  readonly principal?: string;
  readonly grant?: string;
  readonly tool?: string;
  readonly since?: string;
  readonly until?: string;
  readonly last?: string;
}

/** Adds the options to a command. */
export function addSelection(command: Command): Command {
  return command
    .option('--principal <pattern>', 'only events of this principal; may end in *')
    .option('--grant <id>', 'only this grant and everything under it (seq, id or id prefix)')
    .option('--tool <pattern>', 'only events of this tool; may end in *')
    .option('--since <time>', SINCE, pastInstant)
    .option('--until <time>', 'only events before this time', pastInstant)
    .option('--last <span>', 'only events of the last 24h, 7d or 4w', pastSpan);
}

/** A time is no span: `--last 2026-03-01` could be meant for the day. */
function pastSpan(text: string): string {
  if (tryReadTime(text) !== undefined)
    throw new InvalidArgumentError('Expected a span such as 24h, 7d or 4w; --since takes a time.');
  return pastInstant(text);
}

/**
 * The selection that the options ask for.
 *
 * @throws NorthrootError `USAGE` for a bad value, and for a record that is not a grant; `RECORD_NOT_FOUND` for a grant that is not there.
 */
export async function toSelection(
  context: Context,
  ledger: string,
  { principal, grant, tool, since: from, until, last }: SelectionOptions,
): Promise<RecordSelection> {
  if (from !== undefined && last !== undefined) throw usageError('--since and --last exclude each other');
  const since = from ?? last;
  assertSpan(since, until);
  assertPatterns({ principal, tool });
  const { record, isGrant } = await findGrantRecord(context, ledger, grant);
  if (record !== undefined && !isGrant)
    throw usageError(
      `${printable(grant ?? '')} is not a grant: nothing is under it`,
      `northroot why ${shellWord(ledger)} ${record.seq} says what it is under`,
    );
  return {
    ...defined({ since, until, principal, tool }),
    ...(record === undefined ? {} : { grantId: record.eventId }),
  };
}

/** The record that `--grant` names, and whether it claims to be a grant. @throws NorthrootError `USAGE`, `RECORD_NOT_FOUND` */
export async function findGrantRecord(
  context: Context,
  ledger: string,
  grant: string | undefined,
): Promise<{ readonly record: ReadRecord | undefined; readonly isGrant: boolean }> {
  if (grant === undefined) return { record: undefined, isGrant: false };
  if (ledger === STDIN) throw usageError('--grant needs a file: standard input is read only once');
  const record = await findRecord(await openLedgerInput(ledger, context), grant);
  const { event_type: type, authorization } = record.event;
  const isGrant =
    type === 'authorization' && isJsonObject(authorization) && authorization['kind'] === 'grant';
  return { record, isGrant };
}

/** Warns of names that no record has, or else of an empty selection. */
export function warnOfNothing(
  terminal: Terminal,
  unmatched: readonly UnmatchedName[],
  selected: number,
  selection: RecordSelection,
): void {
  for (const { of, pattern, known } of unmatched) {
    const names = known.map((name) => printable(name)).join(', ');
    const has = names === '' ? `; it names no ${of}` : `; it has ${names}`;
    terminal.say(`warning: the ledger never names the ${of} ${printable(pattern)}${has}`);
  }
  if (selected > 0 || unmatched.length > 0 || isWhole(selection)) return;
  terminal.say('warning: no record is selected, so there is nothing of the ledger in what is written');
}
