/** Writers in processes of their own, on the built package. */

import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { LedgerOptions } from '../../src/log/writer/ledger.js';

const SCRIPT = fileURLToPath(new URL('children/writer.js', import.meta.url));

/** What a writer is to do. */
export interface WriterTask {
  readonly path: string;
  /** Sets its events apart from those of others. */
  readonly tag: string;
  /** How often it opens and closes the ledger. Default 1. */
  readonly sessions?: number;
  /** How many groups it appends in each; null: until it is killed. Default 1. */
  readonly groups?: number | null;
  /** Events in a group: up to so many, or exactly so many. Default 1. */
  readonly groupSize?: number;
  readonly exactly?: number;
  /** A text in each event. */
  readonly text?: string;
  /** Whether it keeps the ledger open until its standard input ends. */
  readonly hold?: boolean;
  /** A private key in PEM. */
  readonly key?: string;
  readonly options?: Pick<LedgerOptions, 'create' | 'lockTimeoutMs' | 'segmentBytes'>;
}

/** One line that a writer said. */
export interface Said {
  readonly doing?: 'open' | 'append' | 'hold' | 'end';
  readonly notice?: string;
  readonly error?: string;
  readonly cause?: string;
  readonly seq?: number;
  readonly eventId?: string;
}

/** How a process is started. */
export interface StartOptions {
  /** A command that runs the one appended to it. */
  readonly wrap?: readonly string[];
  readonly uid?: number;
  readonly env?: NodeJS.ProcessEnv;
}

export class Writer {
  readonly #child: ChildProcess;
  readonly #said: Said[] = [];
  readonly #listeners = new Set<() => void>();
  #stderr = '';
  #rest = '';
  #ended = false;
  /** Settles when the process is gone and all that it said is here. */
  readonly ended: Promise<void>;

  constructor(task: WriterTask, { wrap = [], uid, env }: StartOptions = {}) {
    const [command, ...args] = [...wrap, process.execPath, SCRIPT, JSON.stringify(task)];
    const options = {
      ...(uid === undefined ? {} : { uid, gid: uid }),
      ...(env === undefined ? {} : { env }),
    };
    const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
    this.#child = child;
    child.stdout.setEncoding('utf8').on('data', (text: string) => this.#take(text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    this.ended = new Promise((resolve) => child.once('close', () => resolve()));
    void this.ended.then(() => {
      this.#ended = true;
      for (const listener of this.#listeners) listener();
    });
    onTestFinished(() => void child.kill('SIGKILL'));
  }

  /** What it has said until now, in whole lines. */
  get said(): readonly Said[] {
    return this.#said;
  }

  /** Its acknowledgements. */
  get acknowledged(): { seq: number; eventId: string }[] {
    return this.#said.flatMap(({ seq, eventId }) =>
      seq === undefined || eventId === undefined ? [] : [{ seq, eventId }],
    );
  }

  /** The errors that it met. */
  get errors(): { error: string; cause: string | undefined }[] {
    return this.#said.flatMap(({ error, cause }) => (error === undefined ? [] : [{ error, cause }]));
  }

  /** Waits until it has said something, so many times. */
  async until(isIt: (said: Said) => boolean, times = 1): Promise<void> {
    while (this.#said.filter(isIt).length < times) {
      if (this.#ended) throw new Error(`the writer has ended: ${this.#stderr}`);
      await new Promise<void>((resolve) => {
        const listener = (): void => {
          this.#listeners.delete(listener);
          resolve();
        };
        this.#listeners.add(listener);
      });
    }
  }

  /** Ends a writer that holds its ledger, and waits for it. */
  async release(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }

  /** kill -9. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.ended;
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#said.push(JSON.parse(line) as Said);
    for (const listener of [...this.#listeners]) listener();
  }
}

/** Runs a writer to its end. */
export async function runWriter(task: WriterTask, options: StartOptions = {}): Promise<Writer> {
  const writer = new Writer(task, options);
  await writer.ended;
  if (writer.said.length === 0) throw new Error('the writer said nothing');
  return writer;
}
