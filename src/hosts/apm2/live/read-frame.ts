/**
 * A line of an agent, as the kernel takes it: more strictly than a recording is read. The agent is hostile, so that whatever is not exactly
 * a request is either output or a fault, and never nearly a request.
 */

import { encodeUtf8, decodeUtf8 } from '../../../base/bytes/text.js';
import { canonicalBytes } from '../../../base/json/canonicalize.js';
import type { JsonValue } from '../../../base/json/value.js';
import { equalBytes } from '../../../base/bytes/compare.js';
import { cacBytes } from '../../shared/forms/cac.js';
import { frameOf, parseToolIntent } from '../tool-intent.js';

export type Frame =
  /** Its own output. */
  | { readonly kind: 'output' }
  /** One that begins as the kernel's answers do: the kernel has not written it. */
  | { readonly kind: 'forged' }
  /** A request with another nonce, or with none that can be read. */
  | { readonly kind: 'guess' }
  /** A request with the right nonce of which no id can be read: nothing can be answered. */
  | { readonly kind: 'unreadable' }
  | {
      readonly kind: 'refused';
      readonly requestId: string;
      readonly toolName: string;
      readonly code: RefusalCode;
    }
  | ({ readonly kind: 'request' } & FrameRequest);

export interface FrameRequest {
  readonly requestId: string;
  readonly toolName: string;
  readonly args: JsonValue;
  /** The JSON text as it was sent. */
  readonly argsBytes: Uint8Array;
}

/** Why a request is not decided on. */
export type RefusalCode = 'MALFORMED_FRAME' | 'ARGS_TOO_LARGE' | 'NOT_CANONICAL';

/** The longest id of a request, in bytes: receipts hold no longer one. */
export const MAX_REQUEST_ID_BYTES = 256;

const CLOSE = '\u27E7';
const ID = /^[^\s\p{C}\u27E6\u27E7]+$/u;
/** Brackets that answers of the kernel begin with; TX1 are excerpts. */
const ANSWER = /^[\s\p{White_Space}]*\u27E6T[RX]1\b/u;

/** Reads a line without its end. */
export function readFrame(line: string, nonce: string, maxArgsSize: number): Frame {
  const tag = frameOf(line);
  if (tag === 'TR1' || ANSWER.test(line)) return { kind: 'forged' };
  if (tag === undefined) return { kind: 'output' };
  const text = line.trim();
  const close = text.indexOf(CLOSE);
  if (close < 0 || text.slice('\u27E6TI1 '.length, close) !== nonce) return { kind: 'guess' };
  const [blank, requestId = '', toolName = '', ...rest] = text.slice(close + 1).split(' ');
  if (!isRequestId(requestId) || blank !== '') return { kind: 'unreadable' };
  const refused = (code: RefusalCode): Frame => ({ kind: 'refused', requestId, toolName, code });
  if (rest.length !== 1 || toolName === '') return refused('MALFORMED_FRAME');
  const parsed = parseToolIntent(text, { nonce, maxArgsSize });
  if (!parsed.ok) {
    const { code } = parsed.fault;
    const isLarge = code === 'ARGS_TOO_LARGE' || code === 'ARGS_BASE64_TOO_LARGE';
    return refused(isLarge ? 'ARGS_TOO_LARGE' : 'MALFORMED_FRAME');
  }
  const { args, argsBytes } = parsed.value;
  const canonical = cacBytes(args);
  if (!canonical.ok || !equalBytes(canonical.value, argsBytes)) return refused('NOT_CANONICAL');
  const plain = plainOf(argsBytes);
  return plain === undefined
    ? refused('NOT_CANONICAL')
    : { kind: 'request', requestId, toolName, args: plain, argsBytes };
}

function isRequestId(text: string): boolean {
  return ID.test(text) && encodeUtf8(text).length <= MAX_REQUEST_ID_BYTES;
}

/** The two canonical forms differ: what is decided on is what both write alike. */
function plainOf(bytes: Uint8Array): JsonValue | undefined {
  try {
    const value = JSON.parse(decodeUtf8(bytes)) as JsonValue;
    return equalBytes(canonicalBytes(value), bytes) ? value : undefined;
  } catch {
    return undefined;
  }
}
