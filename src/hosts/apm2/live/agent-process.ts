/**
 * An agent as a process of its own group, under pipes or a terminal. Nothing that it writes or holds back keeps it alive: its lines are
 * bounded, and whoever is left of its group when it ends is killed.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:os';
import { setTimeout as setTimeoutAsync } from 'node:timers/promises';
import { decodeUtf8 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';

export interface AgentCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Whether it gets a terminal. */
  readonly pty: boolean;
}

export interface AgentProcessOptions extends AgentCommand {
  readonly maxLineBytes: number;
  readonly maxOutputBytes: number;
  /** Called whenever it has written something. */
  readonly onOutput: () => void;
  /** What it writes to standard error. */
  readonly onStderr: (bytes: Uint8Array) => void;
  /** How long after SIGTERM it is killed, in milliseconds. */
  readonly graceMs: number;
}

/** How a process ended: its status, or 128 and the number of its signal. */
export interface AgentExit {
  readonly status: number;
  readonly signal: NodeJS.Signals | undefined;
}

export interface AgentLine {
  readonly text: string;
  /** Whether it had an end: the last one may have none. */
  readonly isWhole: boolean;
}

/** What an agent's output went beyond. */
export type OutputFault = 'LINE_TOO_LONG' | 'OUTPUT_TOO_LONG';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SIGNALLED = 128;
/** How long what it wrote last is waited for after its group was killed, in milliseconds. */
const DRAIN_MS = 1_000;
const POLL_MS = 20;
/** What waits for an agent that does not read, in bytes. */
const MAX_WAITING_BYTES = 1024 * 1024;

export class AgentProcess {
  readonly exited: Promise<AgentExit>;
  readonly #child: ChildProcess;
  readonly #options: AgentProcessOptions;
  #isTerminated = false;
  #hasExited = false;
  #killer: NodeJS.Timeout | undefined;
  #output: AsyncIterator<Uint8Array> | undefined;
  /** What the terminal's own first line begins with, until it was read. */
  #marker: string | undefined;
  /** The agent's group in a terminal, which is another than the terminal's. */
  #inner: number | undefined;

  /** @throws NorthrootError `AGENT_NOT_STARTED` by {@link AgentProcess.exited} */
  constructor(options: AgentProcessOptions) {
    this.#options = options;
    if (options.pty) this.#marker = randomBytes(16).toString('hex');
    const { command, args } = this.#marker === undefined ? options : inTerminal(options, this.#marker);
    const env = options.pty ? { ...options.env, SHELL: '/bin/sh' } : { ...options.env };
    this.#child = spawn(command, [...args], {
      cwd: options.cwd,
      env,
      // A group of its own, so that all of it can be killed.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const { stdin, stderr } = this.#child;
    // An agent that does not read has nobody to tell.
    stdin?.on('error', () => undefined);
    stderr?.on('error', () => undefined);
    stderr?.on('data', (bytes: Uint8Array) => {
      options.onOutput();
      options.onStderr(bytes);
    });
    this.exited = new Promise((resolve, reject) => {
      this.#child.once('error', (error: NodeJS.ErrnoException) => {
        this.#hasExited = true;
        reject(notStarted(error));
      });
      this.#child.once('exit', (code, signal) => {
        this.#hasExited = true;
        clearTimeout(this.#killer);
        const exit = {
          status: code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal]),
          signal: signal ?? undefined,
        };
        void this.#clear().then(() => resolve(exit));
      });
    });
    this.exited.catch(() => undefined);
  }

  /** Its lines, without their ends. It is not read while their consumer is busy. */
  async *lines(onFault: (fault: OutputFault) => void): AsyncGenerator<AgentLine, void, void> {
    const { maxLineBytes, maxOutputBytes, onOutput } = this.#options;
    let pieces: Uint8Array[] = [];
    let size = 0;
    let total = 0;
    for (;;) {
      const chunk = await this.#read();
      if (chunk === undefined) break;
      onOutput();
      total += chunk.length;
      let from = 0;
      for (;;) {
        const end = chunk.indexOf(LINE_FEED, from);
        const piece = chunk.subarray(from, end < 0 ? chunk.length : end);
        size += piece.length;
        if (size > maxLineBytes) return onFault('LINE_TOO_LONG');
        pieces.push(piece);
        if (end < 0) break;
        const line = Buffer.concat(pieces, size);
        [pieces, size, from] = [[], 0, end + 1];
        const text = decodeUtf8(line.at(-1) === CARRIAGE_RETURN ? line.subarray(0, -1) : line);
        if (!this.#isOfTerminal(text)) yield { text, isWhole: true };
      }
      if (total > maxOutputBytes) return onFault('OUTPUT_TOO_LONG');
    }
    if (size > 0) yield { text: decodeUtf8(Buffer.concat(pieces, size)), isWhole: false };
  }

  /** What it wrote; undefined at the end, or when only who has left its group could write more. */
  async #read(): Promise<Uint8Array | undefined> {
    this.#output ??= this.#child.stdout?.[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
    let timer: NodeJS.Timeout | undefined;
    const left = this.exited.then(
      () =>
        new Promise<undefined>((resolve) => {
          // What has come meanwhile is read first: this process may have been busy.
          timer = setTimeout(() => setImmediate(resolve, undefined), DRAIN_MS);
        }),
      () => undefined,
    );
    try {
      const next = await Promise.race([this.#output.next(), left]);
      if (next?.done === false) return next.value;
    } catch {
      // It was closed.
    } finally {
      clearTimeout(timer);
    }
    this.#child.stdout?.destroy();
    return undefined;
  }

  /** Whether a line is the one by which the terminal says whose group the agent leads. */
  #isOfTerminal(line: string): boolean {
    if (this.#marker === undefined) return false;
    const [marker, pid] = line.split(' ');
    if (marker !== this.#marker) return false;
    this.#marker = undefined;
    this.#inner = Number(pid);
    return true;
  }

  /** Writes to its standard input. @returns false for one that does not read */
  write(text: string): boolean {
    const { stdin } = this.#child;
    if (stdin === null || stdin.destroyed || stdin.writableEnded) return true;
    stdin.write(text);
    return stdin.writableLength <= MAX_WAITING_BYTES;
  }

  endInput(): void {
    this.#child.stdin?.end();
  }

  /** Asks the group to end; what is left after the grace is killed. */
  terminate(): void {
    if (this.#isTerminated || this.#hasExited) return;
    this.#isTerminated = true;
    this.#signal('SIGTERM');
    this.#killer = setTimeout(() => this.#signal('SIGKILL'), this.#options.graceMs);
  }

  /** Kills whoever is left of it, and waits for that: they have no kernel any more. */
  async #clear(): Promise<void> {
    for (let waited = 0; this.#signal('SIGKILL') && waited < DRAIN_MS; waited += POLL_MS)
      await setTimeoutAsync(POLL_MS);
  }

  /** @returns whether anybody was there */
  #signal(signal: NodeJS.Signals): boolean {
    const { pid } = this.#child;
    if (pid === undefined) return false;
    let isThere = false;
    for (const group of this.#inner === undefined ? [pid] : [this.#inner, pid]) {
      try {
        process.kill(-group, signal);
        isThere = true;
      } catch {
        // It is gone.
      }
    }
    return isThere;
  }
}

/**
 * A terminal by script(1) of util-linux, without native code: no echo, or every answer would come back as output; no line discipline, which
 * would cut lines at 4,096 bytes.
 */
function inTerminal({ command, args }: AgentCommand, marker: string): Pick<AgentCommand, 'command' | 'args'> {
  const quoted = [command, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  const line = `stty -echo -onlcr -icanon && echo ${marker} $$ && exec ${quoted}`;
  return { command: 'script', args: ['-qefc', line, '/dev/null'] };
}

function notStarted(error: NodeJS.ErrnoException): NorthrootError {
  const why =
    error.code === 'ENOENT' ? 'there is no such program or folder' : `it cannot be run (${error.code})`;
  return new NorthrootError('AGENT_NOT_STARTED', `the agent was not started: ${why}`, { cause: error });
}
