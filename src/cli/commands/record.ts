/** `northroot record`: runs a command under an authorization and records what it used; or records what was done elsewhere. */

import { spawn, type ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import { Option, type Command } from 'commander';
import { printable } from '../../bytes/printable.js';
import { NorthrootError } from '../../error.js';
import { appendAnew } from '../../policy/append-anew.js';
import { readState } from '../../policy/authorize.js';
import {
  ABANDONED,
  draftExecution,
  findPermission,
  type ExecutionOutcome,
  type Permission,
} from '../../policy/record.js';
import { formatDigest } from '../../value/digest.js';
import type { Meter } from '../../value/meter.js';
import { compareTimestamps } from '../../value/timestamp.js';
import type { VerifyState } from '../../verify/state.js';
import { Ledger, type Appended } from '../../writer/ledger.js';
import type { Context, ExitStatus } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { code, instant, meterList, seconds, toolName } from '../options.js';
import { digestOfCommand } from './authorize.js';
import { findNamedSigner, findOwnSigner } from './ledger-key.js';
import { describeNotice } from './notices.js';

interface RecordOptions {
  readonly auth: string;
  readonly tool?: string;
  readonly meter?: Meter[];
  readonly outcome?: 'success' | 'failure';
  readonly errorCode?: string;
  readonly startedAt?: string;
  readonly endedAt?: string;
  readonly key?: string;
  readonly trust?: string;
  readonly lockTimeout: number;
}

/** What a shell gives for a command that it cannot run, or cannot find, or that a signal ended. */
const NOT_RUN = 126;
const NOT_FOUND = 127;
const SIGNALLED = 128;

export function addRecord(
  program: Command,
  run: (action: (context: Context) => Promise<ExitStatus>) => Promise<void>,
): void {
  program
    .command('record')
    .summary('run a command under an authorization, and record what it used')
    .description(
      "Runs the command after -- and appends its execution, with time.ms and calls as measured; the exit status is the command's. A command that may not be executed now is not run. Without a command, records what was done elsewhere: --outcome, --meter, --started-at, --ended-at. What was used is recorded as it was, also where it is more than was allowed.",
    )
    .argument('<ledger>', 'the file or folder')
    .argument('[command...]', 'after --: the command to run')
    .requiredOption(
      '--auth <id>',
      'the authorization: the seq or id of an action or grant, or a prefix of the id',
    )
    .option('--tool <name>', 'the tool; needed under a grant', toolName)
    .option('--meter <amounts>', 'further amounts used, such as usd=0.25,tokens.input=10', meterList)
    .addOption(
      new Option('--outcome <outcome>', 'without a command: how it ended').choices(['success', 'failure']),
    )
    .option(
      '--error-code <code>',
      'without a command: why it failed; ABANDONED gives back what was reserved',
      code,
    )
    .option('--started-at <time>', 'without a command: when it started', instant)
    .option('--ended-at <time>', 'without a command: when it ended', instant)
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--trust <file>', 'verify the ledger with this trust policy first')
    .option('--lock-timeout <seconds>', 'how long to wait for another writer', seconds, 10)
    .action((ledger: string, command: string[], options: RecordOptions) =>
      run((context) => record(context, ledger, command, options)),
    );
}

async function record(
  context: Context,
  path: string,
  command: readonly string[],
  options: RecordOptions,
): Promise<ExitStatus> {
  const { terminal } = context;
  assertOptions(command, options);
  const trust = await readTrustPolicy(options.trust);
  const signer = (await findNamedSigner(terminal, options.key)) ?? (await findOwnSigner(terminal, path));
  const open = (signal?: AbortSignal): Promise<Ledger> =>
    Ledger.open(path, {
      lockTimeoutMs: options.lockTimeout * 1000,
      onNotice: (notice) => terminal.say(describeNotice(notice)),
      ...(signal === undefined ? {} : { signal }),
      ...(signer === undefined ? {} : { signer }),
    });
  const ledger = await open(context.signal);
  try {
    const state = await readState(path, trust);
    if (command.length === 0) return await recordReport(context, ledger, state, options);
    // Whatever would keep the execution from being recorded is to be found before the command is run.
    const start = startNow();
    const permission = permitCommand(state, command, options, start);
    ledger.assertAdmissible({ event: draftExecution(permission, outcomeOf({ status: 1 }, options, start)) });
    await ledger.close();
    context.signal.throwIfAborted();
    const end = await spawnCommand(command);
    if (end.problem !== undefined) terminal.say(end.problem);
    await recordRun(context, open, draftExecution(permission, outcomeOf(end, options, start)), end);
    // Whatever the command ended with, not only what northroot itself ends with.
    return end.status as ExitStatus;
  } finally {
    await ledger.close();
  }
}

/** Records what was done elsewhere. */
async function recordReport(
  { terminal }: Context,
  ledger: Ledger,
  state: VerifyState,
  options: RecordOptions,
): Promise<ExitStatus> {
  const outcome = reportedOutcome(options, new Date().toISOString());
  const { startedAt, endedAt, errorCode, meterUsed } = outcome;
  const permission = findPermission(state, options.auth, {
    now: startedAt,
    meterUsed,
    done: { endedAt, isRelease: errorCode === ABANDONED && meterUsed.length === 0 },
    ...(options.tool === undefined ? {} : { toolName: options.tool }),
  });
  const draft = draftExecution(permission, outcome);
  await terminal.write(`${describe(await ledger.append({ event: draft }), draft)}\n`);
  return 0;
}

/** Records a run. Nobody can stop it any more: what was done is to be known. */
async function recordRun(
  { terminal }: Context,
  open: () => Promise<Ledger>,
  draft: object,
  { status }: CommandEnd,
): Promise<void> {
  try {
    const ledger = await open();
    try {
      // Standard output is the command's.
      terminal.say(describe(await appendAnew(ledger, draft), draft));
    } finally {
      await ledger.close();
    }
  } catch (error) {
    // Evidence is no talk: it is shown even where talk is not wanted.
    terminal.quiet = false;
    terminal.say(jsonText(draft));
    const known = error instanceof NorthrootError ? error : undefined;
    const message = `the command ended with ${status}, but is not recorded: ${known?.message ?? String(error)}`;
    throw new NorthrootError(known?.code ?? 'INTERNAL_ERROR', message, {
      hint: 'when the cause is gone, give the line above to northroot append',
      cause: error,
    });
  }
}

/** Whether this very command may be run now; it will use one call, and what --meter says. */
function permitCommand(
  state: VerifyState,
  command: readonly string[],
  options: RecordOptions,
  { startedAt }: Start,
): Permission {
  const permission = findPermission(state, options.auth, {
    now: startedAt.toISOString(),
    meterUsed: metersOf(0, options.meter),
    ...(options.tool === undefined ? {} : { toolName: options.tool }),
  });
  const paramsDigest = digestOfCommand(command);
  const authorized = permission.paramsDigest ?? paramsDigest;
  if (formatDigest(authorized) !== formatDigest(paramsDigest)) {
    throw new NorthrootError('TOOL_PARAMS_MISMATCH', 'another command was authorized than this one', {
      exitStatus: 1,
      hint: 'give the same words after -- as to northroot authorize, or authorize these',
    });
  }
  return { ...permission, paramsDigest };
}

interface Start {
  readonly startedAt: Date;
  /** On the clock that nobody sets. */
  readonly ticks: number;
}

function startNow(): Start {
  return { startedAt: new Date(), ticks: performance.now() };
}

/** How a command ended. */
interface CommandEnd {
  readonly status: number;
  /** Why it could not be run. */
  readonly problem?: string;
}

function outcomeOf(
  { status, problem }: CommandEnd,
  { meter }: RecordOptions,
  { startedAt, ticks }: Start,
): ExecutionOutcome {
  const elapsed = Math.ceil(performance.now() - ticks);
  return {
    startedAt: startedAt.toISOString(),
    endedAt: new Date(startedAt.getTime() + elapsed).toISOString(),
    // What was never run used nothing.
    meterUsed: problem === undefined ? metersOf(elapsed, meter) : [],
    ...(status === 0 ? { outcome: 'success' } : { outcome: 'failure', errorCode: `EXIT_${status}` }),
  };
}

/** What a run uses: what is measured, and what --meter says instead or besides. */
function metersOf(elapsed: number, meters: readonly Meter[] = []): Meter[] {
  const own: Meter[] = [
    { unit: 'calls', amount: { t: 'int', v: '1' } },
    { unit: 'time.ms', amount: { t: 'int', v: String(elapsed) } },
  ];
  return [...own.filter(({ unit }) => !meters.some((meter) => meter.unit === unit)), ...meters];
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
  const { outcome, errorCode, startedAt, endedAt } = options;
  if (command.length === 0 && outcome === undefined) {
    throw new NorthrootError('USAGE', 'expected a command after --, or else --outcome');
  }
  if (command.length === 0) return;
  if ([outcome, errorCode, startedAt, endedAt].some((each) => each !== undefined)) {
    throw new NorthrootError(
      'USAGE',
      'how a command ends and when is seen: --outcome, --error-code, --started-at and --ended-at are for what was done elsewhere',
    );
  }
}

function reportedOutcome(options: RecordOptions, now: string): ExecutionOutcome {
  const { outcome = 'success', errorCode, meter: meterUsed = [] } = options;
  const endedAt = options.endedAt ?? now;
  const startedAt = options.startedAt ?? endedAt;
  if (compareTimestamps(endedAt, startedAt) < 0) {
    throw new NorthrootError('USAGE', `it cannot have ended at ${endedAt} and started at ${startedAt}`);
  }
  if (outcome === 'failure' && errorCode === undefined) {
    throw new NorthrootError('USAGE', 'a failure needs an --error-code', {
      hint: `such as TIMEOUT, or ${ABANDONED} to give back what was reserved`,
    });
  }
  return { startedAt, endedAt, meterUsed, outcome, ...(errorCode === undefined ? {} : { errorCode }) };
}

function describe({ seq, eventId, status }: Appended, draft: object): string {
  const { outcome, meter_used } = draft as { outcome: string; meter_used: unknown };
  return jsonText({ seq, event_id: eventId, status, outcome, meter_used });
}
