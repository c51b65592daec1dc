/**
 * Keeps a process apart from the machine, by programs that the system has: `unshare` (util-linux) and `bwrap` (bubblewrap), on Linux. What
 * a level needs is tried before it is claimed.
 *
 * - `none`: nothing. The process can do what its user can.
 * - `netns`: no network, not even the machine's own. Files, processes, and sockets that are files (of Docker, of a desktop) remain.
 * - `container`: besides, its own processes and IPC, the whole file system read-only but for what is named, and empty `/tmp`, `/run`, `/dev/shm`.
 */

import { spawn } from 'node:child_process';
import { NorthrootError } from '../../base/error.js';
import { kindOfPath, nodeFileSystem } from '../../log/fs/file-system.js';
import { findProgram } from '../../log/fs/program.js';
import type { IsolationLevel } from './kernel-tool.js';

export interface IsolateOptions {
  /** For `container`: folders that it may write, by absolute path. */
  readonly writable?: readonly string[] | undefined;
  /** For `container`: files and folders that it is to see read-only in spite of `hide`, or of being below `/tmp`. */
  readonly readable?: readonly string[] | undefined;
  /** For `container`: folders and files that are to be empty, such as keys, by absolute path. */
  readonly hide?: readonly string[] | undefined;
}

/** What can be had here. */
export interface IsolationFound {
  readonly netns: boolean;
  readonly container: boolean;
}

export interface IsolatedCommand {
  /** An absolute path, but for `none`, where it is the given one. */
  readonly command: string;
  readonly args: readonly string[];
}

const UNSHARE = ['--user', '--map-current-user', '--net', '--'];
const BWRAP = [
  ...['--unshare-all', '--die-with-parent', '--cap-drop', 'ALL'],
  ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp', '--tmpfs', '/run'],
];
/** How long a trial may take, in milliseconds. */
const TRIAL_MS = 10_000;
const NAMESPACES = { netns: ['net'], container: ['net', 'mnt', 'pid'] } as const;

let found: Promise<IsolationFound> | undefined;

/** Tries what can be had here, once a process: whether a trial process is really in namespaces of its own. */
export function probeIsolation(): Promise<IsolationFound> {
  found ??= Promise.all([isHeld('netns'), isHeld('container')]).then(([netns, container]) => ({
    netns,
    container,
  }));
  return found;
}

/**
 * The command by which a program runs isolated. Its working folder, environment and streams are passed on.
 * @param command - An absolute path
 * @throws NorthrootError `ISOLATION_UNAVAILABLE` where this level is not to be had
 * @example
 * const { command, args } = await isolate('netns', '/usr/bin/git', ['status']);
 */
export async function isolate(
  level: IsolationLevel,
  command: string,
  args: readonly string[],
  options: IsolateOptions = {},
): Promise<IsolatedCommand> {
  if (level === 'none') return { command, args };
  if (level !== 'netns' && level !== 'container')
    throw new RangeError('isolate: level: expected none, netns or container');
  if (!(await probeIsolation())[level])
    throw new NorthrootError('ISOLATION_UNAVAILABLE', `processes cannot be isolated by ${level} here`, {
      hint:
        level === 'netns'
          ? 'it needs Linux, unshare (util-linux), and user namespaces, which some systems switch off'
          : 'it needs Linux, bwrap (bubblewrap), and user namespaces, which some systems switch off',
    });
  return wrap(level, command, args, options);
}

async function wrap(
  level: 'netns' | 'container',
  command: string,
  args: readonly string[],
  { writable = [], readable = [], hide = [] }: IsolateOptions,
): Promise<IsolatedCommand> {
  const program = await findProgram(level === 'netns' ? 'unshare' : 'bwrap');
  if (program === undefined) throw new NorthrootError('ISOLATION_UNAVAILABLE', 'its program is gone');
  if (level === 'netns') return { command: program, args: [...UNSHARE, command, ...args] };
  const places = [
    ...(await Promise.all(hide.map(hiding))).flat(),
    ...(await Promise.all(readable.map((path) => binding('--ro-bind', path)))).flat(),
    ...(await Promise.all(writable.map((path) => binding('--bind', path)))).flat(),
  ];
  return { command: program, args: [...BWRAP, ...places, '--', command, ...args] };
}

/** What is empty in a container: links in there do not lead anywhere. */
const EMPTY = /^\/(?:tmp|run|dev)\//;

/** Nothing can be put behind a link: it is put where the link leads, and by the given path too where the link is not seen. */
async function binding(option: '--bind' | '--ro-bind', path: string): Promise<readonly string[]> {
  const real = await nodeFileSystem.followLinks(path);
  const given = real !== path && EMPTY.test(path) ? [option, real, path] : [];
  return [option, real, real, ...given];
}

async function hiding(given: string): Promise<readonly string[]> {
  const path = await nodeFileSystem.followLinks(given);
  const kind = await kindOfPath(path);
  if (kind === 'missing') return [];
  return kind === 'folder' ? ['--tmpfs', path] : ['--ro-bind', '/dev/null', path];
}

/** Whether a process gets namespaces other than this one's. */
async function isHeld(level: 'netns' | 'container'): Promise<boolean> {
  const readlink = await findProgram('readlink');
  if (readlink === undefined || (await findProgram(level === 'netns' ? 'unshare' : 'bwrap')) === undefined)
    return false;
  const links = NAMESPACES[level].map((name) => `/proc/self/ns/${name}`);
  const { command, args } = await wrap(level, readlink, links, {});
  const [own, other] = await Promise.all([linesOf(readlink, links), linesOf(command, args)]);
  return (
    own?.length === links.length &&
    other?.length === links.length &&
    own.every((each, i) => each !== other[i])
  );
}

/** What a program writes, by lines; undefined where it cannot be run, or fails. */
function linesOf(command: string, args: readonly string[]): Promise<readonly string[] | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, [...args], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: {},
      timeout: TRIAL_MS,
      killSignal: 'SIGKILL',
    });
    let text = '';
    child.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text = (text + piece).slice(0, 4_096);
    });
    child.once('error', () => resolve(undefined));
    child.once('close', (status) => resolve(status === 0 ? text.trimEnd().split('\n') : undefined));
  });
}
