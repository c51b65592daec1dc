/** `northroot grant`: writes a grant, so that nobody writes bounds as JSON by hand. */

import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { ingestJson } from '../../base/json/ingest.js';
import type { JsonValue } from '../../base/json/value.js';
import type { Meter } from '../../base/value/meter.js';
import { formatQuantity } from '../../base/value/quantity.js';
import { resolveTime } from '../../base/value/when.js';
import type { AuthorizationEvent, Bounds, ResourceRef, Source } from '../../format/schema/generated/types.js';
import { kindOfPath } from '../../log/fs/file-system.js';
import { draftGrant, type GrantOptions } from '../../log/policy/draft-grant.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { ingestError } from '../ingest-error.js';
import { readInput } from '../input.js';
import { amountsOf, collect } from '../options.js';
import { viewOf } from '../view.js';
import { appendDraft, OptionProblems } from './append-draft.js';
import { type SigningChoice, withSigning } from './ledger-key.js';

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
  parent: '--parent',
  intent: '--intent',
  intentDigest: '--intent-digest',
  userIntent: '--user-intent',
  userIntentDigest: '--user-intent',
  policyId: '--policy-id',
  policyDigest: '--policy-digest',
  source: '--source',
};

const NOTES = `
Who grants is who signs: the key must have the role authority, or, with --parent, be one of
the delegator's own. The grant's principal is the grantee, in whose name everything under it is done.

An intent is JSON, recorded by the digest of its canonical bytes. --intent TEXT is the JSON string TEXT
and --intent @FILE the JSON in a file: northroot digest --json gives the same digest. Given again, the
intents are one list. Without it the intent is the parent's, or the bounds themselves.

With --parent, what is not said is taken over from the parent: its tools, its units, its limits, its expiry.`;

export function addGrant(program: Command, run: Run): void {
  const command = program
    .command('grant')
    .summary('allow a principal some tools, within bounds')
    .description(
      'Appends an allowed grant: which tools somebody may call, how much of each unit may be used, until when. Amounts are exact decimals.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--to <id>', 'who is granted, such as agent:a1; required')
    .option('--principal <id>', 'another name for --to')
    .option(
      '--tool <pattern>',
      "a tool such as fs.read, or a pattern such as 'fs.*'; may be given again",
      collect,
    )
    .option(
      '--cap <amounts>',
      'the most that may be used of a unit, such as usd=5; may be given again',
      collect,
    )
    .option(
      '--action-cap <amounts>',
      'the most that one action may reserve, and one execution use; may be given again',
      collect,
    )
    .option(
      '--rate <amounts>',
      'the most within a window, such as usd.per_5h=1 or calls.per_min=10; may be given again',
      collect,
    )
    .option('--not-before <time>', 'valid from then on: 10m (from now), or a time')
    .option('--expires <time>', 'valid until then: 30m, 2h or 7d (from now), or a time')
    .option('--concurrency <n>', 'how many executions may run at a time')
    .option('--max-depth <n>', 'how many delegated grants may hang below this one, one under the other')
    .option(
      '--resource <resource>',
      'a resource that may be touched, as KIND=REFERENCE; may be given again',
      collect,
    )
    .addOption(
      new Option('--output-mode <mode>', 'how far outputs may be recorded').choices([
        'digest_only',
        'allow_contentref',
        'allow_inline',
      ]),
    )
    .option(
      '--approve-tool <pattern>',
      'calls of these tools need approval; may be given again (default with --approver: all)',
      collect,
    )
    .option(
      '--approve-above <amounts>',
      'only calls that may use more than this, such as usd=10; may be given again',
      collect,
    )
    .option('--approver <pattern>', "who may approve, such as 'human:*'; may be given again", collect)
    .option('--approvals <n>', 'how many of them must approve (default: 1)')
    .option('--approval-age <seconds>', 'how old an approval may be')
    .option('--parent <id>', 'delegate from this grant: its seq, its id, or a prefix of it')
    .option('--intent <text>', 'what it is for: a text, or @FILE with JSON; may be given again', collect)
    .option('--intent-digest <digest>', 'the digest of the intent, in place of --intent')
    .option(
      '--user-intent <text>',
      'what the user asked for, of which the intent is a part: a text, or @FILE',
    )
    .option('--policy-id <text>', 'who or what decided (default: manual)')
    .option('--policy-digest <digest>', 'the digest of that policy')
    .option(
      '--source <text>',
      'the foreign system that the grant is taken over from, and its id there: SYSTEM=ID',
    )
    .addHelpText('after', NOTES);
  withSigning(command).action((ledger: string, options: GrantCommandOptions) =>
    run((context) => grant(context, ledger, options)),
  );
}

async function grant(context: Context, path: string, options: GrantCommandOptions): Promise<ExitStatus> {
  const { terminal } = context;
  const problems = new OptionProblems();
  const said = await readOptions(context, options, problems);
  const draft = (now: string, parent?: AuthorizationEvent): ReturnType<typeof draftGrant> | undefined => {
    const times = {
      ...timeOption(problems, '--not-before', 'notBefore', options.notBefore, now),
      ...timeOption(problems, '--expires', 'expiresAt', options.expires, now),
    };
    return problems.try(FLAGS, () =>
      draftGrant({ ...said, ...times, occurredAt: now, ...(parent && { parent }) }),
    );
  };
  let parent: AuthorizationEvent | undefined;
  if (options.parent !== undefined) {
    problems.end('grant');
    const found = await viewOf(context, path, undefined, options).findRecord(options.parent);
    parent = found.event as unknown as AuthorizationEvent;
  }
  // Wrong options are told of before the ledger is waited for.
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
  );
  terminal.say(describeGrant(event as AuthorizationEvent, appended.seq, signer));
  return 0;
}

async function readOptions(
  context: Context,
  options: GrantCommandOptions,
  problems: OptionProblems,
): Promise<Omit<GrantOptions, 'parent' | 'notBefore' | 'expiresAt' | 'occurredAt'>> {
  const { to, principal, tool, policyId, policyDigest, intentDigest, outputMode } = options;
  if (to !== undefined && principal !== undefined && to !== principal) {
    problems.add('--principal', 'it is the same as --to, found another');
  }
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
  const number = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  const above =
    approveAbove && amountsOf(approveAbove, (problem) => problems.add('--approve-above', problem));
  return {
    approvals: [
      {
        tools: approveTool ?? ['*'],
        approvers: approver,
        ...defined({ above, count: number(approvals), maxAgeSeconds: number(approvalAge) }),
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
function numberOption(
  name: 'concurrencyLimit' | 'maxDelegationDepth',
  text: string | undefined,
): Partial<GrantOptions> {
  if (text === undefined) return {};
  return { [name]: /^\d{1,15}$/.test(text) ? Number(text) : text };
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
    if ((await kindOfPath(text).catch(() => 'missing')) === 'file') {
      context.terminal.say(
        `note: the intent is the text ${printable(text)}; --intent @${printable(text)} takes what the file says`,
      );
    }
    return text;
  }
  const path = text.slice(1);
  const ingested = ingestJson(await readInput(path, context));
  if (ingested.value !== undefined) return ingested.value;
  const error = ingestError(
    ingested,
    'an intent file is JSON; of any other file give northroot digest FILE as --intent-digest',
  );
  // An intent is an option's value: what is wrong with it is no judgement on evidence.
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
  const { action_caps: each = [], rate_limits: rates = [] } = bounds;
  const by = signer === undefined ? 'not signed' : `signed by key ${signer}`;
  const parts = [
    `granted ${printable(principal)} ${printable(tools.join(' '), 400)}`,
    `at most ${listAmounts(caps)}`,
    ...(each.length === 0 ? [] : [`${listAmounts(each)} for one action`]),
    ...(rates.length === 0 ? [] : [listAmounts(rates)]),
    ...(from === undefined ? [] : [`from ${from}`]),
    until === undefined ? 'without an end' : `until ${until}`,
    by,
    `seq ${seq}`,
  ];
  return parts.join(', ');
}

function listAmounts(vector: readonly Meter[]): string {
  return vector.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
}
