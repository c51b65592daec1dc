/** `northroot doctor`: has a coding agent try a call that is denied, in a folder of its own, and says whether the call ran. */

import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import type { Readable } from 'node:stream';
import type { Command } from 'commander';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import {
  HOST_TRIALS,
  type HostTrial,
  judgeTrial,
  serveTrialModel,
  TRIAL_FILE,
  type TrialHost,
  type TrialSight,
  type TrialVerdict,
} from '../../gate/hook/doctor.js';
import { hostTimeout } from '../../gate/hook/options.js';
import type { HookProfile } from '../../gate/hook/profile.js';
import { HOOK_PROFILES } from '../../gate/hook/profiles.js';
import { hookCommand, installHooks } from '../../gate/hook/settings.js';
import { kindOfPath, nodeFileSystem, rewriteFile } from '../../log/fs/file-system.js';
import { withScratchFolder } from '../../log/fs/scratch-folder.js';
import { draftGrant } from '../../log/policy/draft-grant.js';
import { readRecords } from '../../log/read/read-records.js';
import { openLedger } from '../../log/tile/tile-tree.js';
import { Ledger } from '../../log/writer/ledger.js';
import { usageError } from '../command-error.js';
import type { Context, ExitStatus, Run } from '../context.js';
import { jsonText } from '../json-text.js';
import { spanMs, textOrJson } from '../options.js';
import { hookWords } from './hook.js';

interface DoctorOptions {
  readonly bin?: string;
  readonly project?: boolean;
  readonly timeout: number;
  readonly format: 'text' | 'json';
}

interface HostEnd {
  readonly end: TrialSight['end'];
  /** Null if a signal ended it. */
  readonly status: number | null;
  /** Why it could not be started. */
  readonly problem?: string;
  readonly lines: readonly string[];
}

interface Trial extends TrialSight, HostEnd {
  readonly requests: number;
}

const HOSTS = Object.keys(HOST_TRIALS).join(', ');
const EXIT: Readonly<Record<TrialVerdict, ExitStatus>> = { blocked: 0, ran: 1, unknown: 2 };
const DEFAULT_TIMEOUT_MS = 120_000;
const MAX_TIMEOUT_MS = 3_600_000;
const GRANT_MS = 86_400_000;
/** Of what the host says, the end: in bytes, and in lines. */
const MAX_TAIL_BYTES = 16 * 1024;
const MAX_TAIL_LINES = 10;
/** How long what the host started may hold its output open. */
const DRAIN_MS = 1_000;

export function addDoctor(program: Command, run: Run): void {
  program
    .command('doctor')
    .summary('test whether a coding agent obeys its hooks')
    .description(
      'Starts the agent in a new folder, with a home, settings and a ledger of its own there, and with a model on 127.0.0.1 that asks for one harmless shell command. The hook denies it. Exit status 0 if it was denied and did not run, 1 if it ran, 2 if neither can be said. The folder is removed; your own settings are neither read nor changed.',
    )
    .argument('<agent>', `the agent: ${HOSTS}`)
    .option('--bin <file>', "the agent's program (default: as PATH has it)")
    .option('--project', 'the hooks are in the settings of the project, not those of the user')
    .option('--timeout <span>', 'stop the agent after this time, at most 1h (default: 2m)', spanMs)
    .addOption(textOrJson())
    .action((host: string, options: Partial<DoctorOptions>) =>
      run((context) =>
        doctor(context, hostOf(host), { timeout: DEFAULT_TIMEOUT_MS, format: 'text', ...options }),
      ),
    );
}

function hostOf(name: string): TrialHost {
  if (Object.hasOwn(HOST_TRIALS, name)) return name as TrialHost;
  throw usageError(`no agent ${printable(name)} can be tried`, `one of ${HOSTS}`);
}

async function doctor(context: Context, host: TrialHost, options: DoctorOptions): Promise<ExitStatus> {
  if (options.timeout > MAX_TIMEOUT_MS) throw usageError('--timeout: expected at most 1h');
  // What it started is ended, and its folder removed, also after a signal.
  context.endsInItsTime();
  const profile = HOOK_PROFILES[host];
  const trial = await withScratchFolder((folder) =>
    tryHost(context, profile, HOST_TRIALS[host], folder, options),
  );
  const verdict = judgeTrial(trial);
  if (context.signal.aborted) return EXIT.unknown;
  await context.terminal.write(
    options.format === 'json' ? jsonOf(host, verdict, trial) : textOf(profile, verdict, trial),
  );
  return EXIT[verdict];
}

async function tryHost(
  { signal }: Context,
  profile: HookProfile,
  trial: HostTrial,
  folder: string,
  { bin, project: isProject = false, timeout }: DoctorOptions,
): Promise<Trial> {
  const [home, project, ledger] = ['home', 'project', 'ledger.jsonl'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await nodeFileSystem.makeFolder(home);
  await nodeFileSystem.makeFolder(project);
  await makeLedger(ledger, profile.principal, signal);
  const model = await serveTrialModel(trial);
  try {
    const place = { url: model.url, project };
    const files = new Map(
      Object.entries(trial.files(place)).map(([name, text]) => [join(home, name), text] as const),
    );
    const settings = join(isProject ? project : home, profile.settings.folder, profile.settings.file);
    const command = hookCommand([...hookWords(profile.name), '--ledger', ledger]);
    files.set(settings, installHooks(profile, files.get(settings), command, hostTimeout({})));
    for (const [path, text] of files) await rewriteFile(path, encodeUtf8(text));
    const env = { ...quietEnvironment(home), ...trial.env(place) };
    const program = bin === undefined ? trial.program : resolve(bin);
    const end = await runHost([program, ...trial.args], { cwd: project, env, timeout, signal });
    const { requests, hasCalled } = model;
    const hasRun = (await kindOfPath(join(project, TRIAL_FILE))) !== 'missing';
    return { ...end, requests, hasCalled, hasRun, denials: await countDenials(ledger) };
  } finally {
    await model.close();
  }
}

/** A ledger under which every call is denied, and the denial recorded. */
async function makeLedger(path: string, principalId: string, signal: AbortSignal): Promise<void> {
  const ledger = await Ledger.open(path, { create: {}, signal });
  try {
    const now = Date.now();
    const event = draftGrant({
      principalId,
      allowedTools: ['*'],
      meterCaps: { calls: 0 },
      expiresAt: new Date(now + GRANT_MS).toISOString(),
      occurredAt: new Date(now).toISOString(),
    });
    await ledger.append({ event });
  } finally {
    await ledger.close();
  }
}

async function countDenials(path: string): Promise<number> {
  let count = 0;
  for await (const { event } of readRecords(await openLedger(path)))
    if (event['event_type'] === 'authorization' && event['decision'] === 'deny') count += 1;
  return count;
}

/** Nothing of the user's own but PATH: a key, a socket or settings named there would be used. */
function quietEnvironment(home: string): NodeJS.ProcessEnv {
  const { PATH } = process.env;
  const quiet = {
    DISABLE_TELEMETRY: '1',
    DISABLE_AUTOUPDATER: '1',
    DO_NOT_TRACK: '1',
    NO_COLOR: '1',
    CI: '1',
  };
  return { PATH, HOME: home, LANG: 'C.UTF-8', ...quiet };
}

/** Runs the host to its end, and ends what it left in its process group. */
function runHost(
  [program, ...args]: readonly [string, ...string[]],
  {
    cwd,
    env,
    timeout,
    signal,
  }: {
    readonly cwd: string;
    readonly env: NodeJS.ProcessEnv;
    readonly timeout: number;
    readonly signal: AbortSignal;
  },
): Promise<HostEnd> {
  signal.throwIfAborted();
  return new Promise((settle) => {
    const refused = (error: NodeJS.ErrnoException): string => {
      const why = error.code === 'ENOENT' ? 'there is no such program' : (error.code ?? error.message);
      return `cannot run ${program}: ${why}`;
    };
    let child: ChildProcessByStdio<null, Readable, Readable>;
    try {
      child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    } catch (error) {
      const problem = refused(error as NodeJS.ErrnoException);
      settle({ end: 'not_started', status: null, problem, lines: [] });
      return;
    }
    let tail = Buffer.alloc(0);
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        tail = Buffer.concat([tail, chunk]).subarray(-MAX_TAIL_BYTES);
      });
    let end: HostEnd['end'] = 'exited';
    let problem: string | undefined;
    const stop = (): void => {
      end = 'timed_out';
      killGroup(child);
    };
    const timer = setTimeout(stop, timeout);
    signal.addEventListener('abort', stop, { once: true });
    child.once('error', (error: NodeJS.ErrnoException) => {
      if (child.pid !== undefined) return;
      problem = refused(error);
      end = 'not_started';
    });
    child.once('exit', () => {
      clearTimeout(timer);
      killGroup(child);
      const drop = (): void => {
        child.stdout.destroy();
        child.stderr.destroy();
      };
      // What has come meanwhile is read first: this process may have been busy.
      setTimeout(() => setImmediate(drop), DRAIN_MS).unref();
    });
    child.once('close', (status) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', stop);
      const lines = linesOf(tail);
      settle({
        end,
        status: end === 'not_started' ? null : status,
        lines,
        ...(problem === undefined ? {} : { problem }),
      });
    });
  });
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    // There is no such group: all of it has ended, or the system has none.
    child.kill('SIGKILL');
  }
}

function linesOf(tail: Buffer): readonly string[] {
  // The tail may begin within a character.
  const lines = tail.toString('utf8').split(/\r?\n/);
  return lines.filter((line) => line.trim() !== '').slice(-MAX_TAIL_LINES);
}

function jsonOf(host: TrialHost, verdict: TrialVerdict, trial: Trial): string {
  const { end, status, denials, requests, hasCalled, lines, problem } = trial;
  const result = {
    agent: host,
    verdict,
    denials,
    model_requests: requests,
    model_called: hasCalled,
    end,
    status,
    ...(problem === undefined ? {} : { problem }),
    output: lines,
  };
  return `${jsonText(result, 2)}\n`;
}

function textOf({ title }: HookProfile, verdict: TrialVerdict, trial: Trial): string {
  const said = `${verdict}: ${title} ${wordsOf(verdict, trial)}\n`;
  if (verdict === 'blocked' || trial.lines.length === 0) return said;
  return `${said}its last output:\n${trial.lines.map((line) => `  ${printable(line)}\n`).join('')}`;
}

function wordsOf(
  verdict: TrialVerdict,
  { denials, hasCalled, requests, end, problem, status }: Trial,
): string {
  if (verdict === 'blocked') return 'did not run the call that its hook denied';
  if (verdict === 'ran')
    return denials > 0
      ? 'ran the call that its hook denied: its hooks block nothing'
      : 'ran the call, and its hook recorded no denial: its hooks block nothing';
  if (problem !== undefined) return `was not tried: ${printable(problem, 400)}`;
  const ended =
    end === 'timed_out' ? 'was stopped at the time limit' : `ended with ${String(status ?? 'a signal')}`;
  if (denials > 0) return `${ended}, after a denial; nothing had run`;
  if (hasCalled) return `${ended}, without a denial of its hook; nothing ran`;
  const asked = requests === 0 ? 'never asked its model' : 'never offered its model the shell tool';
  return `${ended} and ${asked}`;
}
