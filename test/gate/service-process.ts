/** `northroot serve` in a process of its own, which can be killed, and what clients of it say. */

import { request as httpRequest } from 'node:http';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type EventJson, expectOk, type Run, type Running, type Workshop } from '../cli/runner.js';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly body: Record<string, unknown> & {
    readonly error?: { readonly code: string; readonly message: string };
  };
}

/** Sends a request over a socket. A text is sent as it is. */
export function send(
  socket: string,
  path: string,
  body?: unknown,
  token?: string,
  type = 'application/json',
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      'content-type': type,
    };
    const method = body === undefined ? 'GET' : 'POST';
    const asked = httpRequest({ socketPath: socket, path, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: text.startsWith('{') ? (JSON.parse(text) as Answer['body']) : { text },
        }),
      );
    });
    asked.on('error', reject);
    asked.end(body === undefined || typeof body === 'string' ? body : JSON.stringify(body));
  });
}

/** What goes wrong in a process, as `children/fault.js` reads it. */
export interface Fault {
  readonly file: string;
  /** At which write to the file, from 1 on. */
  readonly at: number;
  readonly manner: 'before' | 'torn' | 'written' | 'synced' | 'full';
  readonly bytes?: number | 'line';
  readonly until?: string;
}

const FAULT = fileURLToPath(new URL('children/fault.js', import.meta.url));

export interface ServeOptions {
  readonly principal?: string | undefined;
  readonly args?: readonly string[];
  readonly fault?: Fault | undefined;
}

/** A running service of a ledger of a workshop. */
export class Service {
  readonly process: Running;
  readonly socket: string;

  private constructor(running: Running, socket: string) {
    this.process = running;
    this.socket = socket;
  }

  /** Starts it, and waits until it listens. */
  static async start(
    shop: Workshop,
    ledger: string,
    { principal = 'agent:a1', args = [], fault }: ServeOptions = {},
  ): Promise<Service> {
    const env =
      fault === undefined ? {} : { NODE_OPTIONS: `--import=${FAULT}`, FAULT: JSON.stringify(fault) };
    const own = args.includes('--socket') ? args[args.indexOf('--socket') + 1] : undefined;
    const running = shop.start(['serve', ledger, '--principal', principal, ...args], env);
    onTestFinished(() => running.kill('SIGKILL'));
    await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
    if (running.hasEnded) throw new Error(`the service has ended: ${running.stderr}`);
    return new Service(running, shop.path(own ?? `${ledger}.sock`));
  }

  ask(path: string, body?: unknown, token?: string): Promise<Answer> {
    return send(this.socket, path, body, token);
  }

  /** The same, where the service may die meanwhile: undefined then. */
  try(path: string, body?: unknown): Promise<Answer | undefined> {
    return this.ask(path, body).catch(() => undefined);
  }

  /** Ends it in order. */
  stop(): Promise<Run> {
    this.process.kill('SIGTERM');
    return this.process.end();
  }

  /** kill -9. */
  kill(): Promise<Run> {
    this.process.kill('SIGKILL');
    return this.process.end();
  }
}

let ledgers = 0;

/** A new ledger that grants agent:a1 the tools `fs.*` and `Bash`. @param caps - Such as `usd=1` */
export function newLedger(shop: Workshop, ...caps: readonly string[]): string {
  const name = `l${(ledgers += 1)}.jsonl`;
  expectOk(shop.run(['init', name, '--origin', 'example.com/tests/gate']));
  const bounds = caps.flatMap((cap) => ['--cap', cap]);
  expectOk(shop.run(['grant', name, '--to', 'agent:a1', '--tool', 'fs.*', '--tool', 'Bash', ...bounds]));
  return name;
}

/** The events of one type. */
export function eventsIn(shop: Workshop, ledger: string, type: string): EventJson[] {
  return shop.records(ledger).flatMap(({ event }) => (event.event_type === type ? [event] : []));
}
