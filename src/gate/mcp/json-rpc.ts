/**
 * Messages of JSON-RPC 2.0, as MCP frames them: what one reader and another could take for two messages is told apart from what has one
 * reading. Readers differ in duplicate keys, in the case of keys (Go), in what ends a line (Python ends one at a carriage return), and in
 * what is no Unicode.
 */

import { ingestJson } from '../../base/json/ingest.js';
import { isJsonObject, type JsonObject, type JsonValue, tryParse } from '../../base/json/value.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';

/** The id of a request: `1` and `"1"` are two. */
export type RpcId = string | number;

interface Read {
  readonly value: JsonObject;
  /** Why it may have another reading, such as `DUPLICATE_KEYS at byte 7`; undefined where it has one. */
  readonly ambiguity: string | undefined;
  /** Why its numbers have no canonical form; undefined where they have. */
  readonly inexact: string | undefined;
}

/** A message as its sender, or a lenient reader of it, understands it. */
export type RpcFrame =
  | (Read & { readonly kind: 'request'; readonly id: RpcId; readonly method: string })
  | (Read & { readonly kind: 'notification'; readonly method: string })
  | (Read & { readonly kind: 'response'; readonly id: RpcId | null })
  /** An object that is none of these. */
  | (Read & { readonly kind: 'other'; readonly id: RpcId | null })
  /** An array: a batch of 2025-03-26. */
  | { readonly kind: 'batch' }
  /** No JSON, but it has what an object or an array begins with. */
  | { readonly kind: 'broken' }
  /** Nothing that anybody reads as a message, such as text or an empty line. */
  | { readonly kind: 'noise' };

/** Errors of JSON-RPC 2.0 §5.1, and of this guard. */
export const RPC_PARSE_ERROR = -32700;
export const RPC_INVALID_REQUEST = -32600;
export const RPC_INVALID_PARAMS = -32602;
export const RPC_INTERNAL_ERROR = -32603;
/** A denial, where it is told as an error. */
export const RPC_DENIED = -32010;

/** Nesting of a message that is read at all. */
const MAX_FRAME_DEPTH = 512;
/** What is longer is not read a second time, for its duplicates, unless it comes from the client; in bytes. */
const MAX_SECOND_READING = 4 * 1024 * 1024;

const DECODER = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const LENIENT = new TextDecoder('utf-8');

const NO_UNICODE = 'INVALID_UTF8';
const NOT_LOOKED_AT = 'TOO_LONG';

/** Whether an answer may be a success to one reader and a failure to another. */
export function isTwofold({ value, ambiguity }: Pick<Read, 'value' | 'ambiguity'>): boolean {
  if (Object.hasOwn(value, 'result') && Object.hasOwn(value, 'error')) return true;
  return ambiguity !== undefined && ambiguity !== NO_UNICODE && ambiguity !== NOT_LOOKED_AT;
}

/** Faults of numbers: the message has one reading, but its parameters no canonical form. */
const OF_NUMBERS: ReadonlySet<string> = new Set([
  'UNSAFE_INTEGER',
  'NEGATIVE_ZERO',
  'NON_FINITE_NUMBER',
  'NUMBER_INEXACT',
]);

/**
 * Reads one message, without what ends its line.
 * @param isTrusted - Of a server: a long message is taken as it is read, without looking for a second reading
 */
export function readFrame(bytes: Uint8Array, isTrusted = false): RpcFrame {
  if (!bytes.includes(0x7b) && !bytes.includes(0x5b)) return { kind: 'noise' };
  if (isTooDeep(bytes)) return { kind: 'broken' };
  const found = parse(bytes, isTrusted);
  if (found === undefined) return { kind: 'broken' };
  const { value, ...read } = found;
  if (Array.isArray(value)) return { kind: 'batch' };
  return isJsonObject(value) ? toFrame({ value, ...read }) : { kind: 'noise' };
}

/** A member of its own; undefined for none. */
export function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

/** A longer text is not kept as a key: it takes memory, and V8 looks for it among all others of its length. */
const MAX_KEY_CHARACTERS = 128;

/** A text as a key that may be kept, however many there are: of a long one its digest. */
export function keyOfText(text: string): string {
  if (text.length <= MAX_KEY_CHARACTERS) return `s${text}`;
  return `d${sha256Base64url(Buffer.from(text, 'utf16le'))}`;
}

/** An id as a key, its type included. */
export function keyOfId(id: RpcId): string {
  return typeof id === 'number' ? `n${id}` : keyOfText(id);
}

export function isRpcId(value: JsonValue | undefined): value is RpcId {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value));
}

/** Whether an object has keys that a reader without regard to case takes for one of `names`. */
export function hasTwins(object: JsonValue | undefined, names: ReadonlySet<string>): boolean {
  if (!isJsonObject(object)) return false;
  return Object.keys(object).some((key) => !names.has(key) && names.has(fold(key)));
}

/** A message on the wire, without what ends its line. */
export function writeMessage(message: object): Uint8Array {
  return encodeUtf8(JSON.stringify({ jsonrpc: '2.0', ...message }));
}

export function errorMessage(
  id: RpcId | null,
  code: number,
  message: string,
  data?: Readonly<Record<string, unknown>>,
): Uint8Array {
  return writeMessage({ id, error: { code, message, ...(data === undefined ? {} : { data }) } });
}

const MEMBERS: ReadonlySet<string> = new Set(['jsonrpc', 'id', 'method', 'params', 'result', 'error']);

/** As Go's reader folds: `ſ` is an s, and the Kelvin sign a k. */
function fold(key: string): string {
  return key.normalize('NFKC').toLowerCase();
}

function toFrame(read: Read): RpcFrame {
  const { value } = read;
  const ambiguity = read.ambiguity ?? (hasTwins(value, MEMBERS) ? 'members that differ in case' : undefined);
  const found = { ...read, ambiguity };
  const id = memberOf(value, 'id');
  const method = memberOf(value, 'method');
  const isAnswer = Object.hasOwn(value, 'result') || Object.hasOwn(value, 'error');
  const known = isRpcId(id) ? id : null;
  // A method beside an answer is both, to one reader or another.
  if (typeof method === 'string' && !isAnswer) {
    if (!Object.hasOwn(value, 'id')) return { ...found, kind: 'notification', method };
    if (isRpcId(id)) return { ...found, kind: 'request', id, method };
  }
  if (!Object.hasOwn(value, 'method') && isAnswer && (isRpcId(id) || id === null || id === undefined))
    return { ...found, kind: 'response', id: known };
  return { ...found, kind: 'other', id: known };
}

interface Parsed extends Omit<Read, 'value'> {
  readonly value: JsonValue;
}

function parse(bytes: Uint8Array, isTrusted: boolean): Parsed | undefined {
  let text: string;
  try {
    text = DECODER.decode(bytes);
  } catch {
    const whole = LENIENT.decode(bytes);
    const value = tryParse(whole);
    if (value === undefined) return undefined;
    // Whether it has two readings besides.
    const { ambiguity = NO_UNICODE } = parse(encodeUtf8(whole), isTrusted) ?? {};
    return { value, ambiguity, inexact: undefined };
  }
  const value = tryParse(text);
  if (value === undefined) {
    const other = tryParse(LENIENT.decode(bytes));
    return other === undefined
      ? undefined
      : { value: other, ambiguity: 'BYTE_ORDER_MARK', inexact: undefined };
  }
  // What is written again as it was has neither duplicate keys nor numbers of another spelling, and takes a tenth of the time.
  if (isAsWritten(value, text)) return { value, ambiguity: undefined, inexact: undefined };
  if (isTrusted && bytes.length > MAX_SECOND_READING)
    return { value, ambiguity: NOT_LOOKED_AT, inexact: undefined };
  if (bytes.includes(0x0d)) return { value, ambiguity: 'a carriage return', inexact: undefined };
  const { issues } = ingestJson(bytes, { numbers: 'double' });
  const at = (issue: (typeof issues)[number] | undefined): string | undefined =>
    issue && `${issue.code} at byte ${issue.offset}`;
  const inexact = issues.filter(({ code }) => OF_NUMBERS.has(code) && code !== 'NUMBER_INEXACT');
  // What is nested too deep was not read to its end.
  const others = issues.filter(({ code }) => !OF_NUMBERS.has(code));
  return { value, ambiguity: at(others[0]), inexact: at(inexact[0]) };
}

function isAsWritten(value: JsonValue, text: string): boolean {
  try {
    return JSON.stringify(value) === text;
  } catch {
    return false;
  }
}

/** Whether brackets are nested deeper than {@link MAX_FRAME_DEPTH}: what they would take is known before they are read. */
function isTooDeep(bytes: Uint8Array): boolean {
  let depth = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === 0x22) isText = !isText;
    else if (isText) {
      if (byte === 0x5c) at += 1;
    } else if (byte === 0x7b || byte === 0x5b) {
      depth += 1;
      if (depth > MAX_FRAME_DEPTH) return true;
    } else if (byte === 0x7d || byte === 0x5d) depth -= 1;
  }
  return false;
}
