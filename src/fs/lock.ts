/**
 * The exclusive lock that a ledger's writer holds: flock(2) on a descriptor that the writer keeps open, so that the
 * kernel drops it the moment the process is gone, however it went. Node has no call for it, but a lock belongs to the
 * open file and not to the process: a helper that inherits the descriptor takes the lock, exits, and leaves it to us.
 * The helper is `flock` (util-linux, busybox) or, where that is missing (macOS), `perl`.
 */

import { spawn } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import type { OpenFile } from './file-system.js';

const HELPERS: readonly (readonly [command: string, ...args: string[]])[] = [
  ['flock', '-n', '-x', '3'],
  ['perl', '-e', 'open(my $f, "<&=", 3) or exit 2; flock($f, 6) or exit 1'],
];

const RETRY_MS = 50;
/** Who waits longer than this wants to know what for. */
const SILENT_MS = 1_000;

/**
 * Locks `file` for this process until it is closed.
 *
 * @param timeoutMs - How long to wait for another holder, in milliseconds; 0 to try once.
 * @param signal - Aborting ends the wait with the signal's reason.
 * @param onWait - Called once, when the wait takes longer than a second.
 * @throws NorthrootError `LEDGER_LOCKED` when another writer keeps it; `LOCK_UNAVAILABLE` when no helper can be run.
 */
export async function lockFile(
  file: OpenFile,
  timeoutMs: number,
  signal?: AbortSignal,
  onWait?: () => void,
): Promise<void> {
  const start = performance.now();
  const deadline = start + timeoutMs;
  let tell = onWait;
  while (!(await tryLock(file))) {
    signal?.throwIfAborted();
    if (performance.now() - start >= SILENT_MS) {
      tell?.();
      tell = undefined;
    }
    if (performance.now() >= deadline) {
      throw new NorthrootError('LEDGER_LOCKED', `another process is appending to ${printable(file.path)}`, {
        hint: 'wait until it has finished, or give a longer --lock-timeout',
      });
    }
    await sleep(RETRY_MS);
  }
}

async function tryLock(file: OpenFile): Promise<boolean> {
  for (const [command, ...args] of HELPERS) {
    const status = await run(command, args, file.fd);
    if (status === 0) return true;
    if (status === 1) return false;
  }
  throw new NorthrootError(
    'LOCK_UNAVAILABLE',
    `cannot lock ${printable(file.path)}: neither flock nor perl can be run`,
    {
      hint: 'install util-linux (flock); without a lock two writers could fork the ledger',
    },
  );
}

/** The helper's exit status; undefined when it could not be run. */
function run(command: string, args: readonly string[], fd: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'ignore', fd] });
    child.once('error', () => resolve(undefined));
    child.once('exit', (status) => resolve(status ?? undefined));
  });
}
