/**
 * The writer's exclusive lock: flock(2) on a descriptor that the writer keeps open, so that the kernel releases it when the process ends in
 * any way. Node has no such call, but a lock belongs to the open file, not to the process: a helper inherits the descriptor, takes the lock
 * and exits. The helper is `flock`, or `perl` where that is missing (macOS), from its usual path, else by PATH. It waits in the kernel,
 * first come, first served. Who takes the lock again and again has a helper that stays, where there can be one (`lock-helper.ts`).
 */

import { spawn } from 'node:child_process';
import { fstatSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { LockHelper } from './lock-helper.js';

interface OpenDescriptor {
  readonly fd: number;
  readonly path: string;
}

/** Whether a helper waits for the lock, or tries once. */
type Manner = 'wait' | 'try';

const FLOCK: Readonly<Record<Manner, readonly string[]>> = { wait: ['-x', '3'], try: ['-n', '-x', '3'] };
/** Exits as flock does: 0 locked, 1 held by another, more on failure, with the reason. */
const perl = (operation: number): readonly string[] => [
  '-e',
  `open(my $f, "<&=", 3) or exit 2; flock($f, ${operation}) and exit 0; exit 1 if $!+0 == ${constants.errno.EWOULDBLOCK}; print STDERR $!; exit 2`,
];
const PERL: Readonly<Record<Manner, readonly string[]>> = { wait: perl(2), try: perl(6) };

const HELPERS: readonly (readonly [command: string, args: Readonly<Record<Manner, readonly string[]>>])[] = [
  ['/usr/bin/flock', FLOCK],
  ['/bin/flock', FLOCK],
  ['/usr/bin/perl', PERL],
  ['/bin/perl', PERL],
  ['flock', FLOCK],
  ['perl', PERL],
];

/** The pause after a helper reports a held lock although it was to wait. */
const RETRY_MS = 50;
/** After this long the caller is notified. */
const SILENT_MS = 1_000;
/** The least time for a helper that tries once: a busy machine starts processes slowly. */
const MIN_HELPER_MS = 2_000;
const EXIT_MS = 200;
const MAX_REASON = 200;
const MAX_TIMER_MS = 2 ** 31 - 1;
/** A helper that stays ends when it was not needed for this long. */
const IDLE_MS = 60_000;
/** What the kernel tells of locks. */
const LOCKS = '/proc/locks';
const MAX_LOCKS_BYTES = 64 * 1024;
/** Each reading gets a page at most, of whole lines: more than this may not be all. */
const FEW_LOCKS_BYTES = 1024;

/** The lock of an open file, taken and given back any number of times. */
export class FileLock {
  readonly #file: OpenDescriptor;
  #helper: LockHelper | undefined;
  #idle: NodeJS.Timeout | undefined;
  #inode: bigint | undefined;
  /** What the kernel tells, kept open while it is asked again and again. */
  #locks: Promise<FileHandle> | undefined;

  constructor(file: OpenDescriptor) {
    this.#file = file;
  }

  /** As {@link lockFile}. After an error the file MUST be closed: it may be locked. */
  async take(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    onWait: (() => void) | undefined,
  ): Promise<void> {
    clearTimeout(this.#idle);
    const deadline = performance.now() + timeoutMs;
    if (await this.#askHelper(deadline, signal, onWait)) return;
    await lockFile(this.#file, Math.max(0, deadline - performance.now()), signal, onWait);
  }

  /** Gives the lock back, the file staying open. @returns false where that is not possible: the file MUST be closed */
  async giveBack(): Promise<boolean> {
    this.#helper ??= LockHelper.start(this.#file.fd);
    if ((await this.#helper?.ask('unlock', MIN_HELPER_MS)) !== true) {
      await this.end();
      return false;
    }
    this.#idle = setTimeout(() => void this.end(), IDLE_MS);
    this.#idle.unref();
    return true;
  }

  /**
   * Whether another waits for it, as far as the kernel tells: not of other machines, nor of other containers. The kernel takes milliseconds
   * to tell, as it stops all changes of locks for that.
   */
  async isWanted(): Promise<boolean> {
    this.#inode ??= fstatSync(this.#file.fd, { bigint: true }).ino;
    const locks = await this.#readLocks().catch(() => '');
    return locks.includes('->') && new RegExp(`-> FLOCK .*:${this.#inode} `).test(locks);
  }

  /** To be called before the file is closed. */
  async end(): Promise<void> {
    clearTimeout(this.#idle);
    const [helper, locks] = [this.#helper, this.#locks];
    this.#helper = undefined;
    this.#locks = undefined;
    await helper?.end();
    await locks?.then((file) => file.close()).catch(() => undefined);
  }

  async #readLocks(): Promise<string> {
    const file = await (this.#locks ??= open(LOCKS));
    const buffer = Buffer.allocUnsafe(MAX_LOCKS_BYTES);
    let [size, more] = [0, Infinity];
    while (more > FEW_LOCKS_BYTES) {
      more = (await file.read(buffer, size, buffer.length - size, size)).bytesRead;
      size += more;
    }
    return buffer.toString('latin1', 0, size);
  }

  /** @returns false if there is no helper that stays, or no more */
  async #askHelper(
    deadline: number,
    signal: AbortSignal | undefined,
    onWait: (() => void) | undefined,
  ): Promise<boolean> {
    const helper = this.#helper;
    if (helper === undefined) return false;
    signal?.throwIfAborted();
    let isDone = await helper.ask('try', MIN_HELPER_MS, signal);
    if (isDone === false) {
      const left = Math.min(deadline - performance.now(), MAX_TIMER_MS);
      if (left <= 0) throw locked(this.#file);
      const telling = onWait && setTimeout(onWait, SILENT_MS);
      isDone = await helper.ask('lock', left, signal);
      clearTimeout(telling);
    }
    if (isDone === true) return true;
    await this.end();
    signal?.throwIfAborted();
    return false;
  }
}

/**
 * Locks `file` for this process until it is closed.
 * @param timeoutMs - How long to wait, in milliseconds; 0 to try once. Also bounds a hanging helper, after its first two seconds.
 * @param signal - Aborting ends the wait with its reason
 * @param onWait - Called once, when another holder makes the wait longer than a second
 * @throws NorthrootError `LEDGER_LOCKED` for another holder; `LOCK_UNAVAILABLE` if no helper runs, or it hangs, or the file system has no
 *   such lock
 */
async function lockFile(
  file: OpenDescriptor,
  timeoutMs: number,
  signal?: AbortSignal,
  onWait?: () => void,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let asked: Promise<void> | undefined;
  // The helper may only be slow to start: one that tries once tells.
  const tell = async (): Promise<void> => {
    if ((await ask(file, 'try', MIN_HELPER_MS, signal)) === 'held') onWait?.();
  };
  const telling =
    onWait === undefined
      ? undefined
      : setTimeout(() => {
          asked = tell().catch(() => undefined);
        }, SILENT_MS);
  try {
    while (performance.now() < deadline) {
      const end = await ask(file, 'wait', deadline - performance.now(), signal);
      if (end === 'locked') return;
      if (end === 'late') break;
      await sleep(Math.min(RETRY_MS, Math.max(0, deadline - performance.now())));
    }
    // A killed helper may have waited or hung: one that tries once tells.
    const end = await ask(file, 'try', MIN_HELPER_MS, signal);
    if (end === 'locked') return;
    if (end !== 'held') throw unavailable(file, `${end} did not end`, 'find out why it hangs');
  } finally {
    clearTimeout(telling);
    // The helper holds the descriptor, whose number could be reused.
    await asked;
  }
  throw locked(file);
}

function locked(file: OpenDescriptor): NorthrootError {
  return new NorthrootError('LEDGER_LOCKED', `another process is appending to ${printable(file.path)}`, {
    hint: 'wait until it has finished, or wait longer for it',
  });
}

/**
 * Runs the first available helper.
 * @returns `locked`; `held` by another; if it timed out, `late`, or the helper's name if it tried once
 */
async function ask(
  file: OpenDescriptor,
  manner: Manner,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  let reason: string | undefined;
  for (const [command, args] of HELPERS) {
    signal?.throwIfAborted();
    const limit = Math.min(limitMs, MAX_TIMER_MS);
    const { status, stderr, isLate } = await run(command, args[manner], file.fd, limit, signal);
    signal?.throwIfAborted();
    if (status === 0) return 'locked';
    // busybox exits with 1 for any failure, but prints a reason; a held lock prints none.
    if (status === 1 && stderr === '') return 'held';
    if (isLate) return manner === 'wait' ? 'late' : command;
    if (status !== undefined) reason ??= stderr === '' ? `${command} ended with ${status}` : stderr;
  }
  if (reason === undefined)
    throw unavailable(file, 'neither flock nor perl can be run', 'install util-linux (flock)');
  throw unavailable(file, reason, 'keep the ledger on a file system that has flock(2)');
}

function unavailable(file: OpenDescriptor, why: string, hint: string): NorthrootError {
  return new NorthrootError('LOCK_UNAVAILABLE', `cannot lock ${printable(file.path)}: ${printable(why)}`, {
    hint: `${hint}; without a lock two writers could fork the ledger`,
    cause: new Error(why),
  });
}

interface HelperEnd {
  /** Undefined when it could not run, or was killed. */
  readonly status: number | undefined;
  readonly stderr: string;
  readonly isLate: boolean;
}

/** Runs a helper with the descriptor as number 3, for at most `limitMs`. */
function run(
  command: string,
  args: readonly string[],
  fd: number,
  limitMs: number,
  signal: AbortSignal | undefined,
): Promise<HelperEnd> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe', fd] });
    let [stderr, isLate] = ['', false];
    const kill = (): void => void child.kill('SIGKILL');
    const timer = setTimeout(() => {
      isLate = true;
      kill();
    }, limitMs);
    signal?.addEventListener('abort', kill);
    const end = (status: number | undefined): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', kill);
      child.stderr?.destroy();
      resolve({ status, stderr: stderr.trim(), isLate });
    };
    child.stderr?.on('data', (chunk: Buffer) => {
      stderr = (stderr + chunk.toString('utf8')).slice(0, MAX_REASON);
    });
    child.once('error', () => end(undefined));
    child.once('close', (status) => end(status ?? undefined));
    // The helper's children may keep its standard error open.
    child.once('exit', (status) => setTimeout(() => end(status ?? undefined), EXIT_MS));
  });
}
