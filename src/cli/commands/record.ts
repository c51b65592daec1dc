/** `northroot record`: runs a command under an authorization and records what it used; or records what was done elsewhere. */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { Option, type Command } from 'commander';
import { NorthrootError } from '../../error.js';
import { readState } from '../../policy/authorize.js';
import { draftExecution, findPermission, type ExecutionOutcome } from '../../policy/record.js';
import type { Meter } from '../../value/meter.js';
import { Ledger } from '../../writer/ledger.js';
import type { Context, ExitStatus } from '../context.js';
import { readTrustPolicy } from '../input.js';
import { jsonText } from '../json-text.js';
import { instant, meterList, seconds } from '../options.js';
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

/** What a shell gives for a command that could not be run. */
const NOT_RUN = 127;
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
    .requiredOption('--auth <id>', 'the authorization: the id of an action or grant, or a prefix of it')
    .option('--tool <name>', 'the tool; needed under a grant')
    .option('--meter <amounts>', 'further amounts used, such as usd=0.25,tokens.input=10', meterList)
    .addOption(
      new Option('--outcome <outcome>', 'without a command: how it ended').choices(['success', 'failure']),
    )
    .option('--error-code <code>', 'why it failed, such as ABANDONED')
    .option('--started-at <time>', 'without a command: when it started', instant)
    .option('--ended-at <time>', 'without a command: when it ended', instant)
    .option('--key <file>', 'private key to sign with (default: NORTHROOT_KEY, then LEDGER.key)')
    .option('--trust <file>', 'verify the ledger with this trust policy first')
    .addOption(
      new Option('--lock-timeout <seconds>', 'how long to wait for another writer')
        .argParser(seconds)
        .default(10_000, '10'),
    )
    .action((ledger: string, command: string[], options: RecordOptions) =>
      run((context) => record(context, ledger, command, options)),
    );
}

async function record(
  { terminal }: Context,
  path: string,
  command: readonly string[],
  options: RecordOptions,
): Promise<ExitStatus> {
  const hasCommand = command.length > 0;
  if (hasCommand === (options.outcome !== undefined)) {
    throw new NorthrootError('USAGE', 'expected a command after --, or else --outcome');
  }
  const trust = await readTrustPolicy(options.trust);
  const signer = (await findNamedSigner(options.key)) ?? (await findOwnSigner(path));
  const state = await readState(path, trust);
  const now = new Date().toISOString();
  const permission = findPermission(state, options.auth, options.tool, options.startedAt ?? now);
  if (hasCommand && permission.paramsDigest !== undefined) {
    const { b64 } = digestOfCommand(command);
    if (b64 !== permission.paramsDigest.b64) {
      throw new NorthrootError('TOOL_PARAMS_MISMATCH', 'another command was authorized than this one', {
        exitStatus: 1,
        hint: 'authorize it with the same words after --',
      });
    }
  }
  const { outcome, status } = hasCommand
    ? await runCommand(command, options.meter ?? [])
    : { outcome: reportedOutcome(options, now), status: 0 };
  const ledger = await Ledger.open(path, {
    lockTimeoutMs: options.lockTimeout,
    onNotice: (notice) => terminal.say(describeNotice(notice)),
    ...(signer === undefined ? {} : { signer }),
  });
  try {
    const { seq, eventId } = await ledger.append({ event: draftExecution(permission, outcome) });
    const line = `${jsonText({ seq, event_id: eventId, outcome: outcome.outcome, meter_used: outcome.meterUsed })}`;
    // Standard output is the command's; the result goes there only when there is none.
    if (hasCommand) terminal.say(line);
    else await terminal.write(`${line}\n`);
  } finally {
    await ledger.close();
  }
  return status as ExitStatus;
}

async function runCommand(
  [command = '', ...args]: readonly string[],
  meters: readonly Meter[],
): Promise<{ outcome: ExecutionOutcome; status: number }> {
  const startedAt = new Date();
  const start = performance.now();
  const status = await new Promise<number>((resolve) => {
    const child = spawn(command, args, { stdio: 'inherit' });
    child.once('error', () => resolve(NOT_RUN));
    child.once('exit', (code, signal) => {
      resolve(code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal]));
    });
  });
  // The clock may be set while the command runs; how long it took is measured apart, and rounded up.
  const elapsed = Math.ceil(performance.now() - start);
  const own: Meter[] = [
    { unit: 'calls', amount: { t: 'int', v: '1' } },
    { unit: 'time.ms', amount: { t: 'int', v: String(elapsed) } },
  ];
  const meterUsed = [...own.filter(({ unit }) => !meters.some((meter) => meter.unit === unit)), ...meters];
  const times = {
    startedAt: startedAt.toISOString(),
    endedAt: new Date(startedAt.getTime() + elapsed).toISOString(),
    meterUsed,
  };
  const outcome: ExecutionOutcome =
    status === 0
      ? { ...times, outcome: 'success' }
      : { ...times, outcome: 'failure', errorCode: `EXIT_${status}` };
  return { outcome, status };
}

function reportedOutcome(options: RecordOptions, now: string): ExecutionOutcome {
  const { outcome = 'success', errorCode, startedAt = now, endedAt = now, meter: meterUsed = [] } = options;
  if (outcome === 'failure' && errorCode === undefined) {
    throw new NorthrootError('USAGE', 'a failure needs an --error-code', {
      hint: 'such as TIMEOUT or ABANDONED',
    });
  }
  return { startedAt, endedAt, meterUsed, outcome, ...(errorCode === undefined ? {} : { errorCode }) };
}
