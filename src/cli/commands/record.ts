/** `northroot record`: runs a command under an authorization and records what it used; or records what was done elsewhere. */

import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import { type Command, Option } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import type { Meter } from '../../base/value/meter.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import { isFindingCode } from '../../format/finding/catalog.js';
import {
  ABANDONED,
  assertNoSlice,
  ABORTED,
  checkDetails,
  draftAbandonment,
  draftExecution,
  type ExecutionDetails,
  type ExecutionOutcome,
  type ExecutionRequest,
  findPermission,
  findSpent,
  measuredBases,
  type Permission,
  raiseMeters,
  resolveAuthorization,
  stateReserved,
  type Unmetered,
} from '../../log/policy/record.js';
import { startExecution } from '../../log/policy/start.js';
import { Ledger, type LedgerOptions } from '../../log/writer/ledger.js';
import type { Appended } from '../../log/writer/options.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { CommandError, usageError } from '../command-error.js';
import type { Context, ExitStatus, Outcome, Run } from '../context.js';
import { hasHint } from '../hints.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { BASES, code, instant, meterList, toolName } from '../options.js';
import { digestOfCommand } from './authorize.js';
import { type DecidingChoice, decidingOptions, findSigner, withDeciding } from './ledger-key.js';
import { describeAppended } from './notices.js';

interface RecordOptions extends DecidingChoice {
  readonly auth: string;
  readonly tool?: string;
  readonly meter?: Meter[];
  readonly outcome?: 'success' | 'failure' | 'unknown';
  readonly resume?: string | true;
  readonly abandon?: string | true;
  readonly errorCode?: string;
  readonly basis?: ExecutionDetails['meterBasis'];
  readonly unmetered?: Unmetered;
  readonly model?: string;
  readonly provider?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
}

const OUTCOMES = ['success', 'failure', 'unknown'];

/** Exit statuses of a shell: the command cannot be run, is not found, or was ended by a signal. */
const NOT_RUN = 126;
const NOT_FOUND = 127;
const SIGNALLED = 128;

export function addRecord(program: Command, run: Run): void {
  const command = program
    .command('record')
    .summary('run a command under an authorization, and record what it used')
    .description(
      'Runs the command after -- and appends its execution, with time.ms and calls as measured; exits with the status of the command. First appends a start, which counts until the execution is recorded, so that an action that is allowed once runs once. If the command may not run now, it is not run: the exit status is 1, with an error that has a code. Without a command, records what was done elsewhere: --outcome, --meter, --started-at, --ended-at. Use is recorded as it was, even if it is more than was allowed. After a recorder was killed, --resume runs the command it had started, and --abandon settles it.',
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[command...]', 'after --: the command to run')
    .requiredOption('--auth <id>', 'the action or grant that authorizes it (seq, id or id prefix)')
    .option('--tool <name>', 'the tool; required under a grant', toolName)
    .option(
      '--meter <amounts>',
      'amounts used, such as usd=0.25,tokens.input=10; measured amounts can only be raised',
      meterList,
    )
    .addOption(
      new Option(
        '--basis <basis>',
        'where the amounts come from (default: measured for a command without --meter, else not stated)',
      ).choices(BASES),
    )
    .addOption(
      new Option(
        '--unmetered <what>',
        'reserved units without a meter: charge the reservation as estimated use, or release it',
      )
        .choices(['charge', 'release'])
        .default('charge'),
    )
    .option('--model <name>', 'the model, as its provider calls it')
    .option('--provider <name>', 'the provider of the tool or the model')
    .addOption(new Option('--outcome <outcome>', 'without a command: how it ended').choices(OUTCOMES))
    .option(
      '--error-code <code>',
      'without a command: why it failed; ABANDONED releases the reservation',
      code,
    )
    .option('--started-at <time>', 'without a command: when it started', instant)
    .option('--ended-at <time>', 'without a command: when it ended', instant)
    .option(
      '--resume [start]',
      'with a command: take over a start whose recorder was killed, and run it (seq or id of the start, if there are several)',
    )
    .option(
      '--abandon [start]',
      'settle what a killed recorder left: an action that was not started is released; a start is recorded as unknown, charged as reserved, or as --meter says',
    );
  withDeciding(command).action((ledger: string, words: string[], options: RecordOptions) =>
    run((context) => record(context, ledger, words, options)),
  );
}

async function record(
  context: Context,
  path: string,
  command: readonly string[],
  options: RecordOptions,
): Promise<Outcome> {
  const { terminal } = context;
  assertOptions(command, options);
  assertDetails(options);
  const trust = await readTrustPolicy(options.trust);
  const signer = await findSigner(terminal, path, options.key);
  const { signal } = context;
  const lasting = await decidingOptions(terminal, path, signer, options);
  const open = (own: LedgerOptions): Promise<Ledger> => Ledger.open(path, { ...lasting, ...own });
  const ledger = await open({ decides: true, signal, ...defined({ trust }) });
  try {
    if (options.abandon !== undefined) return await settle(context, ledger, options);
    if (command.length === 0) return await recordReport(context, ledger, options);
    const start = { startedAt: new Date(), ticks: performance.now() };
    const permission = await claim(ledger, command, options, start);
    context.endsInItsTime();
    if (signal.aborted) await giveBack(ledger, permission, start);
    await ledger.close();
    signal.throwIfAborted();
    const end = await spawnCommand(command);
    if (end.problem !== undefined) terminal.say(end.problem);
    const draft = draftExecution(
      permission,
      stateReserved(permission, outcomeOf(end, options, start), options),
    );
    await recordRun(context, () => open({}), permission, draft, end);
    // Whatever the command ended with, not only what northroot itself ends with; a signal it has answered itself.
    return { stopped: end.status as ExitStatus };
  } catch (error) {
    throw withToolFlag(error, options);
  } finally {
    await ledger.close();
  }
}

/** Under a grant itself the tool must be named. */
function withToolFlag(error: unknown, { tool }: RecordOptions): unknown {
  const isOwn = error instanceof CommandError || !(error instanceof NorthrootError);
  if (isOwn || error.code !== 'USAGE' || error.hint !== undefined || tool !== undefined) return error;
  return new CommandError(error.code, error.message, { cause: error, hint: 'give --tool' });
}

/** Claims the authorization for this very command, which will use one call and what --meter says. */
async function claim(
  ledger: Ledger,
  command: readonly string[],
  options: RecordOptions,
  { startedAt }: Start,
): Promise<Permission> {
  const { permission } = await startExecution(ledger, options.auth, {
    now: startedAt.toISOString(),
    paramsDigest: digestOfCommand(command),
    meterUsed: metersOf(0, options.meter),
    honourImported: options.honourImported,
    ...defined({ toolName: options.tool, start: options.resume }),
  });
  return permission;
}

/** Ends a claim whose command was not run. It was started, so this is no release. */
async function giveBack(ledger: Ledger, permission: Permission, { startedAt }: Start): Promise<void> {
  const at = startedAt.toISOString();
  const nothing = { meterUsed: [], outcome: 'failure', errorCode: ABORTED } as const;
  await ledger.append({ event: draftExecution(permission, { startedAt: at, endedAt: at, ...nothing }) });
}

async function settle(context: Context, ledger: Ledger, options: RecordOptions): Promise<ExitStatus> {
  const now = new Date().toISOString();
  const id = await resolveAuthorization(ledger, options.auth);
  return recordDone(context, ledger, (state) => {
    return draftAbandonment(state, id, {
      now,
      start: options.abandon ?? true,
      meterUsed: options.meter ?? [],
      ...defined({ toolName: options.tool }),
      ...detailsOf(options),
    });
  });
}

async function recordReport(context: Context, ledger: Ledger, options: RecordOptions): Promise<ExitStatus> {
  const outcome = reportedOutcome(options, new Date().toISOString());
  const { startedAt, endedAt, errorCode, meterUsed } = outcome;
  const id = await resolveAuthorization(ledger, options.auth);
  return recordDone(context, ledger, (state) => {
    const permission = permitReported(state, id, {
      now: startedAt,
      meterUsed,
      done: { endedAt, isRelease: errorCode === ABANDONED && meterUsed.length === 0 },
      ...defined({ toolName: options.tool }),
    });
    assertNoSlice(permission);
    return { permission, draft: draftExecution(permission, stateReserved(permission, outcome, options)) };
  });
}

/** An execution may exceed a bound only by what it used. */
function permitReported(state: VerifyState, id: string, request: ExecutionRequest): Permission {
  try {
    return findPermission(state, id, request);
  } catch (error) {
    const isKnown = error instanceof NorthrootError && isFindingCode(error.code) && !hasHint(error.code);
    if (!isKnown) throw error;
    throw new CommandError(error.code, error.message, {
      cause: error,
      hint: 'northroot append records what was done anyway',
    });
  }
}

/** Drafts an execution under the write lock, appends it, and reports it. */
async function recordDone(
  { terminal }: Context,
  ledger: Ledger,
  make: (state: VerifyState) => { readonly permission: Permission; readonly draft: object },
): Promise<ExitStatus> {
  let made: ReturnType<typeof make> | undefined;
  const appended = await ledger.decide((state) => {
    made = make(state);
    return { event: made.draft };
  });
  const { permission, draft } = made as unknown as ReturnType<typeof make>;
  await terminal.write(`${describe(appended, draft)}\n`);
  const lines = await ledger.inspect((state) => describeSpent(state, permission, appended, draft));
  for (const line of lines) terminal.say(line);
  return 0;
}

/** What the execution broke, and what it used up. */
function describeSpent(
  state: VerifyState,
  { authorizationId }: Permission,
  { findings }: Appended,
  draft: object,
): string[] {
  const { meter_used: used } = draft as { meter_used: readonly Meter[] };
  const spent = findSpent(state, authorizationId, used).map(
    ({ isOverspent, text, grantId }) => `${isOverspent ? 'overspent' : 'used up'}: ${text}, under ${grantId}`,
  );
  const said = findings.filter(({ code, severity }) => severity === 'error' || code === 'METER_UNCAPPED');
  return [...said.map(describeAppended), ...spent];
}

/** Records a run. It cannot be interrupted: what was done must be recorded. */
async function recordRun(
  { terminal }: Context,
  open: () => Promise<Ledger>,
  permission: Permission,
  draft: object,
  { status }: CommandEnd,
): Promise<void> {
  try {
    const ledger = await open();
    try {
      const appended = await ledger.append({ event: draft });
      // Standard output is the command's.
      terminal.say(describe(appended, draft));
      const lines = await ledger.inspect((state) => describeSpent(state, permission, appended, draft));
      for (const line of lines) terminal.say(line);
    } finally {
      await ledger.close();
    }
  } catch (error) {
    // Evidence is shown even with --quiet.
    terminal.quiet = false;
    terminal.say(jsonText(draft));
    const known = error instanceof NorthrootError ? error : undefined;
    const message = `the command ended with ${status}, but is not recorded: ${known?.message ?? String(error)}`;
    throw new CommandError(known?.code ?? 'INTERNAL_ERROR', message, {
      exitStatus: 2,
      hint: 'when the cause is gone, give the line above to northroot append',
      cause: error,
    });
  }
}

interface Start {
  readonly startedAt: Date;
  /** On the monotonic clock. */
  readonly ticks: number;
}

interface CommandEnd {
  readonly status: number;
  /** Why it could not be run. */
  readonly problem?: string;
}

function outcomeOf(
  { status, problem }: CommandEnd,
  options: RecordOptions,
  { startedAt, ticks }: Start,
): ExecutionOutcome {
  const { meter, basis } = options;
  const elapsed = Math.ceil(performance.now() - ticks);
  const meterUsed = problem === undefined ? metersOf(elapsed, meter) : [];
  const isMeasured = problem === undefined && meter === undefined && basis === undefined;
  return {
    startedAt: startedAt.toISOString(),
    endedAt: new Date(startedAt.getTime() + elapsed).toISOString(),
    // What was never run used nothing.
    meterUsed,
    ...detailsOf(options),
    meterBasisByUnit: measuredBases(basis, metersOf(elapsed), meterUsed),
    // All amounts were measured here.
    ...(isMeasured ? { meterBasis: 'measured' as const } : {}),
    ...(status === 0 ? { outcome: 'success' } : { outcome: 'failure', errorCode: `EXIT_${status}` }),
  };
}

/** The use of a run: measured amounts, which --meter can raise, and its other units. */
function metersOf(elapsed: number, meters: readonly Meter[] = []): Meter[] {
  const measured: Meter[] = [
    { unit: 'calls', amount: { t: 'int', v: '1' } },
    { unit: 'time.ms', amount: { t: 'int', v: String(elapsed) } },
  ];
  return raiseMeters(measured, meters);
}

/** Runs a command as a shell would, to its end. */
async function spawnCommand([name = '', ...args]: readonly string[]): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const refuse = (error: NodeJS.ErrnoException): void => {
      const why = error.code === 'ENOENT' ? 'there is no such command' : error.message;
      const status = error.code === 'ENOENT' ? NOT_FOUND : NOT_RUN;
      resolve({ status, problem: `cannot run ${printable(name)}: ${why}` });
    };
    let child: ChildProcess;
    try {
      child = spawn(name, args, { stdio: 'inherit' });
    } catch (error) {
      refuse(error as NodeJS.ErrnoException);
      return;
    }
    // A terminal sends Ctrl-C to both of us; whatever ends, what was done is to be recorded.
    const stay = (): void => undefined;
    const pass = (signal: NodeJS.Signals): void => void child.kill(signal);
    process.on('SIGINT', stay).on('SIGTERM', pass).on('SIGHUP', pass);
    const leave = (): void => {
      process.off('SIGINT', stay).off('SIGTERM', pass).off('SIGHUP', pass);
    };
    child.once('error', (error) => {
      leave();
      refuse(error);
    });
    child.once('exit', (code, signal) => {
      leave();
      resolve({ status: code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal]) });
    });
  });
}

function assertOptions(command: readonly string[], options: RecordOptions): void {
  const { outcome, errorCode, startedAt, endedAt, resume, abandon } = options;
  const isReported = [outcome, errorCode, startedAt, endedAt].some((each) => each !== undefined);
  if (abandon !== undefined) {
    if (command.length === 0 && !isReported && resume === undefined) return;
    throw usageError('--abandon takes --auth, --tool and --meter, and no command or outcome');
  }
  if (command.length === 0 && resume !== undefined)
    throw usageError('--resume runs a command: give it after --');
  if (command.length === 0 && outcome === undefined)
    throw usageError('expected a command after --, or else --outcome');
  if (command.length > 0 && isReported)
    throw usageError(
      '--outcome, --error-code, --started-at and --ended-at are for what was done elsewhere, not for a command',
    );
}

function detailsOf({ basis, model, provider }: RecordOptions): ExecutionDetails {
  return { meterBasis: basis, modelId: model, provider };
}

/** Checked before the command runs: afterwards it would be too late. */
function assertDetails({ model, provider }: RecordOptions): void {
  for (const [flag, details] of [
    ['--model', { modelId: model }],
    ['--provider', { provider }],
  ] as const) {
    try {
      checkDetails('record', details);
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      throw new CommandError('USAGE', `${flag}: expected 1 to 256 characters`, { cause: error });
    }
  }
}

function reportedOutcome(options: RecordOptions, now: string): ExecutionOutcome {
  const { outcome = 'success', errorCode, meter: meterUsed = [] } = options;
  const endedAt = options.endedAt ?? now;
  const startedAt = options.startedAt ?? endedAt;
  if (compareTimestamps(endedAt, startedAt) < 0)
    throw usageError(`it cannot have ended at ${endedAt} and started at ${startedAt}`);
  if (outcome === 'failure' && errorCode === undefined)
    throw usageError(
      'a failure needs an --error-code',
      `such as TIMEOUT, or ${ABANDONED} to give back what was reserved`,
    );
  return {
    startedAt,
    endedAt,
    meterUsed,
    outcome,
    ...defined({ errorCode }),
    ...detailsOf(options),
  };
}

function describe({ seq, eventId, status }: Appended, draft: object): string {
  const { outcome, meter_used } = draft as { outcome: string; meter_used: unknown };
  return jsonText({ seq, event_id: eventId, status, outcome, meter_used });
}
