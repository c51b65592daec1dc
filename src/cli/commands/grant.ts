/** `northroot grant`: appends a grant made from options. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { didYouMean } from '../../base/bytes/did-you-mean.js';
import { defined } from '../../base/defined.js';
import { ingestJson } from '../../base/json/ingest.js';
import type { JsonValue } from '../../base/json/value.js';
import type { Meter } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { resolveTime } from '../../base/value/when.js';
import type {
  ApprovalRule,
  AuthorizationEvent,
  Bounds,
  ResourceRef,
  Source,
} from '../../format/schema/generated/types.js';
import { PRICE_UNITS, USD } from '../../gate/price/units.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import { draftSliceGrant, grantSlice } from '../../log/fleet/grant-slice.js';
import type { GivenSlice } from '../../log/fleet/slice.js';
import { parseSlice } from '../../log/fleet/slice-json.js';
import { findParent } from '../../log/policy/delegate.js';
import { draftGrant, type GrantOptions } from '../../log/policy/draft-grant.js';
import { findEntitledKeys } from '../../rules/trust/key-entry.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { ingestError } from '../ingest-error.js';
import { readInput, STDIN } from '../input.js';
import { jsonText } from '../json-text.js';
import { amountsOf, repeatable } from '../options.js';
import { viewOf } from '../view.js';
import { appendDraft, OptionProblems, withEntitledKeys } from './append-draft.js';
import { openSigned, type SigningChoice, withSigning } from './ledger-key.js';

interface GrantCommandOptions extends SigningChoice {
  readonly to?: string;
  readonly principal?: string;
  readonly tool?: readonly string[];
  readonly cap?: readonly string[];
  readonly actionCap?: readonly string[];
  readonly rate?: readonly string[];
  readonly notBefore?: string;
  readonly expires?: string;
  readonly concurrency?: string;
  readonly maxDepth?: string;
  readonly resource?: readonly string[];
  readonly outputMode?: string;
  readonly approveTool?: readonly string[];
  readonly approveAbove?: readonly string[];
  readonly approver?: readonly string[];
  readonly approvals?: string;
  readonly approvalAge?: string;
  readonly parent?: string;
  readonly slice?: string;
  readonly intent?: readonly string[];
  readonly intentDigest?: string;
  readonly userIntent?: string;
  readonly policyId?: string;
  readonly policyDigest?: string;
  readonly source?: string;
}

/** The command's options by the names that the builder has for them. */
const FLAGS: Readonly<Record<Exclude<keyof GrantOptions, 'occurredAt'>, string>> = {
  principalId: '--to',
  allowedTools: '--tool',
  meterCaps: '--cap',
  actionCaps: '--action-cap',
  rateLimits: '--rate',
  notBefore: '--not-before',
  expiresAt: '--expires',
  concurrencyLimit: '--concurrency',
  maxDelegationDepth: '--max-depth',
  outputMode: '--output-mode',
  resources: '--resource',
  approvals: '--approve-tool',
  slice: '--slice',
  parent: '--parent',
  intent: '--intent',
  intentDigest: '--intent-digest',
  userIntent: '--user-intent',
  userIntentDigest: '--user-intent',
  policyId: '--policy-id',
  policyDigest: '--policy-digest',
  source: '--source',
};

const OUTPUT_MODES = ['digest_only', 'allow_contentref', 'allow_inline'];

/** The members of a rule of approval likewise. */
const RULE_FLAGS = {
  'approvals.tools': '--approve-tool',
  'approvals.above': '--approve-above',
  'approvals.approvers': '--approver',
  'approvals.count': '--approvals',
  'approvals.maxAgeSeconds': '--approval-age',
} as const;

/** What northroot itself meters: calls, prices, tools that act. A unit that is not among them may be misspelt. */
const COUNTED_UNITS: readonly string[] = ['calls', 'time.ms', 'bytes.evidence', USD, ...PRICE_UNITS];

const NOTES = `
The signer is the grantor: the key must have the role authority or, with --parent, belong to the
delegator. The principal of a grant is the grantee: everything under the grant is done in its name.

An intent is JSON, recorded as the digest of its canonical form. --intent TEXT is the JSON string TEXT,
and --intent @FILE the JSON in a file; northroot digest --json gives the same digest. Several intents
are one list. The default is the intent of the parent, or else the bounds.

With --slice, who is granted, the caps and the expiry are those of the slice; --cap and --expires can lower them.

With --parent, tools, units, limits and expiry that are not given are those of the parent.`;

export function addGrant(program: Command, run: Run): void {
  const command = program
    .command('grant')
    .summary('grant a principal tools within bounds')
    .description(
      'Appends a grant: which tools a principal may call, how much of each unit it may use, and until when. Amounts are exact decimals.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--to <id>', 'the grantee, such as agent:a1; required')
    .option('--principal <id>', 'another name for --to')
    .addOption(repeatable('--tool <pattern>', "a tool such as fs.read, or a pattern such as 'fs.*'"))
    .addOption(repeatable('--cap <amounts>', 'the most that may be used of a unit, such as usd=5'))
    .addOption(repeatable('--action-cap <amounts>', 'the most that one action may reserve or use'))
    .addOption(
      repeatable('--rate <amounts>', 'the most within a window, such as usd.per_5h=1 or calls.per_min=10'),
    )
    .option('--not-before <time>', 'valid from then on: 10m (from now), or a time (default: at once)')
    .option('--expires <time>', 'valid until then: 30m, 2h or 7d (from now), or a time (default: no end)')
    .option('--concurrency <n>', 'how many executions may run at the same time (default: any number)')
    .option('--max-depth <n>', 'how many levels of delegated grants may be below this one (default: any)')
    .addOption(repeatable('--resource <resource>', 'a resource that may be accessed, as KIND=REFERENCE'))
    .addOption(new Option('--output-mode <mode>', 'how outputs may be recorded').choices(OUTPUT_MODES))
    .addOption(
      repeatable(
        '--approve-tool <pattern>',
        'calls of these tools need approval (default with --approver: all)',
      ),
    )
    .addOption(
      repeatable('--approve-above <amounts>', 'only calls that may use more than this, such as usd=10'),
    )
    .addOption(repeatable('--approver <pattern>', "who may approve, such as 'human:*'"))
    .option('--approvals <n>', 'how many of them must approve (default: 1)')
    .option('--approval-age <seconds>', 'the maximum age of an approval (default: any)')
    .option('--parent <id>', 'delegate from this grant (seq, id or id prefix)')
    .option('--slice <file>', 'spend the slice that northroot slice wrote; - for standard input')
    .addOption(repeatable('--intent <text>', 'the purpose: a text, or @FILE with JSON'))
    .option('--intent-digest <digest>', 'the digest of the intent, instead of --intent')
    .option('--user-intent <text>', "the user's request that the intent is part of: a text, or @FILE")
    .option('--policy-id <text>', 'the policy or person that decided (default: manual)')
    .option('--policy-digest <digest>', 'the digest of that policy')
    .option('--source <text>', 'the system that the grant was copied from, and its id there: SYSTEM=ID')
    .addHelpText('after', NOTES);
  withSigning(command).action((ledger: string, options: GrantCommandOptions) =>
    run((context) => grant(context, ledger, options)),
  );
}

async function grant(context: Context, path: string, options: GrantCommandOptions): Promise<ExitStatus> {
  const { terminal } = context;
  const problems = new OptionProblems();
  const said = await readOptions(context, options, problems);
  if (options.slice !== undefined) return grantOfSlice(context, path, options.slice, said, options, problems);
  const draft = (now: string, parent?: AuthorizationEvent): ReturnType<typeof draftGrant> | undefined => {
    const times = {
      ...timeOption(problems, '--not-before', 'notBefore', options.notBefore, now),
      ...timeOption(problems, '--expires', 'expiresAt', options.expires, now),
    };
    return problems.try({ ...FLAGS, ...RULE_FLAGS }, () =>
      draftGrant({ ...said, ...times, occurredAt: now, ...(parent && { parent }) }),
    );
  };
  let parent: AuthorizationEvent | undefined;
  let parentId: string | undefined;
  if (options.parent !== undefined) {
    problems.end('grant');
    const found = await viewOf(context, path, undefined, options).findRecord(options.parent);
    parent = found.event as unknown as AuthorizationEvent;
    parentId = found.eventId;
  }
  // Wrong options are reported before waiting for the ledger.
  draft(new Date().toISOString(), parent);
  problems.end('grant');
  const { event, signer, appended } = await appendDraft(
    context,
    path,
    options,
    (now) => {
      const event = draft(now, parent);
      problems.end('grant');
      return event as object;
    },
    parent?.principal_id,
    parentId === undefined ? undefined : (state, now) => void findParent(state, parentId, now),
  );
  terminal.say(describeGrant(event as AuthorizationEvent, appended.seq, signer));
  sayUncounted(context, said);
  return 0;
}

/** A cap on a misspelt unit bounds nothing, and no later command refuses it. */
function sayUncounted({ terminal }: Context, { meterCaps, actionCaps }: SaidOptions): void {
  for (const unit of new Set(Object.keys({ ...meterCaps, ...actionCaps }))) {
    if (COUNTED_UNITS.includes(unit)) continue;
    const meant = didYouMean(unit, COUNTED_UNITS);
    const text = `note: a cap on ${unit} bounds only calls that reserve or report ${unit}`;
    terminal.say(meant === undefined ? text : `${text}: ${meant}`);
  }
}

/** The grant that spends a slice, made once. */
async function grantOfSlice(
  context: Context,
  path: string,
  file: string,
  said: SaidOptions,
  options: GrantCommandOptions,
  problems: OptionProblems,
): Promise<ExitStatus> {
  const slice = await readSliceFile(context, file);
  const { principalId, ...bounds } = said;
  if ((principalId as string | undefined) !== undefined && principalId !== slice.principalId)
    problems.add('--to', `expected ${slice.principalId}, that of the slice, found ${printable(principalId)}`);
  if (options.parent !== undefined) problems.add('--parent', 'expected it or --slice, found both');
  const now = new Date().toISOString();
  const times = {
    ...timeOption(problems, '--not-before', 'notBefore', options.notBefore, now),
    ...timeOption(problems, '--expires', 'expiresAt', options.expires, now),
  };
  const draft = (): ReturnType<typeof draftSliceGrant> | undefined =>
    problems.try({ ...FLAGS, ...RULE_FLAGS }, () =>
      draftSliceGrant(slice, { ...bounds, ...times, occurredAt: now }),
    );
  const event = draft();
  problems.end('grant');
  const { ledger, signer } = await openSigned(context, path, options, { decides: true });
  try {
    const { seq, eventId, status } = await grantSlice(
      ledger,
      slice,
      { ...bounds, ...times },
      { signal: context.signal },
    ).catch(async (error: unknown) => {
      const keys = findEntitledKeys(await ledger.listKeys(), event as object, { at: now });
      throw withEntitledKeys(error, keys, event as object);
    });
    await context.terminal.write(`${jsonText({ seq, event_id: eventId, status })}\n`);
    const text = describeGrant(event as AuthorizationEvent, seq, signer?.publicKey.keyid);
    context.terminal.say(status === 'exists' ? `granted before: seq ${seq}` : text);
    return 0;
  } finally {
    await ledger.close();
  }
}

async function readSliceFile(context: Context, file: string): Promise<GivenSlice> {
  const ingested = ingestJson(await readInput(file, context));
  const name = file === STDIN ? 'standard input' : printable(file);
  try {
    if (ingested.value !== undefined) return parseSlice(ingested.value);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usageError(`${name} is no slice: ${error.message}`, 'northroot slice PARENT writes one');
  }
  throw usageError(
    `${name} is no slice: ${ingestError(ingested, '').message}`,
    'northroot slice PARENT writes one',
  );
}

type SaidOptions = Omit<GrantOptions, 'parent' | 'slice' | 'notBefore' | 'expiresAt' | 'occurredAt'>;

async function readOptions(
  context: Context,
  options: GrantCommandOptions,
  problems: OptionProblems,
): Promise<SaidOptions> {
  const { to, principal, tool, policyId, policyDigest, intentDigest, outputMode } = options;
  if (to !== undefined && principal !== undefined && to !== principal)
    problems.add('--principal', 'it is the same as --to, found another');
  const amounts = (
    flag: string,
    name: 'meterCaps' | 'actionCaps' | 'rateLimits',
    texts: readonly string[] | undefined,
  ): Partial<GrantOptions> =>
    texts === undefined ? {} : { [name]: amountsOf(texts, (problem) => problems.add(flag, problem)) };
  const intent = await readIntents(context, options.intent);
  const userIntent =
    options.userIntent === undefined ? undefined : await readIntent(context, options.userIntent);
  const source = options.source === undefined ? undefined : readSource(options.source, problems);
  return {
    // Of another type, or missing, it is the builder's to refuse.
    principalId: (to ?? principal) as string,
    ...defined({ allowedTools: tool }),
    ...amounts('--cap', 'meterCaps', options.cap),
    ...amounts('--action-cap', 'actionCaps', options.actionCap),
    ...amounts('--rate', 'rateLimits', options.rate),
    ...numberOption('concurrencyLimit', options.concurrency),
    ...numberOption('maxDelegationDepth', options.maxDepth),
    ...(outputMode === undefined ? {} : { outputMode: outputMode as NonNullable<Bounds['output_mode']> }),
    ...readApprovals(options, problems),
    ...(options.resource === undefined ? {} : { resources: readResources(options.resource, problems) }),
    ...defined({ intent, intentDigest, userIntent, policyId, policyDigest, source }),
  };
}

/** One rule: several are for the API. */
function readApprovals(
  options: GrantCommandOptions,
  problems: OptionProblems,
): Pick<GrantOptions, 'approvals'> {
  const { approveTool, approveAbove, approver = [], approvals, approvalAge } = options;
  const isGiven = [approveTool, approveAbove, options.approver, approvals, approvalAge].some(
    (each) => each !== undefined,
  );
  if (!isGiven) return {};
  const above =
    approveAbove && amountsOf(approveAbove, (problem) => problems.add('--approve-above', problem));
  return {
    approvals: [
      {
        tools: approveTool ?? ['*'],
        approvers: approver,
        ...defined({ above }),
        ...numberOption('count', approvals),
        ...numberOption('maxAgeSeconds', approvalAge),
      },
    ],
  };
}

function timeOption(
  problems: OptionProblems,
  flag: string,
  name: 'notBefore' | 'expiresAt',
  text: string | undefined,
  now: string,
): Partial<GrantOptions> {
  if (text === undefined) return {};
  const time = problems.read(flag, () => resolveTime(text, now));
  return time === undefined ? {} : { [name]: time };
}

/** What is no number is given on as it is, and refused by the builder. */
function numberOption<K extends string>(name: K, text: string | undefined): { readonly [N in K]?: number } {
  if (text === undefined) return {};
  return { [name]: /^\d{1,15}$/.test(text) ? Number(text) : text } as { readonly [N in K]?: number };
}

function readResources(texts: readonly string[], problems: OptionProblems): ResourceRef[] {
  return texts.flatMap((text) => {
    const [, kind = '', reference = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
    if (kind === '')
      problems.add(
        '--resource',
        `expected KIND=REFERENCE, such as file=/srv/data, found ${printable(text, 80)}`,
      );
    return kind === '' ? [] : [{ kind, reference }];
  });
}

function readSource(text: string, problems: OptionProblems): Source | undefined {
  const [, system = '', id = ''] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (system !== '') return { system, id };
  problems.add('--source', `expected SYSTEM=ID, such as jira=OPS-17, found ${printable(text, 80)}`);
  return undefined;
}

/** One intent is itself; several are a list. */
async function readIntents(
  context: Context,
  texts: readonly string[] | undefined,
): Promise<JsonValue | undefined> {
  if (texts === undefined) return undefined;
  const intents: JsonValue[] = [];
  for (const text of texts) intents.push(await readIntent(context, text));
  return intents.length === 1 ? intents[0] : intents;
}

async function readIntent(context: Context, text: string): Promise<JsonValue> {
  if (!text.startsWith('@')) {
    if ((await kindOfPath(text).catch(() => 'missing')) === 'file')
      context.terminal.say(
        `note: the intent is the text ${printable(text)}; --intent @${printable(text)} takes what the file says`,
      );
    return text;
  }
  const path = text.slice(1);
  const ingested = ingestJson(await readInput(path, context));
  if (ingested.value !== undefined) return ingested.value;
  const error = ingestError(
    ingested,
    'an intent file is JSON; of any other file give northroot digest FILE as --intent-digest',
  );
  // A fault of an option's value is not one of evidence.
  throw new CommandError(error.code, `${printable(path)}: ${error.message}`, {
    exitStatus: 2,
    cause: error,
    hint: error.hint,
  });
}

function describeGrant(event: AuthorizationEvent, seq: number, signer: string | undefined): string {
  const { authorization, principal_id: principal } = event;
  const bounds = (authorization.kind === 'grant' && authorization.bounds) || {};
  const { expires_at: until, not_before: from, allowed_tools: tools = [], meter_caps: caps = [] } = bounds;
  const { action_caps: each = [], rate_limits: rates = [], approvals: rules = [] } = bounds;
  const by = signer === undefined ? 'not signed' : `signed by key ${signer}`;
  const parts = [
    `granted ${printable(principal)} ${printable(tools.join(' '), 400)}`,
    `at most ${listAmounts(caps)}`,
    ...(each.length === 0 ? [] : [`${listAmounts(each)} for one action`]),
    ...(rates.length === 0 ? [] : [listAmounts(rates)]),
    ...rules.map(describeRule),
    ...(from === undefined ? [] : [`from ${from}`]),
    until === undefined ? 'without an end' : `until ${until}`,
    by,
    `seq ${seq}`,
  ];
  return parts.join(', ');
}

/** `approval of deploy above 100 usd by 2 of human:*`. */
function describeRule({ tools, above = [], approvers, count = 1 }: ApprovalRule): string {
  const beyond = above.length === 0 ? '' : ` above ${listAmounts(above)}`;
  return printable(
    `approval of ${tools.join(' ')}${beyond} by ${String(count)} of ${approvers.join(' ')}`,
    400,
  );
}

function listAmounts(vector: readonly Meter[]): string {
  return vector.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
}
