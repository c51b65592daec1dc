/** Requests to models, as clients send them. */

import { type IncomingRequest, readModelRequest } from '../../../src/gate/llm/read-request.js';
import type { ModelRequest, ReadRequest } from '../../../src/gate/llm/model-api.js';

export const CHAT = '/v1/chat/completions';
export const RESPONSES = '/v1/responses';
export const MESSAGES = '/v1/messages';

/** What a text costs beside itself. */
export const REQUEST_TOKENS = 64;

export function post(path: string, body: unknown, more: Partial<IncomingRequest> = {}): IncomingRequest {
  const bytes =
    body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
  return { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: bytes, ...more };
}

export function get(path: string, method = 'GET'): IncomingRequest {
  return { method, path, headers: {}, body: new Uint8Array(0) };
}

/** The call; fails for what is none. */
export function callOf(
  path: string,
  body: unknown,
  more: Partial<IncomingRequest> = {},
  provider?: string,
): ModelRequest {
  const read = readModelRequest(post(path, body, more), { provider });
  if (read.kind !== 'call') throw new Error(`no call: ${JSON.stringify(read)}`);
  return read.request;
}

/** The code of a refusal, or what it was instead. */
export function codeOf(read: ReadRequest): string {
  return read.kind === 'refuse' ? `${read.status} ${read.code}` : read.kind;
}

export const user = (content: unknown): object => ({ role: 'user', content });

/** The smallest request of each API that can be bounded. */
export const SMALLEST: readonly (readonly [path: string, body: Record<string, unknown>])[] = [
  [CHAT, { model: 'gpt-4o', messages: [user('hi')], max_tokens: 5 }],
  [RESPONSES, { model: 'gpt-5', input: 'hi', max_output_tokens: 16 }],
  ['/v1/completions', { model: 'davinci-002', prompt: 'hi', max_tokens: 5 }],
  ['/v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' }],
  ['/v1/images/generations', { model: 'gpt-image-1', prompt: 'a cat' }],
  [MESSAGES, { model: 'claude-sonnet-4-5', messages: [user('hi')], max_tokens: 5 }],
];
