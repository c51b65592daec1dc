/** Passes requests on to another service over connections that stay open. */

import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { HttpRequest, HttpResponse } from '../../base/platform/serve-http.js';

/** An answer; `refused` where nothing was sent; `lost` where it may have been done. */
export type Forwarded = HttpResponse | 'refused' | 'lost';

/** The header that a forwarded request has: it is not forwarded again. */
export const FORWARDED = 'northroot-forwarded';

/** What of a client's headers is passed on. */
const PASSED = ['authorization', 'content-type', 'x-request-id'] as const;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const MAX_CONNECTIONS = 256;
/** Errors of connections that were never open. */
const NEVER_OPEN: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

export class Relay {
  readonly #url: URL;
  readonly #agent: HttpAgent;

  /** @param url - Its path ends in `/` */
  constructor(url: URL) {
    this.#url = url;
    const options = { keepAlive: true, maxSockets: MAX_CONNECTIONS };
    this.#agent = url.protocol === 'https:' ? new HttpsAgent(options) : new HttpAgent(options);
  }

  /** @param from - Which service passes it on. Never rejects. */
  send(request: HttpRequest, from: string, signal: AbortSignal): Promise<Forwarded> {
    const { protocol, hostname, port, pathname } = this.#url;
    const { method, path, headers, body } = request;
    const open = protocol === 'https:' ? httpsRequest : httpRequest;
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException): void =>
        resolve(NEVER_OPEN.has(error.code) ? 'refused' : 'lost');
      if (signal.aborted) {
        resolve('refused');
        return;
      }
      const asked = open(
        {
          agent: this.#agent,
          host: hostname.replace(/^\[|\]$/g, ''),
          ...(port === '' ? {} : { port }),
          method,
          path: `${pathname.slice(0, -1)}${path}`,
          headers: {
            ...Object.fromEntries(
              PASSED.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]])),
            ),
            [FORWARDED]: from,
            ...(method === 'GET' ? {} : { 'content-length': String(body.length) }),
          },
          signal,
        },
        (response) => {
          readAnswer(response).then(resolve, () => resolve('lost'));
        },
      );
      asked.on('error', fail);
      // Who answers with another protocol is left, without an error; what was answered may be read yet.
      let isAnswered = false;
      asked.once('response', () => (isAnswered = true));
      asked.once('close', () => {
        if (!isAnswered) resolve('lost');
      });
      asked.end(method === 'GET' ? undefined : body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

async function readAnswer(response: IncomingMessage): Promise<Forwarded> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_ANSWER_BYTES) {
      response.destroy();
      return 'lost';
    }
    chunks.push(chunk);
  }
  const { statusCode = 0, headers } = response;
  const contentType = headers['content-type'] ?? '';
  // What a service never answers is of something between the two: it may be done or not.
  if (!/^application\/json/.test(contentType) || (statusCode >= 300 && statusCode < 400)) return 'lost';
  const [requestId, retryAfter] = [headers['x-request-id'], headers['retry-after']];
  return {
    status: statusCode,
    contentType,
    body: Buffer.concat(chunks).toString('utf8'),
    headers: {
      ...(typeof requestId === 'string' ? { 'X-Request-ID': requestId } : {}),
      ...(retryAfter === undefined ? {} : { 'Retry-After': retryAfter }),
    },
  };
}
