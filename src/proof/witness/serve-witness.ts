/** A witness on node:http: limits of size, time and number around `witness-service.ts`. TLS is for a proxy in front of it. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { printable } from '../../base/bytes/printable.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { MAX_REQUEST_BYTES, type Witness, type WitnessResponse } from './witness-service.js';

export interface ServeOptions {
  /** An address or a name. Default 127.0.0.1. */
  readonly host?: string | undefined;
  /** 0 for any free port. */
  readonly port: number;
  /** How long a client may take to send a request, in milliseconds. Default 15,000. */
  readonly requestTimeoutMs?: number | undefined;
}

export interface WitnessServer {
  /** The submission prefix: `http://HOST:PORT/PREFIX`, without a `/` at the end. */
  readonly url: string;
  /** Stops accepting requests and waits up to two seconds for pending answers. The witness stays open. */
  close(): Promise<void>;
}

const MAX_CONNECTIONS = 256;
const MAX_PENDING = 256;
const MAX_HEADER_BYTES = 8 * 1024;
const KEEP_ALIVE_MS = 30_000;
const GRACE_MS = 2_000;
/** An overlong body is read up to here, so that the client reads the answer before the connection closes. */
const MAX_READ_BYTES = 16 * MAX_REQUEST_BYTES;

/**
 * Serves a witness over HTTP.
 *
 * @throws NorthrootError `LISTEN_FAILED`
 */
export async function serveWitness(witness: Witness, options: ServeOptions): Promise<WitnessServer> {
  const { host = '127.0.0.1', port, requestTimeoutMs = 15_000 } = options;
  const state = { pending: 0, isStopping: false };
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
  server.maxConnections = MAX_CONNECTIONS;
  server.setTimeout(KEEP_ALIVE_MS);

  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // An aborted request loses its socket.
    const { socket } = request;
    state.pending += 1;
    try {
      const answer = state.pending > MAX_PENDING ? BUSY : await answerTo(witness, request);
      const isLast = state.isStopping || !request.complete;
      response.writeHead(answer.status, {
        'Content-Type': answer.contentType,
        'Content-Length': Buffer.byteLength(answer.body),
        'Cache-Control': 'no-store',
        'X-Content-Type-Options': 'nosniff',
        ...defined({ Allow: answer.allow }),
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

  await listen(server, host, port);
  const { port: bound } = server.address() as AddressInfo;
  const place = `${host.includes(':') ? `[${host}]` : host}:${bound}`;
  return {
    url: `http://${place}${witness.prefix}`,
    close: async () => {
      state.isStopping = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const timer = setTimeout(() => server.closeAllConnections(), GRACE_MS);
      await closed;
      clearTimeout(timer);
    },
  };
}

const TEXT = 'text/plain; charset=utf-8';
const BUSY: WitnessResponse = { status: 503, contentType: TEXT, body: 'too many requests at once\n' };
const TOO_LARGE: WitnessResponse = {
  status: 413,
  contentType: TEXT,
  body: `expected a body of at most ${MAX_REQUEST_BYTES} bytes\n`,
};

async function answerTo(witness: Witness, request: IncomingMessage): Promise<WitnessResponse> {
  const { method = '', url = '' } = request;
  if (Number(request.headers['content-length'] ?? 0) > MAX_READ_BYTES) return TOO_LARGE;
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_READ_BYTES) throw new Error('the body has no end');
    if (size <= MAX_REQUEST_BYTES) chunks.push(chunk);
  }
  if (size > MAX_REQUEST_BYTES) return TOO_LARGE;
  return witness.handle({ method, path: url, body: Buffer.concat(chunks) });
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const code = error.code ?? error.message;
      const why = code === 'EADDRINUSE' ? 'the port is in use' : code;
      reject(
        new NorthrootError('LISTEN_FAILED', `cannot listen on ${printable(host)} port ${port}: ${why}`, {
          cause: error,
          hint: 'give another address; port 0 takes any that is free',
        }),
      );
    });
    server.listen(port, host, resolve);
  });
}
