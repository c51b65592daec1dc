/**
 * One request to another system, answered in JSON: a deadline for the whole exchange, a bound on the answer, no redirects. Nothing of the
 * request, its headers or its answer is in an error.
 */

import { joinSignals, startDeadline } from '../base/deadline.js';
import { NorthrootError } from '../base/error.js';
import { connectionFault, readBounded } from '../base/http-answer.js';

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
  const deadline = timeoutMs === undefined ? joinSignals([signal]) : startDeadline(timeoutMs, [signal]);
  try {
    const response = await fetch(url, {
      method,
      headers: {
        Accept: 'application/json',
        ...(body && { 'Content-Type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
      signal: deadline.signal,
      // A redirection could lead elsewhere, with what is in the request.
      redirect: 'manual',
    });
    const { status } = response;
    if (status >= 300 && status < 400) {
      await response.body?.cancel();
      throw invalid(`the answer is a redirection, status ${status}`);
    }
    const { bytes, isWhole } = await readBounded(response, maxBytes);
    if (!isWhole) throw invalid(`the answer is too long: more than ${maxBytes} bytes`);
    return { status, bytes, date: response.headers.get('date') };
  } catch (error) {
    if (error instanceof NorthrootError) throw error;
    signal?.throwIfAborted();
    if (deadline.signal.aborted)
      throw new NorthrootError('PEER_TIMEOUT', `there was no answer within ${timeoutMs} ms`);
    throw new NorthrootError('PEER_UNREACHABLE', `the connection failed: ${connectionFault(error)}`);
  } finally {
    deadline.clear();
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

function invalid(message: string): NorthrootError {
  return new NorthrootError('PEER_ANSWER_INVALID', message);
}
