/**
 * Runs the command line as its users do, in a folder of its own, with the input and environment given. Where a test is not about
 * the process itself, commands share one that has them loaded (command-server.ts); with SLOW=1 each has its own.
 */

import { spawn, spawnSync, type ChildProcessWithoutNullStreams } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect } from 'vitest';
import { CommandServer } from './command-server.js';

/** The command line as it is shipped. */
export const CLI = fileURLToPath(new URL('../../bin/northroot.js', import.meta.url));

export interface RunOptions {
  readonly input?: string | Uint8Array;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Below the time-out of a test, so that it is said what was waited for. */
const MAX_WAIT_MS = 100_000;

/** How a run ended. */
export interface Run {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a user's shell gives, without what this one may have set for northroot or for Node. */
function environment(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return { PATH, HOME, LANG: 'C.UTF-8', TERM: 'xterm', ...env };
}

/** A folder to work in, removed when the tests of the file are done. */
export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), 'northroot-cli-'));
  readonly #ownProcesses: boolean;
  #server: CommandServer | undefined;

  /** @param options.ownProcesses - Each run has a process of its own. */
  constructor({ ownProcesses = process.env['SLOW'] === '1' }: { readonly ownProcesses?: boolean } = {}) {
    this.#ownProcesses = ownProcesses;
    afterAll(() => {
      this.#server?.close();
      rmSync(this.folder, { recursive: true, force: true });
    });
  }

  /** `northroot ARGS…`, to its end. */
  run(args: readonly string[], options: RunOptions = {}): Run {
    const { input = '', env } = options;
    if (this.#ownProcesses || needsProcess(args, options)) return this.runProcess(args, options);
    this.#server ??= new CommandServer();
    return this.#server.run({ args, cwd: this.folder, env: environment(env), input });
  }

  /** The same, always in a process of its own. */
  runProcess(args: readonly string[], { input = '', env }: RunOptions = {}): Run {
    return this.#toEnd(process.execPath, [CLI, ...args], input, env);
  }

  /** A line of bash in which `northroot` is the command. */
  shell(script: string, { input = '', env }: RunOptions = {}): Run {
    const prelude = `northroot() { '${process.execPath}' '${CLI}' "$@"; }\n`;
    return this.#toEnd('bash', ['--norc', '-c', prelude + script], input, env);
  }

  /** `northroot ARGS…`, left running. */
  start(args: readonly string[], env?: RunOptions['env']): Running {
    return this.startProgram([process.execPath, CLI, ...args], env);
  }

  /** Another program, left running. */
  startProgram([command, ...args]: readonly [string, ...string[]], env?: RunOptions['env']): Running {
    return new Running(spawn(command, args, { cwd: this.folder, env: environment(env) }));
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, content: string | Uint8Array, mode = 0o644): string {
    writeFileSync(this.path(name), content);
    chmodSync(this.path(name), mode);
    return name;
  }

  makeFolder(name: string): void {
    mkdirSync(this.path(name));
  }

  read(name: string): string {
    return readFileSync(this.path(name), 'utf8');
  }

  bytes(name: string): Buffer {
    return readFileSync(this.path(name));
  }

  /** The lines of a file, each without its newline. */
  lines(name: string): string[] {
    return this.read(name).split('\n').slice(0, -1);
  }

  has(name: string): boolean {
    return existsSync(this.path(name));
  }

  remove(name: string): void {
    rmSync(this.path(name), { recursive: true });
  }

  /** The records of a ledger. */
  records(name: string): RecordJson[] {
    return parseLines<RecordJson>(this.read(name));
  }

  /** The permission bits of a file, as in `600`. */
  mode(name: string): string {
    return (statSync(this.path(name)).mode & 0o777).toString(8);
  }

  /** The names in the folder that begin with `prefix`. */
  files(prefix: string): string[] {
    return readdirSync(this.folder)
      .filter((name) => name.startsWith(prefix))
      .sort();
  }

  #toEnd(command: string, args: readonly string[], input: string | Uint8Array, env: RunOptions['env']): Run {
    const { status, stdout, stderr } = spawnSync(command, args, {
      cwd: this.folder,
      env: environment(env),
      input,
      encoding: 'utf8',
      maxBuffer: 256 * 1024 * 1024,
    });
    return { status, stdout, stderr };
  }
}

/** Options for Node count when it starts, and a command that is run inherits standard input. */
function needsProcess(args: readonly string[], { env = {}, input = '' }: RunOptions): boolean {
  return 'NODE_OPTIONS' in env || (args.includes('record') && args.includes('--') && input.length > 0);
}

/** A run that has not ended. */
export class Running {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #end: Promise<Run>;
  stdout = '';
  stderr = '';

  constructor(child: ChildProcessWithoutNullStreams) {
    this.#child = child;
    child.stdin.on('error', () => undefined);
    child.stdout.setEncoding('utf8').on('data', (text: string) => (this.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.stderr += text));
    this.#end = new Promise((resolve) => {
      child.once('close', (status) => resolve({ status, stdout: this.stdout, stderr: this.stderr }));
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Writes to its standard input, which stays open; settles when as much is read as no pipe can hold for it. */
  feed(text: string): Promise<void> {
    return new Promise((resolve) => this.#child.stdin.write(text, () => resolve()));
  }

  /** Whether it has a file open (where the system tells). */
  hasOpen(path: string): boolean {
    const folder = `/proc/${this.#child.pid}/fd`;
    return readdirSync(folder).some((name) => {
      try {
        return readlinkSync(`${folder}/${name}`) === path;
      } catch {
        return false;
      }
    });
  }

  endInput(): void {
    this.#child.stdin.end();
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  end(): Promise<Run> {
    return this.#end;
  }

  /** Waits until `condition` holds of what was printed. */
  async until(condition: (running: this) => boolean): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS;
    while (!condition(this)) {
      if (performance.now() > deadline) throw new Error(`waited in vain: ${this.stdout}${this.stderr}`);
      // Some conditions read much of /proc each time.
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }
}

/** Whether a program can be run here. */
export function hasProgram(name: string): boolean {
  return spawnSync('bash', ['-c', `command -v ${name}`]).status === 0;
}

/** An event, as far as the tests look into it. */
export interface EventJson {
  readonly event_id: { readonly alg: string; readonly b64: string };
  readonly event_type: string;
  readonly occurred_at: string;
  readonly principal_id: string;
  readonly [member: string]: unknown;
}

/** A ledger's line. */
export interface RecordJson {
  readonly seq: number;
  readonly event: EventJson;
  readonly meta?: Readonly<Record<string, string>>;
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

/** What `append` answers an event with. */
export interface ResultJson {
  readonly findings?: readonly object[];
  readonly seq: number;
  readonly event_id: string;
  readonly status: string;
  readonly hygiene?: readonly string[];
}

/** What `init`, `keygen` and `key show` tell of a key. */
export interface KeyJson {
  readonly keyid: string | null;
  readonly public_key: string;
  readonly origin: string;
}

/** JSON that has this form. */
export function parse<T>(json: string): T {
  return JSON.parse(json) as T;
}

/** Each line of NDJSON, of this form. */
export function parseLines<T = ResultJson>(ndjson: string): T[] {
  return ndjson
    .split('\n')
    .slice(0, -1)
    .map((line) => parse<T>(line));
}

/** A run that did what it should, and what it printed. */
export function expectOk(run: Run): string {
  expect(run).toMatchObject({ status: 0 });
  return run.stdout;
}

/** A run that was refused with this exit status and code, in the form that every error has, and printed no result. */
export function expectError(run: Run, status: 1 | 2, code: string, place?: string): void {
  expect(run).toMatchObject({ status, stdout: '' });
  expectCode(run, code, place);
}

/** One error on standard error, with this code; `place` is the input's line, as in `stdin:3`. */
export function expectCode({ stderr }: Run, code: string, place?: string): void {
  const errors = stderr.split('\n').filter((line) => line.startsWith('error:'));
  expect(errors).toHaveLength(1);
  expect(errors[0]).toContain(place === undefined ? `error: ${code}: ` : `error: ${place}: ${code}: `);
}
