/** `northroot gate`: what stands open at a gate, and tokens of its clients. */

import { type Command } from 'commander';
import { setTimeout } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { isPrincipalPattern } from '../../base/value/principal.js';
import { isToolPattern } from '../../base/value/tool.js';
import { askState, type ServiceState } from '../../gate/service/ask-state.js';
import { makeToken, parseTokens, type TokenUse } from '../../gate/service/tokens.js';
import { type Budget, listBudgets } from '../../log/agent/budget.js';
import { changeFile } from '../../log/fs/change-file.js';
import { listPendingApprovals, type PendingApproval } from '../../log/policy/approve.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { renderAccounts } from '../../out/text/accounts.js';
import { unknownRuleText } from '../../out/text/request.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { ofFile, readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, textOrJson } from '../options.js';
import { shellWord } from '../shell-word.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';
import { socketPathOf } from './serve.js';
import { MAX_TOKENS_BYTES } from './serving.js';

interface StatusOptions extends IndexChoice {
  readonly follow?: boolean;
  readonly trust?: string;
  readonly format: 'text' | 'json';
}

interface TokenOptions {
  readonly principal: string[];
  readonly tool?: string[];
  readonly may?: string[];
}

const POLL_MS = 2_000;

export function addGate(program: Command, run: Run): void {
  const gate = program
    .command('gate')
    .summary('show what is open at a gate, or make tokens of its clients')
    .description('Shows what is open at a gate (northroot serve), or makes tokens of its clients.');
  gate
    .command('status')
    .summary('show open calls, budgets and who waits for approval')
    .description(
      'Shows whether a service at LEDGER.sock leads or follows, what each grant has left, the calls that were allowed and are not settled, and the requests that wait for approval.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('-f, --follow', 'go on, and show it again when it changes')
    .option('--trust <file>', 'verify with this trust policy')
    .option(...INDEX)
    .option(...NO_INDEX)
    .addOption(textOrJson())
    .action((ledger: string, options: StatusOptions) => run((context) => status(context, ledger, options)));
  gate
    .command('token')
    .summary("make a client's token")
    .description(
      'Makes a token, adds its digest to the tokens file of northroot serve, and prints it. It is shown only once. The service reads the file when it starts.',
    )
    .argument('<file>', 'the tokens file; created if missing')
    .argument('<name>', 'what logs call the client')
    .requiredOption(
      '--principal <pattern>',
      'whom it may speak for, such as agent:a1 or agent:ci* (repeatable)',
      collect,
    )
    .option('--tool <pattern>', "which tools it may call, such as 'fs.*' (repeatable; default: all)", collect)
    .option('--may <use>', 'call, approve, read or slice (repeatable; default: call)', collect)
    .action((file: string, name: string, options: TokenOptions) =>
      run((context) => addToken(context, file, name, options)),
    );
}

const MAX_SHOWN_REQUESTS = 1_000;

interface Seen {
  /** What the service beside the ledger says of itself; undefined where none answers. */
  readonly service: ServiceState | undefined;
  readonly budgets: readonly Budget[];
  /** The first that wait for approval. */
  readonly requests: readonly PendingApproval[];
  readonly hasMoreRequests: boolean;
  /** How many calls ended nobody has said how. */
  readonly lost: number;
  readonly hasInvalid: boolean;
}

async function status(context: Context, path: string, options: StatusOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const look = async (): Promise<Seen> => {
    const service = await askState(socketPathOf(path));
    return viewOf(context, path, undefined, options, trust).inspect(async (state: VerifyState) => {
      await state.links.awaiting.load?.();
      await state.links.actions.load?.();
      const waiting = MAX_SHOWN_REQUESTS + 1;
      const requests = listPendingApprovals(state, new Date().toISOString(), { waiting });
      return {
        service,
        budgets: listBudgets(state),
        requests: requests.slice(0, MAX_SHOWN_REQUESTS),
        hasMoreRequests: requests.length > MAX_SHOWN_REQUESTS,
        lost: state.unreported,
        hasInvalid: state.hasInvalid,
      };
    });
  };
  let seen = await look();
  let shown = '';
  for (;;) {
    const text = options.format === 'json' ? `${jsonText(toJson(seen))}\n` : describe(seen, context);
    if (text !== shown) await terminal.write(text);
    shown = text;
    if (options.follow !== true) break;
    await setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) break;
    seen = await look();
  }
  if (seen.hasInvalid)
    terminal.say(`warning: the evidence is broken; northroot verify ${shellWord(path)} says where`);
  return seen.hasInvalid ? 1 : 0;
}

function describe(
  { service, budgets, requests, hasMoreRequests, lost }: Seen,
  { terminal }: Context,
): string {
  const rows = budgets.map((budget) => ({
    event_id: budget.eventId,
    seq: budget.seq,
    principal_id: budget.principalId,
    ...defined({
      expires_at: budget.expiresAt,
      parent_event_id: budget.parentId,
      withdrawn: budget.withdrawn,
    }),
    executions: budget.executions,
    meters: budget.balances,
  }));
  const open = openOf(budgets);
  const lines = [
    ...(service === undefined
      ? []
      : [`service: ${service.status}${service.role === undefined ? '' : `, ${service.role}`}`, '']),
    ...renderAccounts(rows, terminal.paint),
    '',
    `${open.length} open ${open.length === 1 ? 'call' : 'calls'}`,
    ...open.map(
      ({ seq, principalId, toolName, since, isBegun }) =>
        `  seq ${seq}  ${printable(principalId)}  ${printable(toolName)}  ${isBegun ? 'runs' : 'allowed'} since ${since}`,
    ),
    ...(lost === 0
      ? []
      : [`${lost} settled as unknown and not reported since: each may still be, by who ran it`]),
    `${hasMoreRequests ? 'more than ' : ''}${requests.length} waiting for approval`,
    ...requests.map((request) => {
      const most = request.reservation
        .map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`)
        .join(', ');
      const by = [...new Set(request.approvals.map(({ principalId }) => printable(principalId)))];
      const unknown = unknownRuleText(request);
      return [
        `  seq ${request.seq}  ${printable(request.principalId)}  ${printable(request.toolName)}${most === '' ? '' : `  ${most}`}  since ${request.occurredAt}`,
        ...(by.length === 0 ? [] : [`    approved by ${by.join(', ')}`]),
        ...(unknown === undefined ? [] : [`    ${unknown}`]),
      ].join('\n');
    }),
  ];
  return `${lines.join('\n')}\n`;
}

interface Open {
  readonly seq: number;
  readonly eventId: string;
  readonly principalId: string;
  readonly toolName: string;
  readonly since: string;
  readonly isBegun: boolean;
}

/** Each once, though it is under every grant above it. */
function openOf(budgets: readonly Budget[]): Open[] {
  const open = new Map<string, Open>();
  for (const { started, unstarted } of budgets) {
    for (const { eventId, seq, principalId, toolName, startedAt: since } of started)
      open.set(eventId, { eventId, seq, principalId, toolName, since, isBegun: true });
    for (const { eventId, seq, principalId, toolName, occurredAt: since } of unstarted)
      open.set(eventId, { eventId, seq, principalId, toolName, since, isBegun: false });
  }
  return [...open.values()].sort((a, b) => a.seq - b.seq);
}

function toJson({ service, budgets, requests, hasMoreRequests, lost }: Seen): object {
  return {
    ...defined({ service }),
    grants: budgets.map(({ eventId, seq, principalId, expiresAt, withdrawn, balances }) => ({
      event_id: eventId,
      seq,
      principal_id: principalId,
      ...defined({ expires_at: expiresAt, withdrawn }),
      meters: balances,
    })),
    open: openOf(budgets).map(({ eventId, seq, principalId, toolName, since, isBegun }) => ({
      event_id: eventId,
      seq,
      principal_id: principalId,
      tool_name: toolName,
      since,
      begun: isBegun,
    })),
    unreported: lost,
    waiting: requests.map(({ eventId, seq, principalId, toolName, reservation, occurredAt, approvals }) => ({
      event_id: eventId,
      seq,
      principal_id: principalId,
      tool_name: toolName,
      meter_reservation: reservation,
      since: occurredAt,
      approved_by: approvals.map((each) => each.principalId),
    })),
    ...(hasMoreRequests ? { more_waiting: true } : {}),
  };
}

async function addToken(
  { terminal }: Context,
  file: string,
  name: string,
  options: TokenOptions,
): Promise<ExitStatus> {
  const { principal, tool, may } = options;
  for (const pattern of principal)
    if (!isPrincipalPattern(pattern))
      throw usageError(
        `${printable(pattern, 80)} is not a valid principal pattern`,
        'such as agent:a1 or agent:*',
      );
  for (const pattern of tool ?? [])
    if (!isToolPattern(pattern))
      throw usageError(`${printable(pattern, 80)} is not a valid tool pattern`, "such as fs.read or 'fs.*'");
  let token = '';
  // Two that are made at once are both kept.
  await changeFile(file, MAX_TOKENS_BYTES, (bytes) => {
    const entries = bytes === undefined ? [] : ofFile(file, () => parseTokens(bytes));
    if (entries.some((entry) => entry.name === name))
      throw usageError(
        `${printable(file)} has a token of the name ${printable(name, 80)}`,
        'take it out first, or give another name',
      );
    const made = newToken({
      name,
      principals: principal,
      ...defined({ tools: tool, may: may as TokenUse[] | undefined }),
    });
    ({ token } = made);
    return Buffer.from(`${jsonText({ tokens: [...entries, made.entry] }, 2)}\n`);
  });
  await terminal.write(`${token}\n`);
  terminal.say('it is shown only here: keep it secret');
  return 0;
}

/** @throws NorthrootError `USAGE` */
function newToken(options: Parameters<typeof makeToken>[0]): ReturnType<typeof makeToken> {
  try {
    return makeToken(options);
  } catch (error) {
    if (error instanceof RangeError) throw usageError(error.message);
    throw error;
  }
}
