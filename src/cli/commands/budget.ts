/** `northroot budget`: what each grant caps, and what is used, reserved and left: now, or at a point in the ledger. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { writeJson } from '../../base/json/write-json.js';
import { fromDigestText } from '../../base/value/digest.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import { type Point, replayTo } from '../../log/read/read-records.js';
import { type AccountRow, renderAccounts } from '../../out/text/accounts.js';
import { spanText } from '../../out/text/words.js';
import {
  decimalsOf,
  findGrant,
  type GrantAccount,
  grantAccounts,
  isGrantUnder,
  listOpenStarts,
  nameOfKey,
  reserveAllStarted,
  type StartedAuthorization,
  type UnstartedAction,
  unstartedActions,
} from '../../rules/report/accounts.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openLedgerInput, readTrustPolicy, STDIN } from '../input.js';
import { safeSink } from '../json-text.js';
import { textOrJson } from '../options.js';
import { shellWord } from '../shell-word.js';
import type { Terminal } from '../terminal.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

interface BudgetOptions extends IndexChoice {
  readonly grant?: string;
  readonly at?: string;
  readonly trust?: string;
  readonly format: 'text' | 'json';
}

export function addBudget(program: Command, run: Run): void {
  program
    .command('budget')
    .summary('show what is left of each grant')
    .description(
      'Shows the accounts of each grant: per unit the cap and the amounts used, reserved and left. Also lists actions that were allowed and not started, with their age, and actions that were started and not recorded (in text, these count as reserved). northroot abandon settles actions that will not finish. The ledger is verified up to that point: exits with 1 if evidence is broken, 3 if a bound was exceeded.',
    )
    .argument('<ledger>', 'the file or folder; - for standard input')
    .option('--grant <id>', 'only this grant (seq, id or id prefix)')
    .option('--at <point>', 'after the record with this seq, or at this time; reads the whole ledger')
    .option('--trust <file>', 'verify with this trust policy')
    .option(...INDEX)
    .option(...NO_INDEX)
    .addOption(textOrJson())
    .action((ledger: string, options: BudgetOptions) => run((context) => budget(context, ledger, options)));
}

async function budget(context: Context, ledger: string, options: BudgetOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const name = shellWord(ledger);
  const point = toPoint(options.at);
  const trust = await readTrustPolicy(options.trust);
  const view = viewOf(context, ledger, undefined, options, trust);
  let only: string | undefined;
  if (options.grant !== undefined) {
    if (ledger === STDIN) throw usageError('--grant needs a file: standard input is read only once');
    only = (await view.findRecord(options.grant)).eventId;
  }
  const look = (state: VerifyState): Promise<Looked> => tellAccounts(state, ledger, only, options, terminal);
  const { hasGrants, hasInvalid, hasViolation } =
    point === 'end'
      ? await view.inspect(look)
      : await look(await replayTo(await openLedgerInput(ledger, context), point, trust, signal));
  if (!hasGrants) terminal.say(`no grants${point === 'end' ? '' : ' at that point'}`);
  if (hasInvalid) terminal.say(`warning: the evidence is broken; northroot verify ${name} says where`);
  else if (hasViolation) terminal.say(`warning: a bound was broken; northroot verify ${name} says where`);
  return hasInvalid ? 1 : hasViolation ? 3 : 0;
}

interface Looked {
  /** False where there is nothing to tell of; JSON says so itself. */
  readonly hasGrants: boolean;
  readonly hasInvalid: boolean;
  readonly hasViolation: boolean;
}

/** Accounts are made as they are written: those of all grants may be more than memory should hold. */
async function tellAccounts(
  state: VerifyState,
  ledger: string,
  only: string | undefined,
  { format }: BudgetOptions,
  terminal: Terminal,
): Promise<Looked> {
  const { hasInvalid, hasViolation } = state;
  const accounts = only === undefined ? grantAccounts(state) : [findOnly(state, only, ledger)];
  // An index that turns out to be damaged is read anew: nothing may be written before all of it that is needed was read.
  const grants = only === undefined ? [...state.links.grants.values()] : [];
  const hasGrants = only !== undefined || grants.some(({ decision }) => decision === 'allow');
  const isMeant = ({ grantId }: { readonly grantId: string | undefined }): boolean =>
    only === undefined || isGrantUnder(state, grantId, only);
  const starts = listOpenStarts(state).filter(isMeant);
  if (format === 'json') {
    const sink = safeSink({ write: (piece) => terminal.write(piece) });
    const actions = mapped(unstartedActions(state), isMeant, (action) => ({
      event_id: action.eventId,
      seq: action.seq,
      ...defined({ grant_event_id: action.grantId }),
      principal_id: action.principalId,
      tool_name: action.toolName,
      occurred_at: action.occurredAt,
      ...defined({ expires_at: action.expiresAt }),
      meter_reservation: action.reservation,
    }));
    await writeJson(sink, { grants: rowsOf(accounts), actions, starts: starts.map(toStartJson) }, 2);
    await terminal.write('\n');
  } else if (hasGrants) {
    const held = rowsOf(reserveAllStarted(state, accounts));
    const rows = renderAccounts(held, terminal.paint, Infinity, (keyid) => nameOfKey(state, keyid));
    const now = new Date().toISOString();
    const actions = [...mapped(unstartedActions(state), isMeant, (each) => each)];
    const shown = actions.slice(0, MAX_SHOWN).map((each) => describeAction(each, now));
    const more = actions.length - shown.length;
    if (more > 0) shown.push(`  and ${more} more that were allowed and not started: --format json`);
    await terminal.write(`${[...rows, ...shown, ...starts.map(describeStart)].join('\n')}\n`);
  }
  return { hasGrants: hasGrants || format === 'json', hasInvalid, hasViolation };
}

function* rowsOf(accounts: Iterable<GrantAccount>): Generator<AccountRow, void, void> {
  for (const account of accounts) yield toRow(account);
}

function* mapped<T, U>(all: Iterable<T>, isMeant: (each: T) => boolean, as: (each: T) => U): Generator<U> {
  for (const each of all) if (isMeant(each)) yield as(each);
}

/** So many actions are shown as text. */
const MAX_SHOWN = 100;

function describeAction(
  { seq, toolName, principalId, occurredAt, expiresAt, reservation }: UnstartedAction,
  now: string,
): string {
  const held = reservation.map(({ unit, amount }) => `${unit} ${formatQuantity(amount)}`).join(', ');
  const holds = held === '' ? '' : `, ${held} reserved`;
  const age = spanText(occurredAt, now);
  const isLate = expiresAt !== undefined && compareTimestamps(expiresAt, now) <= 0;
  const end = expiresAt === undefined ? '' : `, ${isLate ? 'expired' : 'expires'} ${printable(expiresAt)}`;
  return `  seq ${seq}  allowed to ${printable(principalId)} ${age} and not started: ${printable(toolName)}${holds}${end}`;
}

function describeStart({ seq, toolName, principalId, startedAt, meters }: StartedAuthorization): string {
  const known = meters.map(({ unit, amount }) => `${unit} ${formatQuantity(amount)}`).join(', ');
  const uses = known === '' ? '' : `, ${known} held`;
  return `  seq ${seq}  started by ${printable(principalId)} at ${printable(startedAt)} and not recorded: ${printable(toolName)}${uses}`;
}

function toStartJson(start: StartedAuthorization): object {
  return {
    event_id: start.eventId,
    seq: start.seq,
    auth_event_id: start.authorizationId,
    ...defined({ grant_event_id: start.grantId }),
    principal_id: start.principalId,
    tool_name: start.toolName,
    started_at: start.startedAt,
    recorder: start.recorder,
    meter_known: start.meters,
  };
}

function findOnly(state: VerifyState, id: string, ledger: string): GrantAccount {
  const grant = state.links.grants.get(fromDigestText(id));
  const account = findGrant(state, id);
  if (grant?.decision === 'allow' && account !== undefined) return account;
  if (grant !== undefined)
    throw new CommandError('GRANT_DENIED', `${id} was denied: it has no accounts`, {
      exitStatus: 2,
      hint: `northroot why ${shellWord(ledger)} ${grant.place.seq} says why`,
    });
  const isElse = state.events.find(fromDigestText(id)) !== undefined;
  throw new CommandError(
    'GRANT_NOT_FOUND',
    isElse ? `${id} is not a grant` : `${id} was not recorded yet at that point`,
    { exitStatus: 2, hint: `northroot budget ${shellWord(ledger)} lists the grants` },
  );
}

function toPoint(at: string | undefined): Point {
  if (at === undefined) return 'end';
  if (/^\d{1,15}$/.test(at)) return { seq: Number(at) };
  const time = /^\d{4}-\d{2}-\d{2}$/.test(at) ? `${at}T00:00:00Z` : at;
  if (isTimestamp(time)) return { time };
  throw usageError(
    `${printable(at)} is neither a seq nor a time`,
    'such as 17, 2026-03-01 or 2026-03-01T12:00:00Z',
  );
}

function toRow(grant: GrantAccount): AccountRow & { readonly decimals: object } {
  return {
    event_id: grant.eventId,
    seq: grant.seq,
    principal_id: grant.principalId,
    ...defined({
      expires_at: grant.expiresAt,
      parent_event_id: grant.parentId,
      withdrawn: grant.withdrawn,
    }),
    signers: grant.signers,
    executions: grant.executions,
    meters: grant.balances,
    ...(grant.actionCaps.length === 0 ? {} : { action_caps: grant.actionCaps }),
    decimals: decimalsOf(grant.balances, grant.actionCaps),
  };
}
