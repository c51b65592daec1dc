/** A bounded HTTP/1.1 server on node:http, with limits of size, time and number. TLS is for a proxy in front of it. Node alone has it. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { fitsSocket, MAX_SOCKET_PATH_BYTES } from './socket-path.js';

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  /** By name in lower case; the first value of a repeated one. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface HttpResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** An address, or a Unix socket, which only its user may open. */
export type ListenPlace =
  | { readonly host?: string | undefined; readonly port: number }
  | { readonly socket: string };

export interface HttpLimits {
  /** The largest request body, in bytes. */
  readonly maxBodyBytes: number;
  /** The most requests that are being answered. Default 256. */
  readonly maxPending?: number | undefined;
  /** Paths that are answered however many others are pending. Default: none. */
  readonly isExempt?: ((path: string) => boolean) | undefined;
  /** How long a client may take to send a request, in milliseconds. Default 15,000. */
  readonly requestTimeoutMs?: number | undefined;
  /** How long {@link HttpServer.close} waits for answers, in milliseconds. Default 2,000. */
  readonly graceMs?: number | undefined;
  /** The answer to what is too much or too large. */
  readonly refuse: (status: 413 | 503) => HttpResponse;
}

export interface HttpServer {
  /** `http://HOST:PORT`, or `unix:PATH`. */
  readonly url: string;
  /** Stops accepting requests, and waits for pending answers. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 1_024;
/** Of all bodies together that are being read or answered. */
const MAX_BODIES_BYTES = 64 * 1024 * 1024;
const DEFAULT_MAX_PENDING = 256;
const MAX_HEADER_BYTES = 8 * 1024;
const KEEP_ALIVE_MS = 30_000;
const DEFAULT_GRACE_MS = 2_000;
/** An overlong body is read up to so many times its limit, so that the client reads the answer before the connection closes. */
const MAX_READ_FACTOR = 16;
const PRIVATE = 0o177;

/**
 * Serves requests until it is closed.
 * @param handle - MUST NOT reject; a rejection closes the connection
 * @throws NorthrootError `LISTEN_FAILED`
 */
export async function serveHttp(
  handle: (request: HttpRequest) => Promise<HttpResponse>,
  place: ListenPlace,
  limits: HttpLimits,
): Promise<HttpServer> {
  const { maxPending = DEFAULT_MAX_PENDING, requestTimeoutMs = 15_000, graceMs = DEFAULT_GRACE_MS } = limits;
  const state: State = { pending: 0, bodyBytes: 0, isStopping: false, connections: new Map() };
  const server = createServer(
    {
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: requestTimeoutMs,
      requestTimeout: requestTimeoutMs,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connectionsCheckingInterval: Math.min(1_000, requestTimeoutMs),
    },
    (request, response) => void respond(request, response),
  );
  closeQueued(server);
  server.on('connection', (socket) => {
    state.connections.set(socket, 0);
    socket.once('close', () => state.connections.delete(socket));
    if (state.connections.size > MAX_CONNECTIONS) leaveOne(state.connections);
  });

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // An aborted request loses its socket.
    const { socket } = request;
    state.pending += 1;
    const gone = new AbortController();
    const leave = (): void => {
      if (!response.writableFinished) gone.abort(new Error('the client has gone'));
    };
    response.on('close', leave);
    try {
      const answer =
        state.pending > maxPending && limits.isExempt?.(request.url ?? '') !== true
          ? limits.refuse(503)
          : await answerTo(handle, request, limits, state, gone.signal);
      const isLast = state.isStopping || !request.complete;
      response.writeHead(answer.status, {
        'Content-Type': answer.contentType,
        'Content-Length': Buffer.byteLength(answer.body),
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        ...answer.headers,
        ...(isLast ? { Connection: 'close' } : {}),
      });
      response.end(request.method === 'HEAD' ? '' : answer.body);
    } catch {
      // The client disconnected, or sends endlessly.
      socket.destroy();
    } finally {
      state.pending -= 1;
    }
  };

  await listen(server, place);
  return {
    url: 'socket' in place ? `unix:${place.socket}` : urlOf(place.host, server.address() as AddressInfo),
    close: async () => {
      state.isStopping = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const timer = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(timer);
    },
  };
}

/**
 * Closes answers that wait for their turn when their connection closes: a client may send its next request before it has its answer, and Node
 * tells only the answer that is being sent. Others would never end.
 */
export function closeQueued(server: Server): void {
  const open = new WeakMap<Socket, Set<ServerResponse>>();
  server.on('request', ({ socket }, response) => {
    let answers = open.get(socket);
    if (answers === undefined) {
      const all = new Set<ServerResponse>();
      socket.once('close', () => {
        for (const each of all) if (each.socket === null) each.destroy().emit('close');
      });
      open.set(socket, all);
      answers = all;
    }
    const own = answers.add(response);
    response.once('close', () => own.delete(response));
  });
}

/** `http://HOST:PORT`. */
export function urlOf(host = '127.0.0.1', { port }: AddressInfo): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

interface State {
  /** Requests that are being answered. */
  pending: number;
  bodyBytes: number;
  isStopping: boolean;
  /** How many whole requests of each are being answered; the oldest first. */
  readonly connections: Map<Socket, number>;
}

/** The oldest connection without a whole request gives way: whoever holds connections open keeps nobody out. */
function leaveOne(connections: State['connections']): void {
  for (const [socket, answering] of connections) {
    if (answering > 0) continue;
    connections.delete(socket);
    socket.destroy();
    return;
  }
}

async function answerTo(
  handle: (request: HttpRequest) => Promise<HttpResponse>,
  request: IncomingMessage,
  { maxBodyBytes, refuse }: HttpLimits,
  state: State,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const { method = '', url = '' } = request;
  const maxRead = maxBodyBytes * MAX_READ_FACTOR;
  if (Number(request.headers['content-length'] ?? 0) > maxRead) return refuse(413);
  const { socket } = request;
  const { connections } = state;
  const chunks: Buffer[] = [];
  let [size, kept] = [0, 0];
  let isBusy = false;
  const count = (more: 1 | -1): void => {
    const answering = connections.get(socket);
    if (answering !== undefined) connections.set(socket, answering + more);
  };
  let isCounted = false;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > maxRead) throw new Error('the body has no end');
      isBusy ||= state.bodyBytes + chunk.length > MAX_BODIES_BYTES;
      if (isBusy || size > maxBodyBytes) continue;
      chunks.push(chunk);
      kept += chunk.length;
      state.bodyBytes += chunk.length;
    }
    if (size > maxBodyBytes) return refuse(413);
    if (isBusy) return refuse(503);
    count(1);
    isCounted = true;
    const headers = Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, [value].flat()[0] ?? '']),
    );
    return await handle({ method, path: url, headers, body: Buffer.concat(chunks), signal });
  } finally {
    state.bodyBytes -= kept;
    if (isCounted) count(-1);
  }
}

const ADDRESS_FAILURES: Readonly<Record<string, string>> = {
  EACCES: 'this user may not',
  EADDRINUSE: 'it is in use',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'there is no such host',
};

const SOCKET_FAILURES: Readonly<Record<string, string>> = {
  // Node says this of a missing folder too.
  EACCES: 'its folder is missing, or this user may not write there',
  EADDRINUSE: 'it is in use',
};

/** @throws NorthrootError `LISTEN_FAILED` */
export function listen(server: Server, place: ListenPlace): Promise<void> {
  const name =
    'socket' in place
      ? printable(place.socket)
      : `${printable(place.host ?? '127.0.0.1')} port ${place.port}`;
  const isSocket = 'socket' in place;
  const hint = isSocket ? 'give another path' : 'give another address; port 0 takes any that is free';
  const refuse = (why: string, cause?: Error): NorthrootError =>
    new NorthrootError('LISTEN_FAILED', `cannot listen on ${name}: ${why}`, { cause, hint });
  return new Promise((resolve, reject) => {
    if (isSocket && !fitsSocket(place.socket)) {
      const found = Buffer.byteLength(place.socket);
      reject(refuse(`expected a path of at most ${MAX_SOCKET_PATH_BYTES} bytes, found ${found}`));
      return;
    }
    server.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code ?? error.message;
      const words = isSocket ? SOCKET_FAILURES[code] : ADDRESS_FAILURES[code];
      reject(refuse(words ?? code, error));
    });
    if (!('socket' in place)) {
      server.listen(place.port, place.host ?? '127.0.0.1', resolve);
      return;
    }
    // The socket is bound within the call.
    const before = process.umask(PRIVATE);
    try {
      server.listen(place.socket, resolve);
    } finally {
      process.umask(before);
    }
  });
}
