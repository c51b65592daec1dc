/** Serves a gate on a Unix socket and, when asked, on an address. */

import { connect } from 'node:net';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import {
  type HttpLimits,
  type HttpServer,
  type ListenPlace,
  serveHttp,
} from '../../base/platform/serve-http.js';
import { kindOfPath, removeFile } from '../../log/fs/file-system.js';
import { GateService, type GateServiceOptions } from './gate-service.js';

export interface ServeGateOptions extends GateServiceOptions {
  /** The path of the Unix socket, which only its user may open. */
  readonly socket?: string | undefined;
  /** An address besides; it requires `tokens`, or a face that knows its clients. */
  readonly listen?: { readonly host?: string | undefined; readonly port: number } | undefined;
}

export interface GateServer {
  /** `unix:PATH`, and `http://HOST:PORT`. */
  readonly urls: readonly string[];
  /** Stops accepting requests, and waits for what is being decided. The gate stays open. */
  close(): Promise<void>;
}

/** The largest request body, in bytes. */
export const MAX_GATE_BODY_BYTES = 1024 * 1024;
const MAX_PENDING = 1_024;
const GRACE_MS = 10_000;
/** A socket that takes longer to answer is in use. */
const PROBE_MS = 1_000;

/**
 * Serves a gate until it is closed. A socket that a killed service left is replaced.
 * @throws NorthrootError `LISTEN_FAILED`; `SOCKET_IN_USE`: another service answers there, or it is no socket
 * @throws TypeError without a place, or for an address without tokens
 */
export async function serveGate(options: ServeGateOptions): Promise<GateServer> {
  const { socket, listen, tokens } = options;
  if (socket === undefined && listen === undefined)
    throw new TypeError('serveGate: expected socket or listen');
  if (
    listen !== undefined &&
    tokens === undefined &&
    options.faces?.some((face) => face.authenticates) !== true
  )
    throw new TypeError('serveGate: an address requires tokens: anybody can connect to it');
  if (options.peers !== undefined && (listen === undefined || tokens === undefined))
    throw new TypeError('serveGate: peers require an address and tokens');
  const service = new GateService(options);
  const servers: HttpServer[] = [];
  const open = async (place: ListenPlace, isTrusted: boolean): Promise<void> => {
    servers.push(await serveHttp((request) => service.handle(request, isTrusted), place, LIMITS));
  };
  try {
    if (socket !== undefined) {
      await removeStale(socket);
      await open({ socket }, true);
    }
    if (listen !== undefined) await open(listen, false);
  } catch (error) {
    await Promise.all(servers.map((server) => server.close()));
    await service.close();
    throw error;
  }
  return {
    urls: servers.map(({ url }) => url),
    close: async () => {
      await Promise.all(servers.map((server) => server.close()));
      await service.close();
    },
  };
}

export const LIMITS: HttpLimits = {
  maxBodyBytes: MAX_GATE_BODY_BYTES,
  maxPending: MAX_PENDING,
  graceMs: GRACE_MS,
  isExempt: (path) => path === '/healthz',
  refuse: (status) => ({
    status,
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify({
      error:
        status === 413
          ? { code: 'BODY_TOO_LARGE', message: `expected a body of at most ${MAX_GATE_BODY_BYTES} bytes` }
          : { code: 'BUSY', message: 'too many requests at once' },
    }),
    ...(status === 503 ? { headers: { 'Retry-After': '1' } } : {}),
  }),
};

/**
 * Removes a socket that a killed service left.
 * @throws NorthrootError `SOCKET_IN_USE`
 */
export async function removeStale(path: string): Promise<void> {
  const kind = await kindOfPath(path);
  if (kind === 'missing') return;
  const refuse = (why: string, hint: string): NorthrootError =>
    new NorthrootError('SOCKET_IN_USE', `cannot listen on ${printable(path)}: ${why}`, { hint });
  if (kind !== 'other') throw refuse('it is no socket', 'give another path');
  if (await isServed(path)) throw refuse('another service answers there', 'stop it, or give another path');
  await removeFile(path);
}

/** Whether a process accepts connections there. */
function isServed(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.setTimeout(PROBE_MS, () => end(true));
    socket.once('connect', () => end(true));
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code !== 'ECONNREFUSED'));
  });
}
