/** Upstreams, proxies and clients of the tests of proxies. */

import {
  type ClientRequest,
  createServer,
  type IncomingMessage,
  request as httpRequest,
  type RequestOptions,
  type ServerResponse,
} from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { onTestFinished } from 'vitest';
import type { AnswerObserver, ProxyFault } from '../../../src/gate/proxy/observer.js';
import {
  type ProxyForward,
  serveProxy,
  type ServeProxyOptions,
} from '../../../src/gate/proxy/serve-proxy.js';

export interface Served {
  readonly url: string;
  readonly port: number;
  /** The requests that came, with their bodies. */
  readonly seen: { readonly request: IncomingMessage; readonly body: Buffer }[];
}

/** An upstream by a script. */
export async function serveUpstream(
  script: (request: IncomingMessage, response: ServerResponse, body: Buffer) => void,
): Promise<Served> {
  const seen: Served['seen'] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('error', () => undefined);
    request.on('end', () => {
      const body = Buffer.concat(chunks);
      seen.push({ request, body });
      script(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, port, seen };
}

/** What an observer saw. */
export interface Sight extends AnswerObserver {
  status: number | undefined;
  readonly chunks: Buffer[];
  readonly ends: (ProxyFault | undefined)[];
  /** Resolves at the end. */
  readonly ended: Promise<ProxyFault | undefined>;
}

export function watchAnswer(): Sight {
  let finish: (fault: ProxyFault | undefined) => void = () => undefined;
  const sight: Sight = {
    status: undefined,
    chunks: [],
    ends: [],
    ended: new Promise((resolve) => (finish = resolve)),
    head: (status) => (sight.status = status),
    chunk: (bytes) => sight.chunks.push(Buffer.from(bytes)),
    end: (fault) => {
      sight.ends.push(fault);
      finish(fault);
    },
  };
  return sight;
}

export interface Opened {
  readonly url: string;
  readonly port: number;
  readonly sights: Sight[];
  close(): Promise<void>;
}

/** A proxy that forwards all, and watches each answer. */
export async function openProxy(
  upstream: string,
  options: Partial<ServeProxyOptions> = {},
  forward: Partial<ProxyForward> = {},
): Promise<Opened> {
  const sights: Sight[] = [];
  const server = await serveProxy({
    upstream,
    place: { port: 0 },
    graceMs: 200,
    handle: () => {
      const observer = watchAnswer();
      sights.push(observer);
      return Promise.resolve({ kind: 'forward', observer, ...forward });
    },
    ...options,
  });
  onTestFinished(() => server.close());
  return { url: server.url, port: Number(server.url.split(':').at(-1)), sights, close: () => server.close() };
}

export interface Got {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly isWhole: boolean;
}

/** Asks, and reads what comes. */
export function ask(
  url: string,
  options: RequestOptions = {},
  body?: Uint8Array | string,
): Promise<Got> & { readonly request: ClientRequest } {
  const request = httpRequest(url, { agent: false, ...options });
  const got = new Promise<Got>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (message) => {
      const chunks: Buffer[] = [];
      message.on('data', (chunk: Buffer) => chunks.push(chunk));
      message.on('error', () => undefined);
      message.on('close', () =>
        resolve({
          status: message.statusCode ?? 0,
          headers: message.headers,
          rawHeaders: message.rawHeaders,
          body: Buffer.concat(chunks),
          isWhole: message.complete,
        }),
      );
    });
  });
  request.end(body);
  return Object.assign(got, { request });
}

/** Sends bytes as they are; returns what comes until the connection ends or 300 ms pass without more. */
export function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    let got = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(text));
    const end = (): void => {
      socket.destroy();
      resolve(got);
    };
    socket.on('data', (bytes) => {
      got += bytes.toString('latin1');
      // Nothing more comes, where it is left open.
      socket.setTimeout(300, end);
    });
    socket.on('close', end);
    socket.on('error', end);
  });
}
