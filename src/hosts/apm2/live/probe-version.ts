/** The version probe of a profile: the agent that is installed is the one that the profile is for. */

import { spawn } from 'node:child_process';
import { createContext, runInContext } from 'node:vm';
import { decodeUtf8 } from '../../../base/bytes/text.js';

export type ProbeFault = 'PROBE_NOT_STARTED' | 'PROBE_TIMEOUT' | 'PROBE_FAILED' | 'PROBE_MISMATCH';

/** Of what a probe prints, in bytes: a version is short. */
const MAX_PROBE_BYTES = 4096;
const PROBE_TIMEOUT_MS = 30_000;
/** How often is looked what a pattern has taken, in milliseconds, and how much of a processor it may take in all. */
const REGEX_TIMEOUT_MS = 250;
const MAX_REGEX_CPU_MS = 200;

/**
 * Runs the probe's command, a program and its arguments at single spaces, and searches its output.
 * @returns undefined where the version is the expected one
 */
export async function probeVersion(
  words: readonly string[],
  regex: string,
  {
    env,
    cwd,
    timeoutMs = PROBE_TIMEOUT_MS,
  }: {
    readonly env: Readonly<Record<string, string>>;
    readonly cwd: string;
    readonly timeoutMs?: number | undefined;
  },
): Promise<ProbeFault | undefined> {
  const [command = '', ...args] = words;
  const child = spawn(command, args, {
    cwd,
    env: { ...env },
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const pieces: Buffer[] = [];
  let size = 0;
  child.stdout.on('error', () => undefined);
  child.stdout.on('data', (piece: Buffer) => {
    if (size < MAX_PROBE_BYTES) pieces.push(piece);
    size += piece.length;
  });
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It is gone.
    }
  };
  let timer: NodeJS.Timeout | undefined;
  const status = await new Promise<number | ProbeFault>((resolve) => {
    timer = setTimeout(() => resolve('PROBE_TIMEOUT'), timeoutMs);
    child.once('error', () => resolve('PROBE_NOT_STARTED'));
    child.once('exit', () => kill());
    child.once('close', (code) => resolve(code ?? 'PROBE_FAILED'));
  });
  clearTimeout(timer);
  kill();
  child.stdout.destroy();
  if (typeof status === 'string') return status;
  if (status !== 0) return 'PROBE_FAILED';
  const text = decodeUtf8(Buffer.concat(pieces).subarray(0, MAX_PROBE_BYTES)).trim();
  return finds(regex, text) ? undefined : 'PROBE_MISMATCH';
}

/** A pattern that goes on for too long does not match: who wrote the profile is not trusted with the time of this process. */
function finds(regex: string, text: string): boolean {
  const context = createContext({ regex, text });
  const begun = process.cpuUsage();
  for (;;) {
    try {
      const found: unknown = runInContext('new RegExp(regex, "m").test(text)', context, {
        timeout: REGEX_TIMEOUT_MS,
      });
      return found === true;
    } catch (error) {
      const isLate = (error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
      // On a busy machine the time may have gone by without it.
      const { user, system } = process.cpuUsage(begun);
      if (!isLate || user + system >= 1_000 * MAX_REGEX_CPU_MS) return false;
    }
  }
}
