/** `exec`: programs of a list, without a shell, within the root. */

import { basename, dirname, isAbsolute, join } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { abortCode, startDeadline } from '../../base/deadline.js';
import { NorthrootError } from '../../base/error.js';
import { findProgram, linksOf, resolveProgram } from '../../log/fs/program.js';
import type { RootedFolder } from '../../log/fs/rooted-folder.js';
import type { Act, Done } from './act.js';
import { ArgumentFault, readArguments } from './arguments.js';
import { readPath } from './file-tools.js';
import { isolate } from './isolation.js';
import type { IsolationLevel } from './kernel-tool.js';
import { carriedBytes, carryingOutput, failure } from './output.js';
import { type ProgramEnd, runProgram } from './run-program.js';

const MAX_ARGUMENTS = 256;
const MAX_ARGUMENT_BYTES = 131_072;
const MAX_PROGRAMS = 64;
/** How long the trial of a limit may take, in milliseconds. */
const TRIAL_MS = 10_000;

/** What a program may take, where the system has prlimit (util-linux): no core files, open files, and a file's size in bytes. */
const LIMITS = ['--core=0', '--nofile=1024', '--fsize=1073741824'];

/** What programs are given as environment, unless something else is said. */
export const DEFAULT_ENV: Readonly<Record<string, string>> = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  LANG: 'C.UTF-8',
};

export interface Program {
  /** As it was given. */
  readonly path: string;
  /** Where it led when it was given. */
  readonly resolved: string;
}

export interface ExecOptions {
  readonly root: RootedFolder;
  readonly programs: readonly Program[];
  readonly env: Readonly<Record<string, string>>;
  readonly isolation: IsolationLevel;
  /** What a container does not show. */
  readonly hide: readonly string[];
  readonly maxOutputBytes: number;
  readonly limiters: Limiters;
}

/** Commands to be put before another, each with its options; empty where the system has none. */
interface Limiters {
  readonly prlimit: readonly string[];
  readonly setpriv: readonly string[];
}

/**
 * Resolves the programs of a list.
 * @throws TypeError, RangeError for what is no list of absolute paths; NorthrootError `PROGRAM_NOT_FOUND`, `PROGRAM_IN_ROOT`
 */
export async function resolvePrograms(root: RootedFolder, paths: readonly string[]): Promise<Program[]> {
  if (paths.length > MAX_PROGRAMS)
    throw new RangeError(`openKernelTools: programs: expected at most ${MAX_PROGRAMS}`);
  const programs: Program[] = [];
  for (const path of paths) {
    if (typeof path !== 'string' || !isAbsolute(path))
      throw new TypeError('openKernelTools: programs: expected absolute paths');
    const resolved = await resolveProgram(path);
    if (resolved === undefined)
      throw new NorthrootError('PROGRAM_NOT_FOUND', `there is no program ${printable(path)}`);
    // Who can write it, or a link on the way to it, could run anything.
    const places = await Promise.all(
      [...(await linksOf(path)), resolved].map((each) => root.holds(dirname(each))),
    );
    if (places.includes(true))
      throw new NorthrootError('PROGRAM_IN_ROOT', `the program ${printable(path)} lies within the root`, {
        hint: 'what an agent may write, it must not choose as a program: give one from elsewhere',
      });
    programs.push({ path, resolved });
  }
  return programs;
}

/** The programs of the system by which others are limited, and end with this process; those that work here. */
export async function findLimiters(root: RootedFolder): Promise<Limiters> {
  const [prlimit = [], setpriv = []] = await Promise.all([
    findWorking(root, 'prlimit', LIMITS),
    findWorking(root, 'setpriv', ['--pdeathsig', 'KILL']),
  ]);
  return { prlimit, setpriv };
}

/** A program with options and `--`, if it works here. */
async function findWorking(
  root: RootedFolder,
  name: string,
  options: readonly string[],
): Promise<readonly string[] | undefined> {
  const [command, nothing] = await Promise.all([findProgram(name), findProgram('true')]);
  if (command === undefined || nothing === undefined) return undefined;
  const { signal, clear } = startDeadline(TRIAL_MS);
  const args = [...options, '--', nothing];
  const end = await runProgram({ command, args, cwd: root.path, env: DEFAULT_ENV, maxBytes: 4_096, signal });
  clear();
  return end.status === 0 ? [command, ...options, '--'] : undefined;
}

export function planExec(options: ExecOptions, args: unknown): Act {
  const { root, programs, maxOutputBytes } = options;
  const read = readArguments(args, { argv: 'strings', cwd: 'string?' });
  const [name = '', ...rest] = read.argv;
  const total = read.argv.reduce((sum, each) => sum + encodeUtf8(each).length + 1, 0);
  if (read.argv.length > MAX_ARGUMENTS || total > MAX_ARGUMENT_BYTES)
    throw new ArgumentFault(
      'INVALID_ARGUMENTS',
      `argv: expected at most ${MAX_ARGUMENTS} texts, in all ${MAX_ARGUMENT_BYTES} bytes`,
    );
  if (read.argv.some((each) => each.includes('\0')))
    throw new ArgumentFault('INVALID_ARGUMENTS', 'argv: expected texts without NUL');
  const program = name.includes('/')
    ? programs.find(({ path, resolved }) => name === path || name === resolved)
    : programs.find(({ path }) => name === basename(path));
  if (program === undefined)
    throw new ArgumentFault('PROGRAM_NOT_ALLOWED', 'argv: the program is not one that may be run');
  const names = readPath(root, read.cwd ?? '.');
  return {
    resources: [{ kind: 'program', reference: program.resolved }],
    act: async (signal) => toDone(await run(options, program, rest, names, signal), signal, maxOutputBytes),
  };
}

async function run(
  { root, env, isolation, hide, maxOutputBytes, limiters }: ExecOptions,
  { path, resolved }: Program,
  args: readonly string[],
  names: readonly string[],
  signal: AbortSignal,
): Promise<ProgramEnd | string> {
  if ((await resolveProgram(path)) !== resolved) return 'PROGRAM_CHANGED';
  try {
    // What becomes another user in between does not end with this process any more: it is said inside.
    const [first, ...inner] = [...limiters.setpriv, path, ...args] as [string, ...string[]];
    const isolated = await isolate(isolation, first, inner, { writable: [root.path], hide });
    const [command, ...all] = [
      ...limiters.prlimit,
      isolated.command,
      // A container has its own files: its working folder is one of those.
      ...(isolation === 'container' ? ['--chdir', join(root.path, ...names)] : []),
      ...isolated.args,
    ] as [string, ...string[]];
    let ending: Promise<ProgramEnd> | undefined;
    // The folder is held open until the program runs in it.
    await root.enter(names, (cwd) => {
      const maxBytes = carriedBytes(maxOutputBytes);
      ending = runProgram({ command, args: all, cwd, env, maxBytes, signal });
      return Promise.resolve();
    });
    return await (ending as unknown as Promise<ProgramEnd>);
  } catch (error) {
    if (!(error instanceof NorthrootError)) throw error;
    return error.code;
  }
}

function toDone(end: ProgramEnd | string, signal: AbortSignal, limit: number): Done {
  if (typeof end === 'string') return { errorCode: end, output: failure(end) };
  const { status, killedBy, stdout, stderr, ended } = end;
  const errorCode =
    ended === 'not_started'
      ? 'NOT_STARTED'
      : ended === 'output'
        ? 'OUTPUT_TOO_LARGE'
        : ended === 'aborted'
          ? abortCode(signal)
          : killedBy !== undefined
            ? 'KILLED'
            : status === 0
              ? undefined
              : 'EXIT_STATUS';
  const value = {
    ...(errorCode === undefined ? {} : { error: errorCode }),
    ...(status === undefined ? {} : { status }),
    ...(killedBy === undefined ? {} : { signal: killedBy }),
    ...(ended === 'output' ? { truncated: true } : {}),
  };
  return { errorCode, output: carryingOutput(value, { stdout, stderr }, limit) };
}
