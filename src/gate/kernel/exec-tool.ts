/** `exec`: programs of a list, without a shell, within the root. */

import { basename, dirname, isAbsolute, join } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';
import { findProgram, linksOf, resolveProgram } from '../../log/fs/program.js';
import type { RootedFolder } from '../../log/fs/rooted-folder.js';
import type { Act, Done } from './act.js';
import { ArgumentFault, readArguments } from './arguments.js';
import { readPath } from './file-tools.js';
import { isolate } from './isolation.js';
import type { IsolationLevel } from './kernel-tool.js';
import { abortCode, startDeadline } from './deadline.js';
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
  /** The path of prlimit, where it works. */
  readonly prlimit: string | undefined;
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

/** The path of prlimit, where a process can be limited by it. */
export async function findLimiter(root: RootedFolder): Promise<string | undefined> {
  const [prlimit, nothing] = await Promise.all([findProgram('prlimit'), findProgram('true')]);
  if (prlimit === undefined || nothing === undefined) return undefined;
  const { signal, clear } = startDeadline(TRIAL_MS);
  const args = [...LIMITS, '--', nothing];
  const end = await runProgram({
    command: prlimit,
    args,
    cwd: root.path,
    env: DEFAULT_ENV,
    maxBytes: 4_096,
    signal,
  });
  clear();
  return end.status === 0 ? prlimit : undefined;
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
  { root, env, isolation, hide, maxOutputBytes, prlimit }: ExecOptions,
  { path, resolved }: Program,
  args: readonly string[],
  names: readonly string[],
  signal: AbortSignal,
): Promise<ProgramEnd | string> {
  if ((await resolveProgram(path)) !== resolved) return 'PROGRAM_CHANGED';
  try {
    const isolated = await isolate(isolation, path, args, { writable: [root.path], hide });
    const [command, ...all] = [
      ...(prlimit === undefined ? [] : [prlimit, ...LIMITS, '--']),
      ...(isolation === 'container'
        ? chdir(isolated.command, isolated.args, join(root.path, ...names))
        : [isolated.command, ...isolated.args]),
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

/** A container has its own files: its working folder is one of those. */
function chdir(command: string, args: readonly string[], folder: string): string[] {
  return [command, '--chdir', folder, ...args];
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
