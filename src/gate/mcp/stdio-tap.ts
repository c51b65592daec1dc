/**
 * A tap on MCP over stdio: it starts a server, and stands between it and its client. Each direction keeps its order; only what may overtake
 * a call that is being decided does (`McpHandling`). Messages that need no decision pass at once, before any ledger is open.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { constants } from 'node:os';
import type { Readable, Writable } from 'node:stream';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, type OptionTypes } from '../../base/options.js';
import { DEFAULT_MAX_MESSAGE_BYTES, type LineFrame, LineFrames, type LongLine } from './line-frames.js';
import type { McpGuard } from './mcp-guard.js';
import type { McpHandling, McpStep } from './mcp-link.js';

export interface TapMcpOptions {
  /** The server: a program and its arguments. */
  readonly command: readonly string[];
  /** Closed at the end; its gate is not. */
  readonly guard: McpGuard;
  /** Of the client. Default: standard input and output. */
  readonly input?: Readable | undefined;
  readonly output?: Writable | undefined;
  /** Of the server. Default: this process's, without what it has for northroot. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
  /** The most bytes of one message. Default 16 MiB. */
  readonly maxMessageBytes?: number | undefined;
  /** How long the server may take to end after its input ended, in milliseconds; then it gets SIGTERM. Default 5,000. */
  readonly graceMs?: number | undefined;
  /** Aborting ends the server, and settles. */
  readonly signal?: AbortSignal | undefined;
  /** Told where the guard cannot open its gate. */
  readonly onNotOpen?: ((error: unknown) => void) | undefined;
}

const OPTION_TYPES: OptionTypes<TapMcpOptions> = {
  command: 'array',
  guard: 'object',
  input: 'object',
  output: 'object',
  env: 'object',
  maxMessageBytes: 'number',
  graceMs: 'number',
  signal: 'signal',
  onNotOpen: 'function',
};

const DEFAULT_GRACE_MS = 5_000;
/** How long after SIGTERM it is killed, in milliseconds: clients kill this program two seconds after they asked it to end. */
const TERM_MS = 1_500;
/** What waits in one direction, in bytes; at more its sender is not read. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;
/** A shell adds this to the number of the signal that ended a program. */
const SIGNALLED = 128;
/** What a server is not told. */
const OWN_VARIABLES = /^NORTHROOT_/;

/**
 * Runs a server behind a guard until one of the two sides ends.
 * @returns The server's exit status; 128 and the number of the signal that ended it
 * @throws NorthrootError `MCP_SERVER_NOT_STARTED` where the server cannot be started; TypeError, RangeError for malformed options
 */
export async function tapMcp(options: TapMcpOptions): Promise<number> {
  checkOptions('tapMcp', options, OPTION_TYPES);
  const { command, env = ownless(process.env) } = options;
  const [name, ...args] = command;
  if (typeof name !== 'string' || name === '') throw new TypeError('tapMcp: command: expected a program');
  const child = spawn(name, args, { stdio: ['pipe', 'pipe', 'inherit'], env: { ...env } });
  return new Tap(options, child).run();
}

class Tap {
  readonly #options: TapMcpOptions;
  readonly #child: ChildProcess;
  readonly #client: Sink;
  readonly #server: Sink;
  readonly #exited: Promise<number>;
  #isOpening = false;

  constructor(options: TapMcpOptions, child: ChildProcess) {
    this.#options = options;
    this.#child = child;
    this.#client = new Sink(options.output ?? process.stdout);
    this.#server = new Sink(child.stdin as Writable);
    this.#exited = new Promise((resolve, reject) => {
      child.once('error', (error: NodeJS.ErrnoException) =>
        reject(notRun(this.#options.command[0] as string, error)),
      );
      child.once('exit', (code, signal) =>
        resolve(code ?? SIGNALLED + (signal === null ? 0 : constants.signals[signal])),
      );
    });
  }

  async run(): Promise<number> {
    const { guard, signal, maxMessageBytes = DEFAULT_MAX_MESSAGE_BYTES } = this.#options;
    const { input = process.stdin } = this.#options;
    const link = guard.connect();
    const output = this.#child.stdout as Readable;
    const fromClient = new Direction({
      input,
      maxBytes: maxMessageBytes,
      handle: (message) => link.fromClient(message),
      forward: this.#server,
      back: this.#client,
      isOvertaken: true,
      tooLong: (line) => link.tooLongFromClient(line),
    });
    const fromServer = new Direction({
      input: output,
      maxBytes: maxMessageBytes,
      handle: (message) => link.fromServer(message),
      forward: this.#client,
      back: this.#server,
      isOvertaken: false,
      tooLong: (line) => link.tooLongFromServer(line),
      // The handshake went first.
      onFrame: () => this.#open(),
    });
    const ended = this.#exited.then(
      () => 'server',
      () => 'server',
    );
    const given = fromClient.run();
    const told = fromServer.run();
    try {
      await Promise.race([ended, given, this.#client.broken, this.#server.broken, aborted(signal)]);
      const status = await this.#stop(ended, signal);
      // What the server said last; a child of its own may keep its output open.
      await Promise.race([told, after(TERM_MS)]);
      return status;
    } finally {
      input.destroy();
      output.destroy();
      await link.close();
      await guard.close();
      await this.#client.end();
    }
  }

  /** Ends the server: its input ends, then it is asked, then killed. */
  async #stop(ended: Promise<unknown>, signal: AbortSignal | undefined): Promise<number> {
    this.#server.close();
    const { graceMs = DEFAULT_GRACE_MS } = this.#options;
    if (signal?.aborted !== true) await Promise.race([ended, after(graceMs, aborted(signal))]);
    this.#child.kill('SIGTERM');
    await Promise.race([ended, after(TERM_MS)]);
    this.#child.kill('SIGKILL');
    return this.#exited;
  }

  /** Beside what passes: the first call that is decided should not wait for it. */
  #open(): void {
    if (this.#isOpening) return;
    this.#isOpening = true;
    this.#options.guard.open().catch((error: unknown) => this.#options.onNotOpen?.(error));
  }
}

interface DirectionOptions {
  readonly input: Readable;
  readonly maxBytes: number;
  readonly handle: (message: Uint8Array) => McpHandling;
  readonly forward: Sink;
  readonly back: Sink;
  /** Whether messages that may overtake do. */
  readonly isOvertaken: boolean;
  readonly tooLong: (line: LongLine) => McpHandling;
  readonly onFrame?: () => void;
}

class Direction {
  readonly #options: DirectionOptions;
  /** Resolves when the last message that keeps its order has been dealt with. */
  #lane: Promise<void> = Promise.resolve();
  #waiting = 0;
  #waitingBytes = 0;
  #wake: (() => void) | undefined;

  constructor(options: DirectionOptions) {
    this.#options = options;
  }

  /** Resolves when the input has ended and what keeps its order has been dealt with. */
  async run(): Promise<void> {
    const { input, maxBytes } = this.#options;
    const lines = new LineFrames(maxBytes);
    try {
      for await (const chunk of input as AsyncIterable<Uint8Array>)
        for (const line of lines.push(chunk)) await this.#take(line);
    } catch {
      // A broken pipe is an end.
    }
    const rest = lines.end();
    if (rest !== undefined) await this.#take(rest);
    await this.#lane;
  }

  async #take(line: LineFrame): Promise<void> {
    const { handle, tooLong, onFrame, forward, back } = this.#options;
    if (line instanceof Uint8Array) this.#handle(handle(line), line.length);
    else this.#handle(tooLong(line), 0);
    onFrame?.();
    while (this.#waitingBytes > MAX_WAITING_BYTES)
      await new Promise<void>((resolve) => (this.#wake = resolve));
    if (forward.isFull) await forward.drained();
    if (back.isFull) await back.drained();
  }

  #handle({ step, waits, overtakes }: McpHandling, size: number): void {
    const isNow = !(step instanceof Promise);
    const isFree = overtakes && (this.#options.isOvertaken || !isNow);
    if (isNow && (isFree || this.#waiting === 0)) {
      this.#perform(step);
      return;
    }
    this.#waitingBytes += size;
    const perform = (done: McpStep): void => {
      this.#waitingBytes -= size;
      this.#wake?.();
      this.#perform(done);
    };
    if (isFree) void Promise.resolve(step).then(perform);
    else {
      this.#waiting += 1;
      this.#lane = this.#inTurn(this.#lane, step, waits, perform);
    }
  }

  /** One that waits for approvals lets others pass. */
  async #inTurn(
    turn: Promise<void>,
    step: McpStep | Promise<McpStep>,
    waits: Promise<void> | undefined,
    perform: (step: McpStep) => void,
  ): Promise<void> {
    await turn;
    const settled = Promise.resolve(step);
    const done = await Promise.race(waits === undefined ? [settled] : [settled, waits]);
    this.#waiting -= 1;
    if (done === undefined) void settled.then(perform);
    else perform(done);
  }

  #perform(step: McpStep): void {
    if (step.kind === 'drop') return;
    (step.kind === 'forward' ? this.#options.forward : this.#options.back).write(step.message);
  }
}

const LINE_END = Buffer.from('\n');

/** Where messages are written. What is written after it broke, or was closed, is lost. */
class Sink {
  /** Resolves when its reader has gone. */
  readonly broken: Promise<void>;
  readonly #stream: Writable;
  #isClosed = false;
  #drained: Promise<void> | undefined;

  constructor(stream: Writable) {
    this.#stream = stream;
    this.broken = new Promise((resolve) => {
      const onEnd = (): void => {
        this.#isClosed = true;
        resolve();
      };
      stream.once('error', onEnd);
      stream.once('close', onEnd);
      // Later ones have nobody to tell.
      stream.on('error', () => undefined);
    });
  }

  get isFull(): boolean {
    return this.#drained !== undefined;
  }

  async drained(): Promise<void> {
    await this.#drained;
  }

  write(message: Uint8Array): void {
    if (this.#isClosed) return;
    this.#stream.cork();
    this.#stream.write(message);
    const hasRoom = this.#stream.write(LINE_END);
    this.#stream.uncork();
    if (hasRoom || this.#drained !== undefined) return;
    const drained = new Promise<void>((resolve) => this.#stream.once('drain', resolve));
    this.#drained = Promise.race([drained, this.broken]).then(() => {
      this.#drained = undefined;
    });
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#stream.end();
  }

  /** Waits until its reader has what was written, or is gone. */
  async end(): Promise<void> {
    this.#isClosed = true;
    await this.#drained;
  }
}

function ownless(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !OWN_VARIABLES.test(name)));
}

function aborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) resolve();
    else signal?.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Resolves after a time, or before, when something else does. */
function after(ms: number, before?: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    timer.unref();
    void before?.then(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}

function notRun(program: string, error: NodeJS.ErrnoException): NorthrootError {
  const name = printable(program, 200);
  const why =
    error.code === 'ENOENT' ? `there is no program ${name}` : `${name} cannot be run (${error.code})`;
  return new NorthrootError('MCP_SERVER_NOT_STARTED', `the server was not started: ${why}`, { cause: error });
}
