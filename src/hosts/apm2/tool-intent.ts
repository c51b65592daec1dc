/**
 * The ToolIntent lines of agents behind apm2, version 1: one request a line, `⟦TI1 nonce⟧ request_id tool_name args`, and the kernel's
 * answers, `⟦TR1 nonce⟧ request_id ok hash` and `… denied code`. A line that does not begin so is the agent's own output and no request.
 */

import { blake3 } from '@noble/hashes/blake3.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import type { SourceValue } from '../../base/json/source-json.js';
import { decodeCacSource } from '../shared/forms/cac.js';

export const MAX_INTENT_LINE_BYTES = 256 * 1024;
/** The most that the arguments of a request may be, in bytes of JSON, where the profile says nothing else. */
const DEFAULT_MAX_ARGS_SIZE = 1024 * 1024;
/** The most that a profile may say. */
export const MAX_ARGS_SIZE = 100 * 1024 * 1024;

const OPEN = '\u27E6';
const CLOSE = '\u27E7';
const NONCE_BYTES = 8;
const MAX_U64 = 2n ** 64n - 1n;

/** Why a line is not a request or an answer. `NOT_A_FRAME`: it is output like any other, and not wrong. */
export type ToolLineCode =
  | 'NOT_A_FRAME'
  | 'NONCE_MISMATCH'
  | 'MALFORMED_FRAME'
  | 'ARGS_TOO_LARGE'
  | 'ARGS_BASE64_TOO_LARGE'
  | 'INVALID_BASE64'
  | 'INVALID_JSON'
  | 'LINE_TOO_LONG';

export interface ToolIntent {
  readonly nonce: string;
  readonly requestId: string;
  readonly toolName: string;
  readonly args: SourceValue;
  /** The JSON text as it was sent. */
  readonly argsBytes: Uint8Array;
}

export type ToolResponse = { readonly nonce: string; readonly requestId: string } & (
  | { readonly status: 'ok'; readonly resultHash: string }
  | { readonly status: 'denied'; readonly reasonCode: string }
);

interface ToolLineOptions {
  readonly nonce?: string | undefined;
  /** In bytes of JSON; {@link DEFAULT_MAX_ARGS_SIZE} where it is left out. */
  readonly maxArgsSize?: number | undefined;
}

/**
 * The nonce of an episode: the first 8 bytes of BLAKE3 of the profile's prefix, the episode's id and the time of its start, as 16
 * hexadecimal digits.
 *
 * @param spawnTimeNs - Nanoseconds since 1970, of 64 bits.
 * @throws RangeError for another time
 */
export function deriveNonce(noncePrefix: string, episodeId: string, spawnTimeNs: bigint): string {
  if (spawnTimeNs < 0n || spawnTimeNs > MAX_U64)
    throw new RangeError('deriveNonce: expected a time of 64 bits without sign');
  const time = new Uint8Array(8);
  new DataView(time.buffer).setBigUint64(0, spawnTimeNs, true);
  const hash = blake3(concatBytes([encodeUtf8(noncePrefix), encodeUtf8(episodeId), time]));
  return encodeHex(hash.subarray(0, NONCE_BYTES));
}

/** Reads a request. White space around the line does not count; its line feed may be there. */
export function parseToolIntent(
  line: string,
  { nonce, maxArgsSize = DEFAULT_MAX_ARGS_SIZE }: ToolLineOptions = {},
): Result<ToolIntent, Fault<ToolLineCode>> {
  const frame = readFrame(line, 'TI1', nonce);
  if (!frame.ok) return frame;
  const [requestId, toolName, args] = splitOnce(frame.value.rest, 3);
  if (requestId === undefined || toolName === undefined || args === undefined)
    return malformed('a request id, a tool and its arguments');
  const mostEncoded = Math.floor((maxArgsSize * 4) / 3) + 4;
  const encodedSize = byteLength(args);
  if (encodedSize > mostEncoded) {
    const expected = `at most ${mostEncoded} bytes of base64url`;
    return fail({ code: 'ARGS_BASE64_TOO_LARGE', expected, actual: `${encodedSize} bytes` });
  }
  const argsBytes = tryDecodeBase64url(args);
  if (argsBytes === undefined) {
    const expected = 'base64url without padding';
    return fail({ code: 'INVALID_BASE64', expected, actual: printable(args, 40) });
  }
  if (argsBytes.length > maxArgsSize) {
    const expected = `at most ${maxArgsSize} bytes of JSON`;
    return fail({ code: 'ARGS_TOO_LARGE', expected, actual: `${argsBytes.length} bytes` });
  }
  const decoded = decodeCacSource(argsBytes);
  if (!decoded.ok) {
    const { expected, actual } = decoded.fault;
    return fail({ code: 'INVALID_JSON', expected, actual });
  }
  return succeed({ nonce: frame.value.nonce, requestId, toolName, args: decoded.value, argsBytes });
}

/** Reads an answer. */
export function parseToolResponse(
  line: string,
  { nonce }: ToolLineOptions = {},
): Result<ToolResponse, Fault<ToolLineCode>> {
  const frame = readFrame(line, 'TR1', nonce);
  if (!frame.ok) return frame;
  const [requestId, status, word] = splitOnce(frame.value.rest, 3);
  const expected = 'a request id, then ok and a hash, or denied and a reason';
  if (requestId === undefined || word === undefined || word.includes(' ')) return malformed(expected);
  const base = { nonce: frame.value.nonce, requestId };
  if (status === 'ok') return succeed({ ...base, status, resultHash: word });
  if (status === 'denied') return succeed({ ...base, status, reasonCode: word });
  return malformed(expected);
}

/** Whether a line begins as a request or an answer does, whatever follows. */
export function frameOf(line: string): 'TI1' | 'TR1' | undefined {
  const start = line.search(/[^\p{White_Space}]/u);
  const head = start < 0 ? '' : line.slice(start, start + 5);
  if (head === `${OPEN}TI1 `) return 'TI1';
  return head === `${OPEN}TR1 ` ? 'TR1' : undefined;
}

function readFrame(
  line: string,
  tag: 'TI1' | 'TR1',
  expectedNonce: string | undefined,
): Result<{ nonce: string; rest: string }, Fault<ToolLineCode>> {
  const size = byteLength(line);
  if (size > MAX_INTENT_LINE_BYTES) {
    const expected = `at most ${MAX_INTENT_LINE_BYTES} bytes`;
    return fail({ code: 'LINE_TOO_LONG', expected, actual: `${size} bytes` });
  }
  const text = trim(line);
  const head = `${OPEN}${tag} `;
  if (!text.startsWith(head)) {
    const expected = `a line that begins with ${head.trim()}`;
    return fail({ code: 'NOT_A_FRAME', expected, actual: printable(text, 40) });
  }
  const close = text.indexOf(CLOSE, head.length);
  if (close < 0) return malformed(`${CLOSE} after the nonce`);
  const nonce = text.slice(head.length, close);
  if (expectedNonce !== undefined && nonce !== expectedNonce) {
    // The right one stays unsaid: whoever reads a report could use it.
    const expected = 'the nonce of the episode';
    return fail({ code: 'NONCE_MISMATCH', expected, actual: printable(nonce, 40) });
  }
  return succeed({ nonce, rest: trim(text.slice(close + 1)) });
}

function malformed(expected: string): { readonly ok: false; readonly fault: Fault<'MALFORMED_FRAME'> } {
  return fail({ code: 'MALFORMED_FRAME', expected, actual: 'something else' });
}

/** At most so many parts, at single spaces; the last one has the rest. */
function splitOnce(text: string, parts: number): string[] {
  const found: string[] = [];
  let from = 0;
  while (found.length < parts - 1) {
    const space = text.indexOf(' ', from);
    if (space < 0) break;
    found.push(text.slice(from, space));
    from = space + 1;
  }
  found.push(text.slice(from));
  return found;
}

const WHITE_SPACE = /\p{White_Space}/u;

/** Unicode's white space, as Rust trims it. */
function trim(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && WHITE_SPACE.test(text.charAt(start))) start++;
  while (end > start && WHITE_SPACE.test(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

function byteLength(text: string): number {
  return encodeUtf8(text).length;
}
