/** Runs one program to its end: in a process group of its own, without input, with bounded output and a deadline. */

import { type ChildProcess, spawn } from 'node:child_process';

export interface ProgramRun {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** The most that it may write, standard output and error together, in bytes; then it is killed. */
  readonly maxBytes: number;
  /** Aborting asks it to end (SIGTERM), and kills it {@link GRACE_MS} later. */
  readonly signal: AbortSignal;
  readonly onStarted?: (() => void) | undefined;
}

export interface ProgramEnd {
  /** Undefined where it was killed, or not started. */
  readonly status: number | undefined;
  readonly killedBy: NodeJS.Signals | undefined;
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Why it was ended; undefined where it ended by itself. */
  readonly ended: 'not_started' | 'aborted' | 'output' | undefined;
}

/** Between SIGTERM and SIGKILL, in milliseconds. */
export const GRACE_MS = 2_000;
/** How long what was written is read after the program ended, where something else holds its output open, in milliseconds. */
const DRAIN_MS = 500;

/** Settles when the program has ended and its group is killed; never rejects. */
export function runProgram(run: ProgramRun): Promise<ProgramEnd> {
  return new Promise((resolve) => new Running(run, resolve));
}

class Running {
  readonly #run: ProgramRun;
  readonly #resolve: (end: ProgramEnd) => void;
  readonly #child: ChildProcess;
  readonly #out: Buffer[] = [];
  readonly #err: Buffer[] = [];
  #size = 0;
  #ended: ProgramEnd['ended'];
  #exit: Pick<ProgramEnd, 'status' | 'killedBy'> = { status: undefined, killedBy: undefined };
  #killing: NodeJS.Timeout | undefined;
  #draining: NodeJS.Timeout | undefined;

  constructor(run: ProgramRun, resolve: (end: ProgramEnd) => void) {
    this.#run = run;
    this.#resolve = resolve;
    const { command, args, cwd, env, signal } = run;
    this.#child = spawn(command, [...args], {
      cwd,
      env: { ...env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    run.onStarted?.();
    this.#child.stdout?.on('data', (bytes: Buffer) => this.#keep(this.#out, bytes));
    this.#child.stderr?.on('data', (bytes: Buffer) => this.#keep(this.#err, bytes));
    this.#child.once('error', () => {
      this.#ended = 'not_started';
      this.#finish();
    });
    this.#child.once('exit', (status, killedBy) => {
      this.#exit = { status: status ?? undefined, killedBy: killedBy ?? undefined };
      // What it left running ends with it.
      this.#kill('SIGKILL');
      // What has come meanwhile is read first: this process may have been busy.
      this.#draining = setTimeout(() => setImmediate(() => this.#finish()), DRAIN_MS);
    });
    this.#child.once('close', () => this.#finish());
    signal.addEventListener('abort', this.#abort, { once: true });
    if (signal.aborted) this.#abort();
  }

  readonly #abort = (): void => {
    if (this.#ended !== undefined) return;
    this.#ended = 'aborted';
    this.#kill('SIGTERM');
    this.#killing = setTimeout(() => this.#kill('SIGKILL'), GRACE_MS);
  };

  #keep(pieces: Buffer[], bytes: Buffer): void {
    const room = this.#run.maxBytes - this.#size;
    if (room > 0) pieces.push(bytes.length > room ? bytes.subarray(0, room) : bytes);
    this.#size += bytes.length;
    if (bytes.length <= room) return;
    this.#ended ??= 'output';
    this.#kill('SIGKILL');
  }

  /** Its group, which has its number; gone is as good as ended. */
  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      return;
    }
  }

  #finish(): void {
    clearTimeout(this.#killing);
    clearTimeout(this.#draining);
    this.#run.signal.removeEventListener('abort', this.#abort);
    this.#child.stdout?.destroy();
    this.#child.stderr?.destroy();
    this.#resolve({
      ...this.#exit,
      stdout: Buffer.concat(this.#out),
      stderr: Buffer.concat(this.#err),
      ended: this.#ended,
    });
  }
}
