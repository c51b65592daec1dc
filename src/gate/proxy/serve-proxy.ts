/**
 * A streaming reverse proxy to one upstream: a handler reads each request, and answers it or has it forwarded. What is forwarded passes
 * unchanged both ways, at the pace of the slower side; an observer sees the answer while it passes. Keys, cookies and bodies pass, and are
 * never logged or kept.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  closeQueued,
  type HttpServer,
  listen,
  type ListenPlace,
  urlOf,
} from '../../base/platform/serve-http.js';
import { removeStale } from '../service/serve-gate.js';
import { endToEnd, findRequestFault, isLoopback, isOwnHost, reasonOf, requestHeaders } from './headers.js';
import { type AnswerObserver, type ProxyFault, Watch } from './observer.js';
import { passAnswer, TOO_SLOW } from './pass-answer.js';
import { Upstream, type UpstreamAnswer, UpstreamError, type UpstreamOptions } from './upstream.js';

export interface ProxyRequest {
  readonly method: string;
  readonly path: string;
  /** By name in lower case; repeated ones as node:http joins them. Those that decide are not repeated. */
  readonly headers: Readonly<Record<string, string>>;
  /** Names and values in turn, as sent. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** Aborts when the client has gone, or the proxy closes. */
  readonly signal: AbortSignal;
}

export interface ProxyReply {
  readonly kind: 'reply';
  readonly status: number;
  /** `Content-Type: application/json` unless it says otherwise. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body: string | Uint8Array;
}

export interface ProxyForward {
  readonly kind: 'forward';
  /** Default: as sent. */
  readonly path?: string | undefined;
  /** Instead of those of the same name. */
  readonly setHeaders?: Readonly<Record<string, string>> | undefined;
  /** Not handed on. */
  readonly removeHeaders?: readonly string[] | undefined;
  /** Default: as sent. */
  readonly body?: Uint8Array | undefined;
  readonly observer?: AnswerObserver | undefined;
  /** Added to the answer, instead of those of the same name. */
  readonly answerHeaders?: Readonly<Record<string, string>> | undefined;
  /** Aborting it breaks the answer off. */
  readonly stop?: AbortSignal | undefined;
  /** How long the upstream may send nothing, in milliseconds, if not as the proxy's options say. */
  readonly idleTimeoutMs?: number | undefined;
  /** The answer where none came. Default: as the proxy's. */
  readonly refuse?: ((refusal: ProxyRefusal) => ProxyReply) | undefined;
}

/** An answer of the handler's own, in pieces. */
export interface ProxyStream {
  readonly kind: 'stream';
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** What it throws breaks the answer off, so that the client sees that it is not whole. */
  readonly pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Called when it is over, also where no piece was taken. It MUST NOT reject. */
  readonly end?: (() => Promise<void>) | undefined;
}

/** Why the proxy refuses a request itself, or has no answer to it. */
export interface ProxyRefusal {
  /** 400, 403, 413, 502, 503, 504. */
  readonly status: number;
  /** A code in capitals. */
  readonly code: string;
  /** In words, without anything of the request or the upstream. */
  readonly message: string;
}

export interface ServeProxyOptions extends UpstreamOptions {
  readonly upstream: string | URL;
  readonly place: ListenPlace;
  /** MUST NOT reject; a rejection closes the connection. */
  readonly handle: (request: ProxyRequest) => Promise<ProxyReply | ProxyForward | ProxyStream>;
  /** The largest request body, in bytes. Default 32 MiB. */
  readonly maxBodyBytes?: number | undefined;
  /** The most requests at once. Default 1,024. */
  readonly maxPending?: number | undefined;
  /** How long a client may take to send a request, in milliseconds. Default 60,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long a client may take to read what waits for it, in milliseconds. Default 60,000. */
  readonly readTimeoutMs?: number | undefined;
  /** How long closing waits for answers that pass, in milliseconds. Default 10,000. */
  readonly graceMs?: number | undefined;
  /** Names besides this machine's loopback that `Host` may have. */
  readonly hosts?: readonly string[] | undefined;
  /** Values of `Origin` that are let in, such as `https://app.example`. Default: none. */
  readonly origins?: readonly string[] | undefined;
  /** Lets in pages of this machine's loopback that the proxy's own address serves. Default false. */
  readonly ownOrigin?: boolean | undefined;
  /** How the proxy's own refusals look. Default: `{"error":{"code","message"}}`. */
  readonly refuse?: ((refusal: ProxyRefusal) => ProxyReply) | undefined;
}

/** The largest request body unless options say otherwise. */
export const MAX_PROXY_BODY_BYTES = 32 * 1024 * 1024;
/** An overlong body is read up to so many times its limit, so that the client gets to the answer. */
const MAX_READ_FACTOR = 4;
/** What all bodies that are held at once may have, in bytes. */
const MAX_HELD_BYTES = 256 * 1024 * 1024;
const MAX_CONNECTIONS = 4_096;
const DEFAULT_MAX_PENDING = 1_024;
const MAX_HEADER_BYTES = 64 * 1024;
const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_GRACE_MS = 10_000;
const KEEP_ALIVE_MS = 75_000;

/**
 * Serves until it is closed.
 * @throws NorthrootError `LISTEN_FAILED`, `SOCKET_IN_USE`; TypeError for a malformed upstream
 */
export async function serveProxy(options: ServeProxyOptions): Promise<HttpServer> {
  const { place, graceMs = DEFAULT_GRACE_MS, requestTimeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const upstream = new Upstream(options.upstream, options);
  const proxy = new Proxy(options, upstream);
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
      insecureHTTPParser: false,
    },
    (request, response) => void proxy.answer(request, response),
  );
  server.maxConnections = MAX_CONNECTIONS;
  closeQueued(server);
  // Node would leave out what is above it.
  server.maxHeadersCount = 0;
  try {
    if ('socket' in place) await removeStale(place.socket);
    await listen(server, place);
  } catch (error) {
    upstream.close();
    throw error;
  }
  return {
    url: 'socket' in place ? `unix:${place.socket}` : urlOf(place.host, server.address() as AddressInfo),
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      await proxy.drain(graceMs);
      server.closeAllConnections();
      await closed;
      upstream.close();
    },
  };
}

class Proxy {
  readonly #options: ServeProxyOptions;
  readonly #upstream: Upstream;
  readonly #running = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #held = 0;
  #isStopping = false;

  constructor(options: ServeProxyOptions, upstream: Upstream) {
    this.#options = options;
    this.#upstream = upstream;
  }

  /** Answers a request. Never rejects. */
  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const running = this.#answer(request, response).catch(() => {
      // The client has gone, sends endlessly, or must see that its answer is not whole.
      request.socket.destroy();
    });
    this.#running.add(running);
    await running;
    this.#running.delete(running);
  }

  /** Waits for what runs; breaks it off after `graceMs`, and waits until observers are done. */
  async drain(graceMs: number): Promise<void> {
    this.#isStopping = true;
    const timer = setTimeout(() => this.#closing.abort(), graceMs);
    await Promise.allSettled(this.#running);
    clearTimeout(timer);
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { maxPending = DEFAULT_MAX_PENDING, handle } = this.#options;
    const gone = new AbortController();
    response.on('close', () => {
      if (!response.writableFinished) gone.abort();
    });
    // A broken connection is told by its closing.
    response.on('error', () => undefined);
    const { method = '', url: path = '', rawHeaders } = request;
    const refusal = this.#refusalOf(request);
    if (refusal !== undefined) return this.#reply(request, response, this.#refuse(refusal));
    if (this.#running.size >= maxPending || this.#isStopping)
      return this.#reply(request, response, this.#refuse(BUSY));
    let held = 0;
    try {
      const body = await this.#read(request, (bytes) => {
        held += bytes;
        this.#held += bytes;
      });
      if (!Buffer.isBuffer(body)) return await this.#reply(request, response, this.#refuse(body));
      const signal = AbortSignal.any([gone.signal, this.#closing.signal]);
      const headers = Object.fromEntries(
        Object.entries(request.headers).map(([name, value]) => [name, [value].flat().join(', ')]),
      );
      const answer = await handle({ method, path, headers, rawHeaders, body, signal });
      if (answer.kind === 'reply') return await this.#reply(request, response, answer);
      if (answer.kind === 'stream') return await this.#stream(response, answer, signal);
      await this.#forward(request, response, answer, answer.body ?? body, signal);
    } finally {
      this.#held -= held;
    }
  }

  #refusalOf({ url = '', rawHeaders, headers }: IncomingMessage): ProxyRefusal | undefined {
    const { place, hosts = [], origins = [], ownOrigin = false } = this.#options;
    const fault = findRequestFault(url, rawHeaders);
    if (fault !== undefined) return { status: 400, code: 'REQUEST_INVALID', message: fault };
    const { host, origin } = headers;
    const names = 'socket' in place || isLoopback(place.host) ? hosts : [...hosts, place.host ?? ''];
    // Who opens a socket of files is no browser.
    if (!('socket' in place) && !isOwnHost(host, names))
      return { status: 403, code: 'HOST_NOT_ALLOWED', message: 'expected Host to name this proxy' };
    const isOwn = ownOrigin && isOwnHost(host, []) && origin === `http://${host}`;
    if (origin !== undefined && !isOwn && !origins.includes(origin))
      return { status: 403, code: 'ORIGIN_NOT_ALLOWED', message: 'requests of web pages are not let in' };
    return undefined;
  }

  async #read(request: IncomingMessage, hold: (bytes: number) => void): Promise<Buffer | ProxyRefusal> {
    const { maxBodyBytes = MAX_PROXY_BODY_BYTES } = this.#options;
    const tooLarge: ProxyRefusal = {
      status: 413,
      code: 'BODY_TOO_LARGE',
      message: `expected a body of at most ${maxBodyBytes} bytes`,
    };
    const maxRead = maxBodyBytes * MAX_READ_FACTOR;
    if (Number(request.headers['content-length'] ?? 0) > maxRead) return tooLarge;
    const chunks: Buffer[] = [];
    let size = 0;
    let refusal: ProxyRefusal | undefined;
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxRead) return tooLarge;
      if (size > maxBodyBytes) refusal = tooLarge;
      else if (this.#held + chunk.length > MAX_HELD_BYTES) refusal = BUSY;
      if (refusal === undefined) {
        hold(chunk.length);
        chunks.push(chunk);
      } else chunks.length = 0;
    }
    return refusal ?? Buffer.concat(chunks);
  }

  async #forward(
    request: IncomingMessage,
    response: ServerResponse,
    forward: ProxyForward,
    body: Uint8Array,
    left: AbortSignal,
  ): Promise<void> {
    const { method = '', url = '', rawHeaders } = request;
    const { path = url, setHeaders, removeHeaders, observer, idleTimeoutMs, stop } = forward;
    const signal = stop === undefined ? left : AbortSignal.any([left, stop]);
    const watch = new Watch(observer);
    let answer: UpstreamAnswer;
    try {
      const headers = requestHeaders(rawHeaders, setHeaders, removeHeaders);
      answer = await this.#upstream.send({ method, path, headers, body, idleTimeoutMs }, signal);
    } catch (error) {
      const fault: ProxyFault =
        error instanceof UpstreamError ? error.fault : { code: 'UPSTREAM_UNREACHABLE', wasSent: false };
      return this.#fail(request, response, forward, watch, this.#named(fault, stop));
    }
    const { message } = answer;
    const status = message.statusCode ?? 502;
    if (status >= 300 && status < 400 && status !== 304) {
      answer.abort('UPSTREAM_REDIRECTED');
      return this.#fail(request, response, forward, watch, { code: 'UPSTREAM_REDIRECTED', wasSent: true });
    }
    const { answerHeaders = {} } = forward;
    const own = new Set(Object.keys(answerHeaders).map((name) => name.toLowerCase()));
    const length = message.headers['content-length'];
    const isFramed = method !== 'HEAD' && status !== 304 && length !== undefined;
    const begin = (): void => {
      response.writeHead(status, reasonOf(message.statusMessage), [
        ...endToEnd(message.rawHeaders, own),
        ...Object.entries(answerHeaders).flat(),
        ...(this.#isStopping ? ['Connection', 'close'] : []),
      ]);
      // With the first of the body, if that is there.
      if (message.readableLength === 0) response.flushHeaders();
    };
    let fault: ProxyFault | undefined;
    let sent: Promise<void> | undefined;
    const finish = (last: Uint8Array | undefined): void => {
      sent ??= this.#finish(response, last);
    };
    let last: Uint8Array | undefined;
    try {
      watch.head(status, message.headers);
      if (status < 400) begin();
      const expected = isFramed ? Number(length) : Infinity;
      const passing = { expected, begin, finish, signal, readTimeoutMs: this.#readTimeoutMs };
      last = await passAnswer(response, answer, watch, passing);
    } catch (error) {
      const hasLeft = signal.aborted || error === TOO_SLOW;
      fault = this.#named(hasLeft ? { code: 'CLIENT_LEFT', wasSent: true } : answer.faultOf(), stop);
      answer.abort(fault.code);
    }
    await watch.finish(fault === undefined);
    // The client need not wait while the observer is told. It is told in the same turn, before any later request is read.
    if (fault === undefined && response.headersSent) finish(last);
    const done = watch.end(fault);
    if (!response.headersSent) {
      await done;
      if (!response.destroyed) begin();
    }
    // The client has what came, and sees that it is not all.
    const isCut = fault !== undefined && CUTS.has(fault.code);
    if (fault === undefined) {
      finish(last);
      await sent;
    } else if (isCut) {
      response.flushHeaders();
      this.#breakOff(response);
    } else response.destroy();
    await done;
  }

  async #fail(
    request: IncomingMessage,
    response: ServerResponse,
    { refuse }: ProxyForward,
    watch: Watch,
    fault: ProxyFault,
  ): Promise<void> {
    await watch.end(fault);
    const { code } = fault;
    const status = code === 'UPSTREAM_TIMEOUT' ? 504 : code === 'STOPPED' ? 403 : 502;
    const refusal = { status, code, message: FAULTS[code] };
    await this.#reply(request, response, refuse?.(refusal) ?? this.#refuse(refusal));
  }

  /** What looks as if the client had left may be the proxy's own closing, or a stop. */
  #named(fault: ProxyFault, stop: AbortSignal | undefined): ProxyFault {
    if (fault.code !== 'CLIENT_LEFT') return fault;
    if (this.#closing.signal.aborted) return { ...fault, code: 'PROXY_CLOSED' };
    return stop?.aborted === true ? { ...fault, code: 'STOPPED' } : fault;
  }

  #refuse(refusal: ProxyRefusal): ProxyReply {
    const { code, message, status } = refusal;
    return (
      this.#options.refuse?.(refusal) ?? {
        kind: 'reply',
        status,
        body: JSON.stringify({ error: { code, message } }),
      }
    );
  }

  async #reply(request: IncomingMessage, response: ServerResponse, reply: ProxyReply): Promise<void> {
    const body = typeof reply.body === 'string' ? Buffer.from(reply.body) : reply.body;
    const isLast = this.#isStopping || !request.complete;
    response.writeHead(reply.status, {
      'Content-Type': 'application/json',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      ...reply.headers,
      'Content-Length': body.length,
      ...(isLast ? { Connection: 'close' } : {}),
    });
    await this.#finish(response, request.method === 'HEAD' ? undefined : body);
  }

  async #stream(
    response: ServerResponse,
    { status, headers, pieces, end }: ProxyStream,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      response.writeHead(status, [...headers, ...(this.#isStopping ? ['Connection', 'close'] : [])]);
      response.flushHeaders();
      for await (const piece of pieces)
        if (!response.write(piece)) await drained(response, this.#readTimeoutMs, signal);
    } catch {
      await end?.();
      return this.#breakOff(response);
    }
    await end?.();
    return this.#finish(response, undefined);
  }

  /** Resolves when the client has it all, or has gone. */
  async #finish(response: ServerResponse, last: Uint8Array | undefined): Promise<void> {
    if (response.destroyed) return;
    await new Promise<void>((resolve) => {
      response.once('close', resolve);
      response.setTimeout(this.#readTimeoutMs, () => response.destroy());
      response.end(last, resolve);
    });
  }

  #breakOff(response: ServerResponse): void {
    response.setTimeout(this.#readTimeoutMs, () => response.destroy());
    response.socket?.destroySoon();
  }

  get #readTimeoutMs(): number {
    return this.#options.readTimeoutMs ?? DEFAULT_TIMEOUT_MS;
  }
}

/** Faults after which the client has what came, and is still there. */
const CUTS: ReadonlySet<ProxyFault['code']> = new Set(['UPSTREAM_BROKE', 'UPSTREAM_TIMEOUT', 'STOPPED']);

const BUSY: ProxyRefusal = { status: 503, code: 'BUSY', message: 'too many requests at once' };

const FAULTS: Readonly<Record<ProxyFault['code'], string>> = {
  UPSTREAM_UNREACHABLE: 'the upstream cannot be reached',
  UPSTREAM_BROKE: 'the upstream broke off',
  UPSTREAM_TIMEOUT: 'the upstream did not answer in time',
  UPSTREAM_REDIRECTED: 'the upstream redirects, which is not followed',
  CLIENT_LEFT: 'the client has gone',
  PROXY_CLOSED: 'the proxy was closed',
  STOPPED: 'the call was stopped',
  ANSWER_UNREADABLE: 'the answer could not be read',
};

/** @throws Error when the reader has gone, or takes too long */
function drained(response: ServerResponse, timeoutMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(timer);
      response.off('drain', onDrain);
      response.off('close', onClose);
      signal.removeEventListener('abort', onClose);
      settle();
    };
    const onDrain = (): void => end(resolve);
    const onClose = (): void => end(() => reject(new Error('the client has gone')));
    const timer = setTimeout(() => end(() => reject(TOO_SLOW)), timeoutMs);
    response.once('drain', onDrain);
    response.once('close', onClose);
    signal.addEventListener('abort', onClose, { once: true });
    if (response.destroyed || signal.aborted) onClose();
  });
}
