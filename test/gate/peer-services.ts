/** Several services of one ledger in processes of their own, and clients that ask any of them until they are answered. */

import { createServer } from 'node:net';
import { onTestFinished } from 'vitest';
import { expectOk, type Run, type Running, type Workshop } from '../cli/runner.js';

/** Ports that nobody listens on, for services that must know each other's before they start. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer();
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return server;
    }),
  );
  const ports = servers.map((server) => (server.address() as { readonly port: number }).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

export interface PeerAnswer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

/** A service, one of several. */
export class PeerService {
  readonly url: string;
  readonly process: Running;

  constructor(url: string, running: Running) {
    this.url = url;
    this.process = running;
  }

  /** @throws where nobody answers */
  async ask(path: string, token?: string, body?: unknown, ms = 20_000): Promise<PeerAnswer> {
    const response = await fetch(`${this.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: {
        'content-type': 'application/json',
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(ms),
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  }

  async role(): Promise<unknown> {
    const answer = await this.ask('/healthz', undefined, undefined, 2_000).catch(() => undefined);
    return answer?.body['role'];
  }

  kill(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }
}

/** Services of one ledger, each knowing the URLs of all. */
export class PeerServices {
  readonly all: readonly PeerService[];
  readonly token: string;

  constructor(all: readonly PeerService[], token: string) {
    this.all = all;
    this.token = token;
  }

  static async start(
    shop: Workshop,
    ledger: string | readonly string[],
    count: number,
    args: readonly string[] = [],
  ): Promise<PeerServices> {
    const tokens = `tokens-${shop.files('tokens-').length}.json`;
    const token = expectOk(
      shop.run(['gate', 'token', tokens, 'all', '--principal', 'agent:a1', '--may', 'call', '--may', 'read']),
    ).trim();
    const ports = await freePorts(count);
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const all = urls.map((url, index) => {
      const place = typeof ledger === 'string' ? ledger : ledger[index];
      const running = shop.start([
        'serve',
        place,
        ...['--socket', `peer-${ports[index]}.sock`, '--listen', url.slice('http://'.length)],
        ...['--tokens', tokens, '--principal', 'agent:a1'],
        // The same list for all: each finds itself in it.
        ...urls.flatMap((peer) => ['--peer', peer]),
        ...args,
      ]);
      onTestFinished(() => {
        running.kill('SIGCONT');
        running.kill('SIGKILL');
      });
      return new PeerService(url, running);
    });
    const services = new PeerServices(all, token);
    await services.running();
    return services;
  }

  /** Waits until all of them listen. */
  async running(): Promise<void> {
    for (const { process } of this.all) {
      await process.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
      if (process.hasEnded) throw new Error(`a service has ended: ${process.stderr}`);
    }
  }

  /** Calls for many at once through all services, while something happens to them. @param odd - As of {@link PeerServices.askAny} */
  async load(
    bodies: readonly object[],
    width: number,
    odd: unknown[],
    during: (done: number) => void = () => undefined,
  ): Promise<Record<string, unknown>[]> {
    const answers: Record<string, unknown>[] = [];
    let [next, done] = [0, 0];
    const client = async (which: number): Promise<void> => {
      while (next < bodies.length) {
        const n = (next += 1) - 1;
        answers[n] = await this.askAny(which + n, '/v1/decide', bodies[n], odd, 10_000);
        during((done += 1));
      }
    };
    await Promise.all(Array.from({ length: width }, (_, which) => client(which)));
    return answers;
  }

  /** Waits until one of them leads, and all others follow. */
  async settled(among: readonly PeerService[] = this.all): Promise<PeerService> {
    for (;;) {
      const roles = await Promise.all(among.map((service) => service.role()));
      const leaders = among.filter((_, index) => roles[index] === 'leader');
      const [leader] = leaders;
      if (leaders.length === 1 && leader !== undefined && roles.every((role) => role !== undefined))
        return leader;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /**
   * Asks one after the other, as a client would: what was not answered, or is to be asked again (503), is asked of the next one.
   * @param odd - Collects what no client should be told
   */
  async askAny(
    first: number,
    path: string,
    body: unknown,
    odd: unknown[],
    ms?: number,
  ): Promise<Record<string, unknown>> {
    for (let turn = first; ; turn += 1) {
      const service = this.all[turn % this.all.length];
      const answer = await service.ask(path, this.token, body, ms).catch(() => undefined);
      if (answer?.status === 200) return answer.body;
      if (answer !== undefined && answer.status !== 503) {
        odd.push(answer);
        return answer.body;
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  async stop(): Promise<Run[]> {
    for (const service of this.all) service.kill('SIGTERM');
    return Promise.all(this.all.map((service) => service.process.end()));
  }
}
