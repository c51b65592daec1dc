/** A witness over HTTP: `witness-service.ts` behind a bounded server. TLS is for a proxy in front of it. */

import { serveHttp } from '../../base/platform/serve-http.js';
import { defined } from '../../base/defined.js';
import { MAX_REQUEST_BYTES, type Witness } from './witness-service.js';

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

const TEXT = 'text/plain; charset=utf-8';

/**
 * Serves a witness over HTTP.
 *
 * @throws NorthrootError `LISTEN_FAILED`
 */
export async function serveWitness(witness: Witness, options: ServeOptions): Promise<WitnessServer> {
  const { host, port, requestTimeoutMs } = options;
  const server = await serveHttp(
    async ({ method, path, body }) => {
      const { allow, ...answer } = await witness.handle({ method, path, body });
      return { ...answer, headers: defined({ Allow: allow }) };
    },
    { host, port },
    {
      maxBodyBytes: MAX_REQUEST_BYTES,
      requestTimeoutMs,
      refuse: (status) => ({
        status,
        contentType: TEXT,
        body:
          status === 413
            ? `expected a body of at most ${MAX_REQUEST_BYTES} bytes\n`
            : 'too many requests at once\n',
      }),
    },
  );
  return { url: `${server.url}${witness.prefix}`, close: () => server.close() };
}
