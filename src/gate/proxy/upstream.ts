/** The one server that a proxy asks: its address is fixed, its certificate is verified, and its redirects are not followed. */

import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  request as httpRequest,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { printable, withoutPasswords } from '../../base/bytes/printable.js';
import type { ProxyFault } from './observer.js';

export interface UpstreamOptions {
  /** Certificates that may issue the upstream's, PEM. Default: Node's. */
  readonly ca?: string | undefined;
  /** How long connecting may take, in milliseconds. Default 10,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** How long it may send nothing, before its answer or within it, in milliseconds. Default 600,000 (10 minutes). */
  readonly idleTimeoutMs?: number | undefined;
  /** The most requests at once; more wait. Default 1,024. */
  readonly maxSockets?: number | undefined;
}

export interface UpstreamRequest {
  readonly method: string;
  /** The path and query; the path of the upstream's URL comes before it. */
  readonly path: string;
  /** Names and values in turn, without `Host` and those of the body. */
  readonly headers: readonly string[];
  readonly body: Uint8Array;
  readonly idleTimeoutMs?: number | undefined;
}

/** An answer whose headers have come. */
export interface UpstreamAnswer {
  readonly message: IncomingMessage;
  /** Why reading it broke. */
  faultOf(): ProxyFault;
  /** Breaks it off. */
  abort(fault: ProxyFault['code']): void;
  /** Counts the time until more comes; not while the client is who is waited for. */
  wait(isUpstreams: boolean): void;
}

/** A request that failed before its answer. */
export class UpstreamError extends Error {
  readonly fault: ProxyFault;

  constructor(fault: ProxyFault, cause: unknown) {
    super(fault.code, { cause });
    this.fault = fault;
  }
}

const DEFAULT_CONNECT_MS = 10_000;
const DEFAULT_IDLE_MS = 600_000;
const DEFAULT_MAX_SOCKETS = 1_024;
const MAX_HEADER_BYTES = 64 * 1024;
/** A connection that waits longer may be closed by the other side while a request is on its way. */
const KEEP_MS = 15_000;
const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE']);

export class Upstream {
  readonly url: URL;
  readonly #options: UpstreamOptions;
  readonly #agent: HttpAgent;
  readonly #base: string;

  /** @throws TypeError unless it is an http or https URL without user, query and fragment */
  constructor(url: string | URL, options: UpstreamOptions = {}) {
    const { maxSockets = DEFAULT_MAX_SOCKETS, ca } = options;
    this.url = parseUpstream(url);
    this.#options = options;
    this.#base = this.url.pathname.replace(/\/+$/, '');
    const keeping = { keepAlive: true, maxSockets, timeout: KEEP_MS, scheduling: 'lifo' } as const;
    // The environment can turn verification off for a process; not for this.
    const verifying = { ...keeping, rejectUnauthorized: true, ...(ca === undefined ? {} : { ca }) };
    this.#agent = this.url.protocol === 'https:' ? new HttpsAgent(verifying) : new HttpAgent(keeping);
  }

  /**
   * Sends a request, and waits for the head of its answer.
   * @throws UpstreamError
   */
  send(asked: UpstreamRequest, signal: AbortSignal): Promise<UpstreamAnswer> {
    return new Promise((resolve, reject) => {
      const { connectTimeoutMs = DEFAULT_CONNECT_MS, idleTimeoutMs: usual = DEFAULT_IDLE_MS } = this.#options;
      const { idleTimeoutMs = usual } = asked;
      let wasSent = false;
      let broke: ProxyFault['code'] | undefined;
      let idle: NodeJS.Timeout | undefined;
      let isClientsTurn = false;
      const request = this.#request(asked);
      const abort = (code: ProxyFault['code']): void => {
        broke ??= code;
        request.destroy();
      };
      const leave = (): void => abort('CLIENT_LEFT');
      const timer = setTimeout(
        () => abort(wasSent ? 'UPSTREAM_TIMEOUT' : 'UPSTREAM_UNREACHABLE'),
        connectTimeoutMs,
      );
      const overdue = (): void => {
        if (isClientsTurn) idle?.refresh();
        else abort('UPSTREAM_TIMEOUT');
      };
      const finish = (): void => {
        clearTimeout(timer);
        clearTimeout(idle);
        signal.removeEventListener('abort', leave);
      };
      const faultOf = (): ProxyFault => ({
        code: broke ?? (wasSent ? 'UPSTREAM_BROKE' : 'UPSTREAM_UNREACHABLE'),
        wasSent,
      });
      request.on('socket', (socket) => {
        const connected = (): void => {
          wasSent = true;
          clearTimeout(timer);
          if (broke === undefined) idle = setTimeout(overdue, idleTimeoutMs);
        };
        // Without a free descriptor, port or route it never began to connect.
        if (socket.destroyed) return;
        if (request.reusedSocket || !(socket.connecting || this.url.protocol === 'https:')) connected();
        else socket.once(this.url.protocol === 'https:' ? 'secureConnect' : 'connect', connected);
      });
      request.on('error', (error) => {
        finish();
        reject(new UpstreamError(faultOf(), error));
      });
      // Nobody asked for another protocol: the connection then closes, without an error.
      request.on('upgrade', (_, socket) => socket.destroy());
      let isAnswered = false;
      request.on('close', () => {
        finish();
        // An error takes its time to make.
        if (!isAnswered) reject(new UpstreamError(faultOf(), undefined));
      });
      request.on('response', (message) => {
        isAnswered = true;
        idle?.refresh();
        resolve({
          message,
          faultOf,
          abort,
          wait: (isUpstreams) => {
            isClientsTurn = !isUpstreams;
            if (isUpstreams) idle?.refresh();
          },
        });
      });
      signal.addEventListener('abort', leave, { once: true });
      if (signal.aborted) leave();
      else request.end(asked.body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  #request({ method, path, headers, body }: UpstreamRequest): ClientRequest {
    const { protocol, hostname, port, host } = this.url;
    const framing = body.length === 0 && BODILESS.has(method) ? [] : ['Content-Length', String(body.length)];
    const options = {
      agent: this.#agent,
      method,
      hostname: hostname.replace(/^\[|\]$/g, ''),
      port: port === '' ? undefined : Number(port),
      path: this.#base + path,
      headers: ['Host', host, ...headers, 'Accept-Encoding', 'identity', ...framing],
      maxHeaderSize: MAX_HEADER_BYTES,
      setHost: false,
      insecureHTTPParser: false,
    };
    return protocol === 'https:'
      ? httpsRequest(options as unknown as Parameters<typeof httpsRequest>[0])
      : httpRequest(options as unknown as Parameters<typeof httpRequest>[0]);
  }
}

/** @throws TypeError */
export function parseUpstream(text: string | URL): URL {
  const expected = 'expected an http or https URL without user, query and fragment';
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new TypeError(`upstream: ${expected}, found ${printable(withoutPasswords(String(text)), 80)}`);
  }
  const isPlain = url.username === '' && url.password === '' && url.search === '' && url.hash === '';
  if ((url.protocol === 'http:' || url.protocol === 'https:') && url.hostname !== '' && isPlain) return url;
  // It may have a password in it.
  throw new TypeError(`upstream: ${expected}`);
}
