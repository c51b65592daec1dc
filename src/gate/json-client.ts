/**
 * One request to another system, answered in JSON: a deadline for the whole exchange, a bound on the answer, no redirects. Nothing of the
 * request, its headers or its answer is in an error.
 */

import { NorthrootError } from '../base/error.js';

export interface JsonRequest {
  readonly url: URL;
  readonly method?: 'GET' | 'POST' | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** JSON text. */
  readonly body?: string | undefined;
  /** For all of it, the answer's last byte included. Default: none but the signal. */
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Of the answer, unpacked. */
  readonly maxBytes: number;
}

export interface HttpAnswer {
  readonly status: number;
  readonly bytes: Uint8Array;
  /** The clock of who answered, as it says. */
  readonly date: string | null;
}

/**
 * Sends a request, once.
 * @throws NorthrootError `PEER_TIMEOUT`: what was asked may have been done all the same; `PEER_UNREACHABLE`; `PEER_ANSWER_INVALID` for an
 *   answer that is too long or redirects
 * @throws the signal's reason
 */
export async function requestJson(request: JsonRequest): Promise<HttpAnswer> {
  const { url, method = 'POST', headers, body, timeoutMs, signal, maxBytes } = request;
  signal?.throwIfAborted();
  const abort = new AbortController();
  let isLate = false;
  const pass = (): void => abort.abort(signal?.reason);
  signal?.addEventListener('abort', pass, { once: true });
  const timer =
    timeoutMs === undefined
      ? undefined
      : setTimeout(() => {
          isLate = true;
          abort.abort(new Error('late'));
        }, timeoutMs);
  try {
    const response = await fetch(url, {
      method,
      headers: {
        Accept: 'application/json',
        ...(body && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      signal: abort.signal,
      // A redirection could lead elsewhere, with what is in the request.
      redirect: 'manual',
    });
    const { status } = response;
    if (status >= 300 && status < 400) {
      await response.body?.cancel();
      throw invalid(`the answer is a redirection, status ${status}`);
    }
    return { status, bytes: await readBounded(response, maxBytes), date: response.headers.get('date') };
  } catch (error) {
    if (error instanceof NorthrootError) throw error;
    signal?.throwIfAborted();
    if (isLate) throw new NorthrootError('PEER_TIMEOUT', `there was no answer within ${timeoutMs} ms`);
    // The text of other errors may have parts of the request.
    throw new NorthrootError('PEER_UNREACHABLE', `the connection failed: ${reasonOf(error)}`);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', pass);
  }
}

/**
 * The URL of an endpoint, its path ending in `/`, so that paths can be put below it.
 * @throws TypeError unless it is an http URL without credentials, query and fragment; the text is not in the message
 */
export function endpointOf(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    throw new TypeError(`${name}: expected an http URL`);
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw new TypeError(`${name}: expected a URL without credentials, query and fragment`);
  if (!url.pathname.endsWith('/')) url.pathname += '/';
  return url;
}

async function readBounded(response: Response, most: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    size += chunk.length;
    if (size > most) throw invalid(`the answer is too long: more than ${most} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function invalid(message: string): NorthrootError {
  return new NorthrootError('PEER_ANSWER_INVALID', message);
}

/** The name of an operating system's or a library's error, such as `ECONNREFUSED`. */
function reasonOf(error: unknown): string {
  const { code } = ((error as Error | undefined)?.cause ?? error ?? {}) as { readonly code?: unknown };
  return typeof code === 'string' && /^[A-Z0-9_]{1,64}$/.test(code) ? code : 'no reason given';
}
