/** `northroot adjust`: corrects what counts as used under a grant, by a refund or a provider's bill. */

import { createHash } from 'node:crypto';
import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import type { NorthrootError } from '../../base/error.js';
import { digestFromBase64url, toDigestText } from '../../base/value/digest.js';
import { type Meter, readAmounts } from '../../base/value/meter.js';
import { formatQuantity, toRational } from '../../base/value/quantity.js';
import type { AdjustmentEvent, AuthorizationEvent, ContentRef } from '../../format/schema/generated/types.js';
import { type AdjustmentOptions, draftAdjustment } from '../../log/policy/draft-adjustment.js';
import { findGrants } from '../../log/policy/revoke.js';
import type { LedgerView } from '../../log/read/ledger-view.js';
import type { ReadRecord } from '../../log/read/read-records.js';
import { judgeAdjustment } from '../../rules/bounds/adjustment.js';
import type { Grant } from '../../rules/bounds/grant.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { CommandError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { openInput } from '../input.js';
import { amountsOf, BASES, repeatable } from '../options.js';
import { viewOf } from '../view.js';
import { appendDraft, OptionProblems } from './append-draft.js';
import { type SigningChoice, withSigning } from './ledger-key.js';

interface AdjustCommandOptions extends SigningChoice {
  readonly grant?: string;
  readonly credit?: readonly string[];
  readonly debit?: readonly string[];
  readonly reason?: string;
  readonly execution?: string;
  readonly basis?: NonNullable<AdjustmentEvent['meter_basis']>;
  readonly evidence?: string;
  readonly principal?: string;
}

/** The command's options by the names that the builder has for them. */
const FLAGS: Readonly<Record<Exclude<keyof AdjustmentOptions, 'source' | 'occurredAt'>, string>> = {
  grantId: '--grant',
  credit: '--credit',
  debit: '--debit',
  reason: '--reason',
  executionId: '--execution',
  meterBasis: '--basis',
  evidence: '--evidence',
  principalId: '--principal',
};

const NOTES = `
A credit gives budget back, so its key must have the role authority. A principal cannot credit its own grant.`;

export function addAdjust(program: Command, run: Run): void {
  const command = program
    .command('adjust')
    .summary('correct what counts as used under a grant')
    .description(
      'Appends an adjustment. From then on a credit lowers, and a debit raises, the amount used under a grant and the grants above it. Rates and concurrency are not affected.',
    )
    .argument('<ledger>', 'the file or folder')
    .option('--grant <id>', 'the grant (seq, id or id prefix); required')
    .addOption(repeatable('--credit <amounts>', 'amounts to give back, such as usd=0.3'))
    .addOption(repeatable('--debit <amounts>', 'amounts to charge'))
    .option('--reason <code>', 'why, such as REFUND; required')
    .option('--execution <id>', 'the execution to correct (seq, id or id prefix)')
    .addOption(new Option('--basis <basis>', 'how the amount is known').choices(BASES))
    .option('--evidence <file>', 'the bill or credit note; its digest and size are recorded')
    .option('--principal <id>', 'who adjusts (default: the creator of the ledger)')
    .addHelpText('after', NOTES);
  withSigning(command).action((ledger: string, options: AdjustCommandOptions) =>
    run((context) => adjust(context, ledger, options)),
  );
}

/** Stands for an id that is looked up once the other options are right. */
const SOME_ID = toDigestText('A'.repeat(43));

async function adjust(context: Context, path: string, options: AdjustCommandOptions): Promise<ExitStatus> {
  const { terminal } = context;
  const problems = new OptionProblems();
  const { reason, basis, grant: wanted } = options;
  const said = {
    reason: reason as string,
    ...amounts(problems, 'credit', options.credit),
    ...amounts(problems, 'debit', options.debit),
    ...defined({ meterBasis: basis, principalId: options.principal }),
  };
  const missing = wanted === undefined ? ('' as const) : SOME_ID;
  problems.try(FLAGS, () => draftAdjustment({ ...said, grantId: missing }));
  problems.end('adjust');
  const grant = await findGrantRecord(viewOf(context, path, undefined, options), wanted as string);
  const execution = await findExecution(viewOf(context, path, undefined, options), options.execution);
  const evidence = options.evidence === undefined ? undefined : await contentOf(context, options.evidence);
  const { event, appended, signer } = await appendDraft(
    context,
    path,
    options,
    (now, ledger) => {
      const principalId = options.principal ?? ledger.principalId;
      if (options.credit !== undefined && principalId === grant.event['principal_id'])
        throw new CommandError('SELF_CREDIT', `${printable(principalId)} cannot credit a grant of its own`, {
          hint: 'give who adjusts with --principal',
        });
      return draftAdjustment({
        ...said,
        principalId,
        occurredAt: now,
        grantId: grant.eventId,
        ...(execution === undefined ? {} : { executionId: execution.eventId }),
        ...defined({ evidence }),
      });
    },
    grant.event['principal_id'] as string,
    // A debit is evidence of what was used, over a cap or not; a credit that is too high gives nothing back, and is a violation.
    options.credit === undefined
      ? undefined
      : (state) => assertCredit(state, grant.eventId, readAmounts(said.credit ?? {}).vector),
  );
  const { direction, meters } = event as AdjustmentEvent;
  const list = meters.map(({ unit, amount }) => `${formatQuantity(amount)} ${unit}`).join(', ');
  const by = signer === undefined ? 'not signed' : `signed by key ${signer}`;
  const verb = direction === 'credit' ? 'credited' : 'debited';
  terminal.say(`${verb} ${list} to the grant of seq ${grant.seq}, ${by}, seq ${appended.seq}`);
  return 0;
}

/** @throws NorthrootError `ADJUSTMENT_EXCEEDED` for more than counts as used under the grant or one above it */
function assertCredit(state: VerifyState, grantId: string, meters: readonly Meter[]): void {
  const [grant] = findGrants(state, [grantId]) as [Grant];
  const facts = {
    direction: 'credit',
    principalId: '',
    amounts: meters.map(({ unit, amount }) => ({ unit, amount: toRational(amount) })),
    isEstimated: false,
    system: undefined,
  } as const;
  const exceeded = judgeAdjustment(facts, grant).findings.find(({ code }) => code === 'ADJUSTMENT_EXCEEDED');
  if (exceeded === undefined) return;
  const { code, expected, actual } = exceeded;
  throw new CommandError(code, `--credit: expected ${expected}, found ${actual}; nothing was recorded`, {
    hint: 'northroot budget LEDGER shows what counts as used',
  });
}

function amounts(
  problems: OptionProblems,
  name: 'credit' | 'debit',
  texts: readonly string[] | undefined,
): Partial<AdjustmentOptions> {
  if (texts === undefined) return {};
  return { [name]: amountsOf(texts, (problem) => problems.add(`--${name}`, problem)) };
}

async function findGrantRecord(ledger: LedgerView, wanted: string): Promise<ReadRecord> {
  const record = await ledger.findRecord(wanted);
  const { event_type: type, authorization, decision } = record.event as Partial<AuthorizationEvent>;
  if ((type as string | undefined) !== 'authorization' || authorization?.kind !== 'grant')
    throw refuse('GRANT_NOT_A_GRANT', `--grant: the record of seq ${record.seq} is not a grant`);
  if (decision !== 'allow')
    throw refuse('GRANT_DENIED', `--grant: the grant of seq ${record.seq} was denied`);
  return record;
}

async function findExecution(
  ledger: LedgerView,
  wanted: string | undefined,
): Promise<ReadRecord | undefined> {
  if (wanted === undefined) return undefined;
  const record = await ledger.findRecord(wanted);
  if (record.event['event_type'] === 'execution') return record;
  throw refuse('EXECUTION_NOT_FOUND', `--execution: the record of seq ${record.seq} is not an execution`);
}

/** A file's digest and size. */
async function contentOf(context: Context, file: string): Promise<ContentRef> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of openInput(file, context)) {
    hash.update(chunk);
    size += chunk.length;
  }
  return { digest: digestFromBase64url(hash.digest('base64url')), size_bytes: size };
}

function refuse(code: string, message: string): NorthrootError {
  return new CommandError(code, message, {
    hint: 'northroot log LEDGER lists the records',
  });
}
