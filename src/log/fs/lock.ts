/**
 * The exclusive lock that a ledger's writer holds: flock(2) on a descriptor that the writer keeps open, so that the
 * kernel drops it the moment the process is gone, however it went. Node has no call for it, but a lock belongs to the
 * open file and not to the process: a helper that inherits the descriptor takes the lock, exits, and leaves it to us.
 * The helper is `flock` (util-linux, busybox) or, where that is missing (macOS), `perl`: where systems keep them, and only
 * then wherever PATH leads.
 *
 * The helper waits in the kernel, which keeps those who wait in a queue: whoever asked first is woken first.
 */

import { spawn } from 'node:child_process';
import { constants } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { OpenFile } from './file-system.js';

/** Whether a helper waits for the lock, or tries once. */
type Manner = 'wait' | 'try';

const FLOCK: Readonly<Record<Manner, readonly string[]>> = { wait: ['-x', '3'], try: ['-n', '-x', '3'] };
/** Ends as flock does: 0 locked, 1 held by another, more where the lock cannot be had, with the reason. */
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

/** How long to leave a lock alone that a helper found held although it was to wait for it. */
const RETRY_MS = 50;
/** Who waits longer than this wants to know what for. */
const SILENT_MS = 1_000;
/** What a helper gets at least that tries once: on a busy machine a process takes its time to start. */
const MIN_HELPER_MS = 2_000;
const EXIT_MS = 200;
const MAX_REASON = 200;
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * Locks `file` for this process until it is closed.
 *
 * @param timeoutMs - How long to wait for another holder, in milliseconds; 0 to try once. A helper that hangs is ended then too,
 *   but not within its first two seconds.
 * @param signal - Aborting ends the wait with the signal's reason.
 * @param onWait - Called once, when the wait takes longer than a second and another has the lock.
 * @throws NorthrootError `LEDGER_LOCKED` when another writer keeps it; `LOCK_UNAVAILABLE` when no helper can be run, when it hangs,
 *   and when the file system has no such lock.
 */
export async function lockFile(
  file: OpenFile,
  timeoutMs: number,
  signal?: AbortSignal,
  onWait?: () => void,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  let asked: Promise<void> | undefined;
  // A helper that is slow on a busy machine waits for nobody: one that need not wait tells which.
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
    // A helper that was ended may have waited for the lock, or have hung: one that need not wait tells which.
    const end = await ask(file, 'try', MIN_HELPER_MS, signal);
    if (end === 'locked') return;
    if (end !== 'held') throw unavailable(file, `${end} did not end`, 'find out why it hangs');
  } finally {
    clearTimeout(telling);
    // It has the descriptor, which may be closed then, and another's.
    await asked;
  }
  throw new NorthrootError('LEDGER_LOCKED', `another process is appending to ${printable(file.path)}`, {
    hint: 'wait until it has finished, or wait longer for it',
  });
}

/**
 * Runs the first helper that can be run, for so long.
 *
 * @returns `held` when another has the lock; `late`, or the name of the helper that tried once, when it did not end in time.
 */
async function ask(
  file: OpenFile,
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
    // busybox ends with 1 whatever went wrong, but says what: a lock that is held is nothing to be said.
    if (status === 1 && stderr === '') return 'held';
    if (isLate) return manner === 'wait' ? 'late' : command;
    if (status !== undefined) reason ??= stderr === '' ? `${command} ended with ${status}` : stderr;
  }
  if (reason === undefined) {
    throw unavailable(file, 'neither flock nor perl can be run', 'install util-linux (flock)');
  }
  throw unavailable(file, reason, 'keep the ledger on a file system that has flock(2)');
}

function unavailable(file: OpenFile, why: string, hint: string): NorthrootError {
  return new NorthrootError('LOCK_UNAVAILABLE', `cannot lock ${printable(file.path)}: ${printable(why)}`, {
    hint: `${hint}; without a lock two writers could fork the ledger`,
    cause: new Error(why),
  });
}

interface HelperEnd {
  /** Undefined when it could not be run, or did not end by itself. */
  readonly status: number | undefined;
  readonly stderr: string;
  readonly isLate: boolean;
}

/** Runs a helper, which inherits the descriptor, for at most so long. */
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
    // What the helper started may keep its standard error open.
    child.once('exit', (status) => setTimeout(() => end(status ?? undefined), EXIT_MS));
  });
}
