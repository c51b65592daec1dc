/** The limit of output in a request: read, and put into its bytes. */

import { encodeUtf8, decodeUtf8 } from '../../base/bytes/text.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { MAX_COUNT } from '../price/usage.js';
import type { ModelApi, ModelRequest } from './model-api.js';
import { invalid } from './request-body.js';
import { isSpace } from './json-picker.js';

/**
 * The most output of all choices together, by the greatest of the limits that are stated. Undefined where none is.
 * @throws RequestFault where it is more than can be counted
 */
export function mostOutput(limits: readonly (number | undefined)[], choices: number): number | undefined {
  const stated = limits.filter((limit) => limit !== undefined);
  if (stated.length === 0) return undefined;
  const most = Math.max(...stated) * choices;
  if (most > MAX_COUNT)
    throw invalid(`expected at most ${MAX_COUNT} tokens of output in all choices together`);
  return most;
}

/** The member that limits the output of one answer, as the API documents it. */
const LIMIT_MEMBERS: Readonly<Partial<Record<ModelApi, string>>> = {
  'openai-chat': 'max_completion_tokens',
  'openai-responses': 'max_output_tokens',
  'openai-completions': 'max_tokens',
  'anthropic-messages': 'max_tokens',
};

/** The least that an API takes; below it, a call is refused by the provider. */
const LEAST_LIMITS: Readonly<Partial<Record<ModelApi, number>>> = { 'openai-responses': 16 };

/** What OpenAI makes of a completion without a limit; other providers make more. */
const DEFAULT_COMPLETION = 16;

/** The least limit of output that the API of a request takes. */
export function leastOutput({ api }: Pick<ModelRequest, 'api'>): number {
  return LEAST_LIMITS[api] ?? 1;
}

/** Providers whose models that reason take no `max_tokens`. Others have OpenAI's API as it was before, and may ignore what is new in it. */
const NEW_CHAT_PROVIDERS: ReadonlySet<string> = new Set(['openai', 'azure']);

function limitMember({ api, provider }: ModelRequest): string | undefined {
  const isOld = api === 'openai-chat' && !NEW_CHAT_PROVIDERS.has(provider);
  return isOld ? 'max_tokens' : LIMIT_MEMBERS[api];
}

/**
 * The bytes of a request with a limit of output where it has none: one member more, at its beginning, or a number instead of `null`. All
 * other bytes are as they are. A request that has a limit is returned as it is.
 * @param limit - Tokens of output for all choices together; each has its part of it
 * @throws RangeError where that is less than the API takes
 */
export function withMaxOutput(request: ModelRequest, body: Uint8Array, limit: number): Uint8Array {
  const { api, choices } = request;
  const member = limitMember(request);
  if (request.maxOutput !== undefined || member === undefined) return body;
  const each = Math.floor(limit / choices);
  const least = leastOutput(request);
  if (!(each >= least))
    throw new RangeError(`expected a limit of at least ${least * choices}, found ${limit}`);
  const count = api === 'openai-completions' ? Math.min(each, DEFAULT_COMPLETION) : each;
  return withMember(body, member, String(count));
}

/**
 * The bytes of a streamed chat completion that states its usage at its end (`stream_options`), where the request does not say whether it
 * shall. The client then gets one chunk more, without choices.
 */
export function withStreamUsage(request: ModelRequest, body: Uint8Array): Uint8Array {
  const hasChunks = request.api === 'openai-chat' || request.api === 'openai-completions';
  return hasChunks && request.isStream ? withMember(body, 'stream_options', '{"include_usage":true}') : body;
}

/** Puts a member into an object, unless it has one of this name that is not null. The bytes MUST be sound JSON. */
function withMember(body: Uint8Array, name: string, value: string): Uint8Array {
  const found = findMember(body, name);
  if (found !== undefined) {
    const isNull = decodeUtf8(body.subarray(found.start, found.end)) === 'null';
    return isNull
      ? concatBytes([body.subarray(0, found.start), encodeUtf8(value), body.subarray(found.end)])
      : body;
  }
  const start = body.indexOf(BRACE) + 1;
  const comma = body[skipSpace(body, start)] === END_BRACE ? '' : ',';
  return concatBytes([
    body.subarray(0, start),
    encodeUtf8(`"${name}":${value}${comma}`),
    body.subarray(start),
  ]);
}

interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where the value of a member of the outermost object is. */
function findMember(bytes: Uint8Array, name: string): Span | undefined {
  let at = skipSpace(bytes, bytes.indexOf(BRACE) + 1);
  while (at < bytes.length && bytes[at] === QUOTE) {
    const keyEnd = endOfText(bytes, at);
    const key: unknown = JSON.parse(decodeUtf8(bytes.subarray(at, keyEnd)));
    const start = skipSpace(bytes, skipSpace(bytes, keyEnd) + 1);
    const end = endOfValue(bytes, start);
    if (key === name) return { start, end };
    at = skipSpace(bytes, skipSpace(bytes, end) + 1);
  }
  return undefined;
}

function endOfValue(bytes: Uint8Array, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length;) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) {
      at = endOfText(bytes, at);
      if (depth === 0) return at;
      continue;
    }
    if (byte === BRACE || byte === BRACKET) depth += 1;
    else if (byte === END_BRACE || byte === END_BRACKET) {
      if (depth === 0) return at;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === COMMA || isSpace(byte))) return at;
    at += 1;
  }
  return bytes.length;
}

function endOfText(bytes: Uint8Array, start: number): number {
  for (let at = start + 1; at < bytes.length; at += 1) {
    if (bytes[at] === BACKSLASH) at += 1;
    else if (bytes[at] === QUOTE) return at + 1;
  }
  return bytes.length;
}

function skipSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && isSpace(bytes[at] as number)) at += 1;
  return at;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;
const END_BRACE = 0x7d;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;
