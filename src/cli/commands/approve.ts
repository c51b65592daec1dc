/** `northroot approve` and `northroot reject`: somebody's word on a call that asks for approval. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { resolveTime } from '../../base/value/when.js';
import type { ApprovalEvent, AuthorizationEvent } from '../../format/schema/generated/types.js';
import { type ApprovalOptions, draftApproval, findPendingApproval } from '../../log/policy/approve.js';
import type { Ledger } from '../../log/writer/ledger.js';
import { readRequest } from '../../log/policy/explain-request.js';
import type { ReadRecord } from '../../log/read/read-records.js';
import { amountsText, approversText, renderRequest } from '../../out/text/request.js';
import { canAsk, confirm } from '../confirm.js';
import { requestGuide } from './approvals.js';
import type { Terminal } from '../terminal.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { amountsOf, collect, principalId } from '../options.js';
import { viewOf } from '../view.js';
import { OptionProblems, withEntitledKeys } from './append-draft.js';
import { jsonText } from '../json-text.js';
import { openSigned, principalOfKey, type SigningChoice, withSigning } from './ledger-key.js';
import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, membersOf } from '../../base/json/value.js';
import { readSmallFile } from '../../log/fs/file-system.js';
import {
  completePasskeyApproval,
  type PasskeyAnswer,
  preparePasskeyApproval,
} from '../../log/policy/passkey.js';
import { usageError } from '../command-error.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { APPROVAL_REQUIRED } from '../../rules/verify/approvals.js';

interface ApproveCommandOptions extends SigningChoice {
  readonly limit?: readonly string[];
  readonly expires?: string;
  readonly code?: string;
  readonly principal?: string;
  readonly yes?: boolean;
  readonly passkey?: string;
  readonly assertion?: string;
}

/** A record, and an assertion. */
const MAX_ANSWER_BYTES = 131_072;

const FLAGS: Readonly<Record<keyof ApprovalOptions, string>> = {
  decision: 'decision',
  principalId: '--principal',
  limit: '--limit',
  expiresAt: '--expires',
  code: '--code',
  occurredAt: 'occurredAt',
};

const NOTES = `
REQUEST is the denied action that northroot authorize recorded; northroot approvals lists them.
On a terminal the request is shown first, as northroot approvals LEDGER REQUEST shows it.
An approval is for one call: this tool, these parameters, under this grant or one below it. It is used once.
Who approves is who signs: a key of the agent's own does not approve for it.`;

export function addApprove(program: Command, run: Run): void {
  const command = program
    .command('approve')
    .summary('approve one call that was asked for')
    .description(
      'Appends an approval of a denied action that needs one, so that the same call is allowed once.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('<request>', 'the denied action: its seq, its id, or a prefix of it')
    .option(
      '--limit <amounts>',
      'the most that it may use, such as usd=5 (repeatable; default: what was asked for)',
      collect,
    )
    .option('--expires <time>', 'good until then: 10m (from now), or a time (default: no end)')
    .option('--yes', 'do not show the request and ask')
    .addHelpText('after', NOTES);
  addAnswer(command, 'approve', run);
}

export function addReject(program: Command, run: Run): void {
  const command = program
    .command('reject')
    .summary('reject one call that was asked for')
    .description(
      'Appends a rejection of a denied action. It also withdraws the approvals of the call by the same principal that were not used.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('<request>', 'the denied action: its seq, its id, or a prefix of it');
  addAnswer(command, 'reject', run);
}

function addAnswer(command: Command, decision: ApprovalEvent['decision'], run: Run): void {
  command
    .option('--code <code>', 'why, such as REVIEWED')
    .option(
      '--principal <id>',
      'who answers (default: the one principal that the key is for, or who made the ledger)',
      principalId,
    );
  command
    .option(
      '--passkey <origin>',
      'append nothing, but print what a passkey is asked for on that page, such as https://approve.example.com; needs --principal',
    )
    .option('--assertion <file>', 'append what a passkey signed: {"event":…,"credential":…}');
  withSigning(command).action((ledger: string, request: string, options: ApproveCommandOptions) =>
    run((context) =>
      options.passkey === undefined && options.assertion === undefined
        ? answer(context, ledger, request, decision, options)
        : answerByPasskey(context, ledger, request, decision, options),
    ),
  );
}

/** How far the answer goes. */
function readBounds({ limit, expires }: ApproveCommandOptions, now: string, problems: OptionProblems) {
  return {
    limit: limit && amountsOf(limit, (problem) => problems.add('--limit', problem)),
    expiresAt:
      expires === undefined ? undefined : problems.read('--expires', () => resolveTime(expires, now)),
  };
}

async function answer(
  context: Context,
  path: string,
  wanted: string,
  decision: ApprovalEvent['decision'],
  options: ApproveCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  const problems = new OptionProblems();
  const now = new Date().toISOString();
  const { limit, expiresAt } = readBounds(options, now, problems);
  const view = viewOf(context, path, undefined, options);
  const found = await view.findRecord(wanted);
  const request = found.eventId;
  if (decision === 'approve' && options.yes !== true && canAsk()) {
    problems.end(decision);
    const shown = await readRequest(view, request, { now });
    const { content } = requestGuide(path, shown);
    process.stderr.write(`${renderRequest(shown, terminal.paint, now, { content })}\n`);
    const lower = Object.entries(limit ?? {}).map(
      ([unit, amount]) => `${printable(amount)} ${printable(unit)}`,
    );
    const most = lower.length > 0 ? lower.join(', ') : amountsText(shown.wouldAllow.limit);
    const until = expiresAt === undefined ? '' : `, until ${expiresAt}`;
    const question = `Approve this call, once${most === '' ? '' : `, at most ${most}`}${until}?`;
    await confirm(question, signal, 'northroot reject refuses the call');
  }
  const { ledger, signer } = await openSigned(context, path, options);
  const at = new Date().toISOString();
  try {
    const keys = await ledger.listKeys();
    const own = principalOfKey(keys, signer);
    const said = {
      decision,
      principalId: options.principal ?? own ?? ledger.principalId,
      occurredAt: at,
      ...defined({ limit, expiresAt, code: options.code }),
    };
    let event: object | undefined;
    const appended = await ledger
      .decide(
        (state) => {
          event = problems.try(FLAGS, () => draftApproval(state, request, said));
          problems.end(decision);
          return { event: event as object, isAnew: true };
        },
        { signal },
      )
      .catch((error: unknown) => {
        throw event === undefined
          ? error
          : withEntitledKeys(error, findEntitledKeys(keys, event, { at }), event);
      });
    const { seq, eventId, status } = appended;
    await terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    terminal.say(describe(event as ApprovalEvent, seq, signer && `key ${signer.publicKey.keyid}`));
    await sayWhatIsMissing(terminal, ledger, found, decision);
    return 0;
  } finally {
    await ledger.close();
  }
}

async function answerByPasskey(
  context: Context,
  path: string,
  wanted: string,
  decision: ApprovalEvent['decision'],
  options: ApproveCommandOptions,
): Promise<ExitStatus> {
  const { passkey: origin, assertion, principal, code } = options;
  if (origin !== undefined && assertion !== undefined)
    throw usageError(
      '--passkey and --assertion exclude each other',
      'they are the first and the second step',
    );
  const answered = assertion === undefined ? undefined : await readPasskeyAnswer(assertion);
  const problems = new OptionProblems();
  const now = new Date().toISOString();
  const { limit, expiresAt } = readBounds(options, now, problems);
  problems.end(decision);
  const view = viewOf(context, path, undefined, options);
  const found = await view.findRecord(wanted);
  const request = found.eventId;
  const { terminal, signal } = context;
  const { ledger } = await openSigned(context, path, options);
  try {
    if (answered === undefined) {
      const principalId = principal ?? ledger.principalId;
      const said = { decision, principalId, occurredAt: now, ...defined({ limit, expiresAt, code }) };
      const asked = await ledger.inspect((_, state) =>
        preparePasskeyApproval(state, request, { ...said, origin: origin as string }),
      );
      await terminal.write(`${jsonText(asked, 2)}\n`);
      return 0;
    }
    const { principal_id: by } = answered.event as { principal_id?: unknown };
    const principalId = principal ?? (typeof by === 'string' ? by : '');
    const { seq, eventId, status } = await ledger.decide(
      (state) => completePasskeyApproval(state, request, answered, { decision, principalId, now }),
      { signal },
    );
    await terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    terminal.say(describe(answered.event as ApprovalEvent, seq, 'a passkey'));
    await sayWhatIsMissing(terminal, ledger, found, decision);
    return 0;
  } finally {
    await ledger.close();
  }
}

async function readPasskeyAnswer(file: string): Promise<PasskeyAnswer> {
  const { value } = ingestJson(await readSmallFile(file, MAX_ANSWER_BYTES));
  const { event, credential } = membersOf(value);
  if (isJsonObject(event) && isJsonObject(credential)) return { event, credential };
  throw usageError(
    `${printable(file)}: expected {"event":…,"credential":…}, found other text`,
    'the event that --passkey printed, and JSON.stringify of what navigator.credentials.get gave',
  );
}

/** An approval may be valid, and count for nothing. */
async function sayWhatIsMissing(
  terminal: Terminal,
  ledger: Ledger,
  { event, eventId }: ReadRecord,
  decision: ApprovalEvent['decision'],
): Promise<void> {
  const { decision_code: code } = event as unknown as AuthorizationEvent;
  if (decision === 'reject') return;
  if (code !== APPROVAL_REQUIRED) {
    terminal.say(`note: the call was denied with ${code}, which no approval lifts`);
    return;
  }
  const now = new Date().toISOString();
  const pending = await ledger.inspect((_, state) => findPendingApproval(state, eventId, now));
  if (pending?.status === 'ended')
    terminal.say('note: a grant of the call has expired or is withdrawn, and while it is no approval counts');
  if (pending?.need === undefined) return;
  const { approvers, count } = pending.need;
  terminal.say(
    `note: the call still needs approval by ${count === 1 ? '' : `${count} of `}${approversText(approvers)}`,
  );
}

function describe(event: ApprovalEvent, seq: number, signer: string | undefined): string {
  const { decision, principal_id: principal, tool_name: tool, meter_limit: limit = [] } = event;
  const most = amountsText(limit);
  const parts = [
    `${printable(principal)} ${decision === 'approve' ? 'approved' : 'rejected'} ${printable(tool)}`,
    ...(most === '' ? [] : [`at most ${most}`]),
    ...(event.expires_at === undefined ? [] : [`until ${event.expires_at}`]),
    signer === undefined ? 'not signed' : `signed by ${signer}`,
    `seq ${seq}`,
  ];
  return parts.join(', ');
}
