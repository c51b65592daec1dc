/** Refusals in the form of the errors that the clients of an API know. */

import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { ModelApi, ModelApiFamily } from './model-api.js';

/** Why a request is answered here. */
export interface Refusal {
  /** 400 to 599; 429 where a budget does not allow it. */
  readonly status: number;
  /** A code of SPEC §2. */
  readonly code: string;
  /** At most 1,000 characters are sent. */
  readonly message: string;
  /** When it may be tried again, in seconds. Without it, clients are told not to. */
  readonly retryAfterS?: number | undefined;
  /** Under which the refusal is found in the ledger. */
  readonly requestId?: string | undefined;
}

export interface RefusalAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

const UPGRADE_REQUIRED = 426;
const MAX_MESSAGE_LENGTH = 1_000;

const OPENAI_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'insufficient_quota',
};

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
};

/**
 * The answer to a request that is not forwarded: official clients raise the error of its status, such as RateLimitError for 429, and do not
 * try again unless a time is given.
 * @throws RangeError for a status that is no error
 */
export function refusalOf(api: ModelApi | ModelApiFamily, refusal: Refusal): RefusalAnswer {
  const { status, code, retryAfterS, requestId } = refusal;
  if (!Number.isInteger(status) || status < 400 || status > 599)
    throw new RangeError(`expected the status of an error, found ${status}`);
  const message = printable(refusal.message, MAX_MESSAGE_LENGTH);
  const fallback = status < 500 ? 'invalid_request_error' : 'server_error';
  const isAnthropic = api.startsWith('anthropic');
  const body = isAnthropic
    ? {
        type: 'error',
        error: { type: ANTHROPIC_TYPES[status] ?? (status < 500 ? fallback : 'api_error'), message, code },
        request_id: requestId ?? null,
      }
    : { error: { message, type: OPENAI_TYPES[status] ?? fallback, param: null, code } };
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'x-should-retry': retryAfterS === undefined ? 'false' : 'true',
  };
  if (retryAfterS !== undefined) headers['retry-after'] = String(Math.max(0, Math.ceil(retryAfterS)));
  // HTTP has a client told which protocol it is to use.
  if (status === UPGRADE_REQUIRED) Object.assign(headers, { upgrade: 'HTTP/1.1', connection: 'upgrade' });
  if (requestId !== undefined) headers[isAnthropic ? 'request-id' : 'x-request-id'] = requestId;
  return { status, headers, body: encodeUtf8(JSON.stringify(body)) };
}
