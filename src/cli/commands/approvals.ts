/** `northroot approvals`: who waits for approval of what, since when. */

import { type Command, Option } from 'commander';
import { setTimeout } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { listPendingApprovals, type PendingApproval } from '../../log/policy/approve.js';
import type { VerifyState } from '../../rules/verify/state.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { type IndexChoice, NO_INDEX, viewOf } from '../view.js';

interface ApprovalsOptions extends IndexChoice {
  readonly all?: boolean;
  readonly follow?: boolean;
  readonly trust?: string;
  readonly format: 'text' | 'json';
}

export function addApprovals(program: Command, run: Run): void {
  program
    .command('approvals')
    .summary('show who waits for approval of what')
    .description(
      'Lists the calls that were denied for want of an approval and that nothing has allowed since: who asked for which tool, with which parameters (their digest) and how much, since when, and who may approve it.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--all', 'also those that are approved, rejected, or under a grant that has ended')
    .option('-f, --follow', 'go on, and write each new request')
    .option('--trust <file>', 'verify with this trust policy')
    .option(...NO_INDEX)
    .addOption(new Option('--format <format>', 'of the list').choices(['text', 'json']).default('text'))
    .action((ledger: string, options: ApprovalsOptions) =>
      run((context) => approvals(context, ledger, options)),
    );
}

const POLL_MS = 1_000;

async function approvals(context: Context, path: string, options: ApprovalsOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const look = async (): Promise<Looked> =>
    viewOf(context, path, undefined, options, trust).inspect(async (state: VerifyState) => {
      await state.links.awaiting.load?.();
      const all = listPendingApprovals(state, new Date().toISOString());
      const meant = all.filter(({ status }) => options.all === true || status === 'waiting');
      return { requests: meant, hasInvalid: state.hasInvalid };
    });
  const { requests, hasInvalid } = await look();
  if (options.format === 'json' && options.follow !== true)
    await terminal.write(`${jsonText({ requests: requests.map(toJson) })}\n`);
  else await write(context, requests, options);
  if (options.follow === true) {
    const known = new Set(requests.map(({ eventId }) => eventId));
    while (!signal.aborted) {
      await setTimeout(POLL_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      const fresh = (await look()).requests.filter(({ eventId }) => !known.has(eventId));
      for (const { eventId } of fresh) known.add(eventId);
      await write(context, fresh, options);
    }
  } else if (requests.length === 0 && options.format === 'text') terminal.say('nobody waits for approval');
  if (hasInvalid)
    terminal.say(`warning: the evidence is broken; northroot verify ${printable(path)} says where`);
  return hasInvalid ? 1 : 0;
}

interface Looked {
  readonly requests: readonly PendingApproval[];
  readonly hasInvalid: boolean;
}

async function write(
  { terminal }: Context,
  requests: readonly PendingApproval[],
  { format }: ApprovalsOptions,
): Promise<void> {
  for (const request of requests)
    await terminal.write(format === 'json' ? `${jsonText(toJson(request))}\n` : describe(request));
}

function describe(request: PendingApproval): string {
  const { seq, eventId, principalId, toolName, paramsDigest, reservation, occurredAt, need, status } =
    request;
  const most = reservation.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  const who = need?.approvers.map((each) => printable(each, 80)).join(' or ') ?? '';
  const lines = [
    `seq ${seq}  ${eventId}  ${status}`,
    `  ${printable(principalId)} asks for ${printable(toolName)}${most === '' ? '' : `, at most ${most}`}, since ${occurredAt}`,
    `  parameters ${printable(paramsDigest)}`,
    ...(need === undefined ? [] : [`  needs ${need.count} of ${who}, by the grant ${need.grantId}`]),
    ...request.approvals.map((each) => `  approved by ${printable(each.principalId)}: ${each.eventId}`),
  ];
  return `${lines.join('\n')}\n`;
}

function toJson(request: PendingApproval): object {
  const { need } = request;
  return {
    event_id: request.eventId,
    seq: request.seq,
    status: request.status,
    principal_id: request.principalId,
    occurred_at: request.occurredAt,
    tool_name: request.toolName,
    tool_params_digest: request.paramsDigest,
    meter_reservation: request.reservation,
    grant_event_id: request.grantId,
    need:
      need === undefined
        ? null
        : { grant_event_id: need.grantId, approvers: need.approvers, count: need.count },
    approvals: request.approvals.map(({ eventId, principalId }) => ({
      event_id: eventId,
      principal_id: principalId,
    })),
  };
}
