/** A headless Chromium with one page, spoken to by the DevTools protocol over a pipe. */

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';

export const CHROMIUM = '/usr/bin/chromium';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--remote-debugging-pipe',
];

interface Answer {
  readonly id?: number;
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly message: string };
}

export class Page {
  readonly #browser: ChildProcess;
  readonly #folder: string;
  readonly #closed: Promise<unknown>;
  readonly #waiting = new Map<
    number,
    { resolve: (answer: Answer) => void; reject: (error: Error) => void }
  >();
  #text = '';
  #id = 0;
  #session: string | undefined;

  private constructor() {
    this.#folder = mkdtempSync(join(tmpdir(), 'northroot-chromium-'));
    this.#browser = spawn(CHROMIUM, [...FLAGS, `--user-data-dir=${this.#folder}`], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    this.#closed = new Promise((resolve) => this.#browser.once('close', resolve));
    void this.#closed.then(() => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the browser has ended'));
    });
    const output = this.#browser.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (text: string) => this.#take(text));
  }

  static async open(): Promise<Page> {
    const page = new Page();
    const { targetId } = await page.#send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await page.#send('Target.attachToTarget', { targetId, flatten: true });
    page.#session = sessionId as string;
    return page;
  }

  /** What an expression, or the promise that it is, comes to; it must be plain JSON. */
  async evaluate(expression: string): Promise<unknown> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await this.#send('Runtime.evaluate', options);
    if (exceptionDetails !== undefined) throw new Error(JSON.stringify(exceptionDetails));
    return (result as { readonly value?: unknown }).value;
  }

  async close(): Promise<void> {
    this.#session = undefined;
    await this.#send('Browser.close', {});
    await this.#closed;
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async #send(method: string, params: object): Promise<Readonly<Record<string, unknown>>> {
    const id = (this.#id += 1);
    const sessionId = this.#session;
    const message = { id, method, params, ...(sessionId === undefined ? {} : { sessionId }) };
    const input = this.#browser.stdio[3] as Writable;
    const answer = await new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      input.write(`${JSON.stringify(message)}\0`);
    });
    if (answer.error !== undefined) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result ?? {};
  }

  #take(text: string): void {
    const messages = `${this.#text}${text}`.split('\0');
    this.#text = messages.pop() as string;
    for (const message of messages) {
      const answer = JSON.parse(message) as Answer;
      const id = answer.id ?? 0;
      this.#waiting.get(id)?.resolve(answer);
      this.#waiting.delete(id);
    }
  }
}
