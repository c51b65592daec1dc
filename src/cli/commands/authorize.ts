/** `northroot authorize`: asks the ledger's grants whether something may be done, and records the answer. */

import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { type Digest, parseDigest, sha256Digest } from '../../base/value/digest.js';
import type { Meter } from '../../base/value/meter.js';
import { isMeasuredUnit } from '../../format/event/meter-basis.js';
import type { ResourceRef } from '../../format/schema/generated/types.js';
import { authorizeAction, MAX_WAIT_MS, type RecordedDecision } from '../../log/policy/authorize.js';
import type { ApprovalNeed } from '../../log/policy/choose-approvals.js';
import { type DecidingBound, describeLeft } from '../../log/policy/deciding-bound.js';
import { approversText } from '../../out/text/request.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { IMPORTED_HINT } from '../hints.js';
import { ingestError } from '../ingest-error.js';
import { readInput, readTrustPolicy, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { collect, meterList, principalId, requestKey, resourceList, toolName } from '../options.js';
import { shellWord } from '../shell-word.js';
import type { Terminal } from '../terminal.js';
import { viewOf } from '../view.js';
import { type DecidingChoice, decidingOptions, findSigner, withDeciding } from './ledger-key.js';
import { expiryOf } from './slice.js';

interface AuthorizeCommandOptions extends DecidingChoice {
  readonly principal: string;
  readonly tool: string;
  readonly grant?: string;
  readonly params?: string;
  readonly paramsDigest?: string;
  readonly intent?: string;
  readonly intentDigest?: string;
  readonly reserve?: Meter[];
  readonly expires?: string;
  readonly resource?: ResourceRef[];
  readonly requestKey?: string;
  readonly approval?: string[];
  readonly wait?: string;
  readonly attach?: boolean;
}

/** A deny is no failure of the command, and no invalid evidence: the bound holds. */
const DENIED: ExitStatus = 3;

export function addAuthorize(program: Command, run: Run): void {
  const command = program
    .command('authorize')
    .summary("ask the ledger's grants, and record the decision")
    .description(
      'Asks whether a principal may call a tool now. Applies the grants in the ledger and the rules of verify, and appends the decision, allow or deny, as an authorization. With a command after --, the parameters are its command line; nothing is run (northroot record runs it). Exits with 0 for allow, 3 for deny.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[command...]', 'after --: the command to authorize; it is digested, not run')
    .requiredOption('--principal <id>', 'the principal that asks, such as agent:a1', principalId)
    .requiredOption('--tool <name>', 'the tool to call, such as fs.read', toolName)
    .option(
      '--grant <id>',
      'use this grant (seq, id or id prefix; default: the first that allows the action)',
    )
    .option('--params <file>', 'the parameters as JSON; - for standard input')
    .option('--params-digest <digest>', 'the digest of the parameters, instead of --params')
    .option('--intent <file>', 'the intent as JSON (default: the tool and its parameters)')
    .option('--intent-digest <digest>', 'the digest of the intent, instead of --intent')
    .option('--reserve <amounts>', 'the most that may be used, such as usd=0.25,calls=1', meterList)
    .option(
      '--expires <time>',
      'start by then: 15m, 2h, or a time with Z or an offset; after that the reservation is released (default: no end)',
    )
    .option('--resource <resource>', 'a resource that it accesses, such as file=/etc/hosts', resourceList)
    .option(
      '--request-key <key>',
      'your name for this request: a repeated request gets the same answer, and nothing more is recorded',
      requestKey,
    )
    .option(
      '--approval <id>',
      'use this approval: its seq, its id, or a prefix of it (repeatable; default: those for exactly this call)',
      collect,
    )
    .option('--wait <span>', 'where an approval is needed, wait for it so long, such as 10m')
    .option(
      '--attach',
      'keep the parameters in LEDGER.contents, for who approves and audits; without it only their digest is kept',
    );
  withDeciding(command).action((ledger: string, words: string[], options: AuthorizeCommandOptions) =>
    run((context) => authorize(context, ledger, words, options)),
  );
}

async function authorize(
  context: Context,
  path: string,
  command: readonly string[],
  options: AuthorizeCommandOptions,
): Promise<ExitStatus> {
  const { terminal, signal } = context;
  // Before anything is read: a time from now is one from when the command was given.
  const expiresAt = expiryOf(options.expires);
  const params = await readParams(context, command, options);
  const intent = await readIntent(context, options, params.digest);
  const trust = await readTrustPolicy(options.trust);
  const signer = await findSigner(terminal, path, options.key);
  const grantId =
    options.grant === undefined
      ? undefined
      : (await viewOf(context, path, undefined, options).findRecord(options.grant)).eventId;
  const waitMs = waitOf(options.wait);
  const approvalIds = await findApprovals(context, path, options);
  const answer = await authorizeAction(
    path,
    {
      principalId: options.principal,
      toolName: options.tool,
      paramsDigest: params.digest,
      intentDigest: intent,
      ...defined({
        meters: options.reserve,
        expiresAt,
        resources: options.resource,
        grantId,
        requestKey: options.requestKey,
        approvalIds,
      }),
    },
    {
      ...(await decidingOptions(terminal, path, signer, options)),
      honourImported: options.honourImported,
      signal,
      ...defined({ trust, waitMs, attach: options.attach === true ? params.content : undefined }),
      onApprovalNeeded: (asked) => {
        terminal.say(`${describeNeed(asked, path)}; waiting`);
      },
    },
  );
  const { decision, decisionCode, checks, reason = '', recorded, remaining, bound, need } = answer;
  await terminal.write(
    `${jsonText({
      decision,
      decision_code: decisionCode,
      seq: recorded.seq,
      event_id: recorded.eventId,
      status: recorded.status,
      grant_event_id: answer.grantId ?? null,
      checks,
      bound: bound === undefined ? null : boundJson(bound),
      ...(answer.approvalIds === undefined ? {} : { approval_event_ids: answer.approvalIds }),
      ...(need === undefined ? {} : { approval: needJson(need) }),
      remaining,
    })}\n`,
  );
  if (decision === 'allow') {
    const isKnown = recorded.status === 'exists';
    if (command.length > 0)
      terminal.say(
        `allowed${isKnown ? ' before' : ''}; nothing was run: northroot record ${shellWord(path)} --auth ${recorded.eventId} -- …`,
      );
    if (!isKnown) sayUncapped(terminal, options.reserve ?? [], remaining);
    return 0;
  }
  const left = bound && describeLeft(bound);
  const rest = left === undefined ? '' : `; ${left}`;
  terminal.say(`denied: ${decisionCode}: ${printable(reason, 400)}${rest}`);
  if (need !== undefined) terminal.say(`hint: ${describeNeed(answer, path)}`);
  else if (decisionCode === 'IMPORTED_AUTHORITY') terminal.say(`hint: ${IMPORTED_HINT}`);
  else if (recorded.status === 'exists') terminal.say('hint: ask again with another --request-key');
  return DENIED;
}

/** A misspelt unit is bounded by nothing. The finding itself is made once a grant and unit. */
function sayUncapped(
  terminal: Terminal,
  reserved: readonly Meter[],
  capped: readonly { readonly unit: string }[],
): void {
  const units = reserved
    .map(({ unit }) => unit)
    .filter((unit) => !isMeasuredUnit(unit) && !capped.some((each) => each.unit === unit));
  if (units.length > 0) terminal.say(`note: METER_UNCAPPED: the grant caps no ${units.join(', ')}`);
}

/** In milliseconds. */
function waitOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const [, amount = '', unit = ''] = /^(\d{1,6})(s|m|h)$/.exec(text) ?? [];
  const waitMs = Number(amount) * WAIT_UNITS[unit as keyof typeof WAIT_UNITS];
  // A wait is a timer, which takes no more.
  if (amount === '' || waitMs > MAX_WAIT_MS)
    throw usageError(`--wait: expected a time such as 30s, 10m or 2h, found ${printable(text, 80)}`);
  return waitMs;
}

const WAIT_UNITS = { s: 1_000, m: 60_000, h: 3_600_000 } as const;

async function findApprovals(
  context: Context,
  path: string,
  options: AuthorizeCommandOptions,
): Promise<string[] | undefined> {
  if (options.approval === undefined) return undefined;
  const ids: string[] = [];
  for (const wanted of options.approval)
    ids.push((await viewOf(context, path, undefined, options).findRecord(wanted)).eventId);
  return ids;
}

function needJson({ grantId, approvers, count, grantIds }: ApprovalNeed): object {
  return { grant_event_id: grantId, approvers, count, grant_event_ids: grantIds };
}

/** Who can do what about it. */
function describeNeed({ recorded, need }: Pick<RecordedDecision, 'recorded' | 'need'>, path: string): string {
  const who = approversText(need?.approvers ?? []);
  const many = need === undefined || need.count === 1 ? who : `${need.count} of ${who}`;
  return `it needs approval by ${many}: northroot approve ${shellWord(path)} ${recorded.eventId}`;
}

function boundJson({ code, grantId, unit, limit, used, left }: DecidingBound): object {
  const amounts = unit === undefined ? {} : { unit, limit, used, left };
  return { code, grant_event_id: grantId ?? null, ...amounts };
}

interface Params {
  readonly digest: Digest;
  /** Canonical; undefined where only the digest is known. */
  readonly content: Uint8Array | undefined;
}

async function readParams(
  context: Context,
  command: readonly string[],
  { params, paramsDigest, attach = false }: AuthorizeCommandOptions,
): Promise<Params> {
  const given = [params, paramsDigest, command.length > 0 ? command : undefined].filter(
    (each) => each !== undefined,
  );
  if (given.length !== 1)
    throw usageError(
      'expected one of --params, --params-digest and a command after --',
      'what is to be done must be known to be allowed',
    );
  if (paramsDigest !== undefined) {
    if (attach)
      throw usageError('--attach needs the parameters, by --params or as a command: a digest has no content');
    return { digest: digestArgument(paramsDigest), content: undefined };
  }
  const content =
    params === undefined
      ? contentOfCommand(command)
      : canonicalOfJson(await readInput(params, context), params);
  return { digest: sha256Digest(content), content };
}

async function readIntent(
  context: Context,
  { intent, intentDigest, tool, params: file }: AuthorizeCommandOptions,
  params: Digest,
): Promise<Digest> {
  if (intent !== undefined && intentDigest !== undefined)
    throw usageError('--intent and --intent-digest exclude each other');
  if (intentDigest !== undefined) return digestArgument(intentDigest);
  if (intent === STDIN && file === STDIN)
    throw usageError('only one of --params and --intent can come from standard input');
  if (intent !== undefined) return sha256Digest(canonicalOfJson(await readInput(intent, context), intent));
  return sha256Digest(canonicalBytes({ tool_name: tool, tool_params_digest: params }));
}

/** The parameters of a command are its words. */
export function digestOfCommand(command: readonly string[]): Digest {
  return sha256Digest(contentOfCommand(command));
}

function contentOfCommand(command: readonly string[]): Uint8Array {
  return canonicalBytes([...command]);
}

function digestArgument(text: string): Digest {
  try {
    return parseDigest(text);
  } catch (cause) {
    throw new CommandError('USAGE', `${printable(text)} is not a valid digest`, {
      hint: 'northroot digest --json FILE writes one',
      cause,
    });
  }
}

function canonicalOfJson(bytes: Uint8Array, name: string): Uint8Array {
  const ingested = ingestJson(bytes);
  if (ingested.value !== undefined) return canonicalBytes(ingested.value);
  throw ingestError(ingested, `northroot canonicalize ${printable(name)} tells more`);
}
