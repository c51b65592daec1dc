/** `northroot approvals`: who waits for approval of what, since when; and one request with all that its approver has to know. */

import { type Command, Option } from 'commander';
import { setTimeout } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { listPendingApprovals, type PendingApproval } from '../../log/policy/approve.js';
import { readRequest, type RequestView } from '../../log/policy/explain-request.js';
import { pendingJson, requestJson } from '../../log/policy/request-json.js';
import { approversText, renderRequest, type RequestGuide, unknownRuleText } from '../../out/text/request.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { shellWord } from '../shell-word.js';
import { type IndexChoice, INDEX, NO_INDEX, viewOf } from '../view.js';

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
      'Lists the calls that were denied for want of an approval and that nothing has allowed since: who asked for which tool, with which parameters (their digest) and how much, since when, and who may approve it. With a request, shows that one alone: its parameters, where authorize --attach kept them and they have the digest that was recorded; what is left of each cap; which rules ask, and who has approved; what an approval would allow, and how to give it.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[request]', 'one request: its seq, its id, or a prefix of it')
    .option('--all', 'also those that are approved, rejected, or under a grant that has ended')
    .option('-f, --follow', 'go on, and write each new request')
    .option('--trust <file>', 'verify with this trust policy')
    .option(...INDEX)
    .option(...NO_INDEX)
    .addOption(new Option('--format <format>', 'of the list').choices(['text', 'json']).default('text'))
    .action((ledger: string, request: string | undefined, options: ApprovalsOptions) =>
      run((context) =>
        request === undefined
          ? approvals(context, ledger, options)
          : showRequest(context, ledger, request, options),
      ),
    );
}

async function showRequest(
  context: Context,
  path: string,
  wanted: string,
  options: ApprovalsOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  if (options.all === true || options.follow === true)
    throw usageError('--all and --follow are for the list: leave them out, or the request');
  if (path === STDIN) throw usageError('a request needs a file: standard input is read only once');
  const trust = await readTrustPolicy(options.trust);
  const now = new Date().toISOString();
  const request = await readRequest(viewOf(context, path, wanted, options, trust), wanted, { now });
  await terminal.write(
    options.format === 'json'
      ? `${jsonText(requestJson(request), 2)}\n`
      : renderRequest(request, terminal.paint, now, requestGuide(path, request)),
  );
  return sayBroken(context, path, request.hasInvalid);
}

/** The commands that answer a request. */
export function requestGuide(path: string, { eventId }: RequestView): RequestGuide {
  const which = `${shellWord(path)} ${eventId}`;
  return {
    approve: `northroot approve ${which} --key FILE`,
    reject: `northroot reject ${which} --key FILE`,
    content: `northroot approvals ${which} --format json has it all`,
  };
}

const POLL_MS = 1_000;

async function approvals(context: Context, path: string, options: ApprovalsOptions): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const trust = await readTrustPolicy(options.trust);
  const look = async (): Promise<Looked> =>
    viewOf(context, path, undefined, options, trust).inspect(async (state: VerifyState) => {
      await state.links.awaiting.load?.();
      const selection = options.all === true ? {} : { waiting: Infinity };
      const requests = listPendingApprovals(state, new Date().toISOString(), selection);
      return { requests, hasInvalid: state.hasInvalid };
    });
  const { requests, hasInvalid } = await look();
  if (options.format === 'json' && options.follow !== true)
    await terminal.write(`${jsonText({ requests: requests.map(pendingJson) })}\n`);
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
  } else if (options.format === 'text') {
    terminal.say(
      requests.length === 0
        ? options.all === true
          ? `no request is open; northroot report ${shellWord(path)} shows what was approved and used`
          : 'nobody waits for approval'
        : `hint: northroot approvals ${shellWord(path)} SEQ shows one with its parameters`,
    );
  }
  return sayBroken(context, path, hasInvalid);
}

function sayBroken({ terminal }: Context, path: string, hasInvalid: boolean): ExitStatus {
  if (hasInvalid)
    terminal.say(`warning: the evidence is broken; northroot verify ${shellWord(path)} says where`);
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
    await terminal.write(format === 'json' ? `${jsonText(pendingJson(request))}\n` : describe(request));
}

function describe(request: PendingApproval): string {
  const { seq, eventId, principalId, toolName, paramsDigest, reservation, occurredAt, need, status } =
    request;
  const most = reservation.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  const who = approversText(need?.approvers ?? []);
  const unknown = unknownRuleText(request);
  const lines = [
    `seq ${seq}  ${eventId}  ${status}`,
    `  ${printable(principalId)} asks for ${printable(toolName)}${most === '' ? '' : `, at most ${most}`}, since ${occurredAt}`,
    `  parameters ${printable(paramsDigest)}`,
    ...(need === undefined ? [] : [`  needs ${need.count} of ${who}, by the grant ${need.grantId}`]),
    ...request.approvals.map((each) => `  approved by ${printable(each.principalId)}: ${each.eventId}`),
    ...(unknown === undefined ? [] : [`  ${unknown}`]),
  ];
  return `${lines.join('\n')}\n`;
}
