/**
 * Rules of MCP over streamable HTTP for who reads the body and decides on it: what a request's headers say MUST be what its body says, as
 * a server or a router may act on either (MCP 2026-07-28, Streamable HTTP: Request Metadata, Server Validation). Without I/O. What may be
 * called is for `mcp-guard.ts`, and hosts and origins are for the server.
 */

import { encodeBase64, tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { printable } from '../../base/bytes/printable.js';
import { decodeUtf8, encodeUtf8 } from '../../base/bytes/text.js';
import { findInvalidUtf8 } from '../../base/json/utf8.js';
import { isJsonObject, type JsonObject, type JsonValue } from '../../base/json/value.js';

/** The first version whose requests say their version, without a handshake. */
export const MODERN_VERSION = '2026-07-28';

export const HEADER_MISMATCH = -32020;
export const UNSUPPORTED_VERSION = -32022;
const INVALID_REQUEST = -32600;

/** Where a request's body says its version. */
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

/** Why a request is refused: 400, with a JSON-RPC error. */
export interface HeaderFault {
  readonly code: number;
  readonly message: string;
  readonly data?: JsonObject;
}

/** What the headers of a request say: the era of its version, or what is wrong. */
export type HeaderVerdict = { readonly era: 'modern' | 'legacy' } | { readonly fault: HeaderFault };

/** Where a method's name is in its parameters, and whether `Mcp-Name` MUST say it. */
const NAME_SOURCES: ReadonlyMap<string, readonly [member: string, isRequired: boolean]> = new Map([
  ['tools/call', ['name', true]],
  ['prompts/get', ['name', true]],
  ['resources/read', ['uri', true]],
  ['tasks/get', ['taskId', false]],
  ['tasks/update', ['taskId', false]],
  ['tasks/cancel', ['taskId', false]],
]);

const ENCODED_START = '=?base64?';
const ENCODED_END = '?=';
/** What a header's value may have (RFC 9110 §5.5), but for bytes beyond ASCII. */
const PLAIN = /^[\t\x20-\x7e]*$/;
const PARAM_PREFIX = 'mcp-param-';
const JSON_TYPE = /^application\/json[\t ]*(?:;[\t ]*charset="?utf-8"?[\t ]*)?$/i;
/** Of which one value alone may be said: a reader might take either. */
const SINGLE: ReadonlySet<string> = new Set([
  'mcp-protocol-version',
  'mcp-method',
  'mcp-name',
  'mcp-session-id',
  'last-event-id',
  'authorization',
  'content-type',
  'content-encoding',
  'origin',
  'host',
]);

/** Reads the headers of a request, as node:http has them: names and values in turn. */
export function readHeaders(
  rawHeaders: readonly string[],
): { readonly headers: ReadonlyMap<string, string> } | { readonly fault: HeaderFault } {
  const headers = new Map<string, string>();
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const [name, value] = [rawHeaders[at]!.toLowerCase(), rawHeaders[at + 1]!];
    const isMirror = name.startsWith(PARAM_PREFIX);
    if (headers.has(name) && (isMirror || SINGLE.has(name)))
      return { fault: mismatch(`${shown(name)} is given twice`) };
    if (isMirror && decodeHeaderValue(value) === undefined)
      return { fault: mismatch(`${shown(name)} is not soundly encoded`) };
    headers.set(name, value);
  }
  return { headers };
}

/** Whether a body may be read as JSON in UTF-8 without another reading of it: its type says so, and it is not encoded further. */
export function isPlainJson(headers: ReadonlyMap<string, string>): boolean {
  const type = headers.get('content-type') ?? '';
  const encoding = headers.get('content-encoding') ?? 'identity';
  return JSON_TYPE.test(type) && encoding.toLowerCase() === 'identity';
}

/**
 * Decodes the value of `Mcp-Name` or `Mcp-Param-*`: `=?base64?…?=` is UTF-8 in base64, anything else is itself.
 * @returns undefined if it has characters that no value may have, or base64 or UTF-8 that is not sound
 */
export function decodeHeaderValue(value: string): string | undefined {
  if (!PLAIN.test(value)) return undefined;
  if (!value.startsWith(ENCODED_START) || !value.endsWith(ENCODED_END)) return value;
  const bytes = tryDecodeBase64(value.slice(ENCODED_START.length, -ENCODED_END.length));
  if (bytes === undefined || findInvalidUtf8(bytes, 0, bytes.length) >= 0) return undefined;
  return decodeUtf8(bytes);
}

/**
 * The headers that mirror arguments, for a call whose arguments were changed: each says what stands now where its value stood before. One
 * whose place is not to be told is left out.
 * @param before - The body as it was sent
 * @param after - The body to send
 */
export function mirrorAgain(
  rawHeaders: readonly string[],
  before: Uint8Array,
  after: Uint8Array,
): { readonly set: Readonly<Record<string, string>>; readonly remove: readonly string[] } {
  const argumentsOf = (body: Uint8Array): JsonObject =>
    objectOf(objectOf(JSON.parse(decodeUtf8(body)) as JsonObject, 'params'), 'arguments') ?? {};
  const [old, now] = [argumentsOf(before), argumentsOf(after)];
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (!name.startsWith(PARAM_PREFIX)) continue;
    const value = decodeHeaderValue(rawHeaders[at + 1]!);
    const values = new Set(placesOf(old, value).map((path) => textAt(now, path)));
    const [only] = values;
    if (values.size === 1 && only !== undefined) set[name] = encodeHeaderValue(only);
    else remove.push(name);
  }
  return { set, remove };
}

/** Where a value is, by members of objects alone: no others are mirrored. */
function placesOf(value: JsonValue, text: string | undefined, path: readonly string[] = []): string[][] {
  if (isJsonObject(value))
    return Object.entries(value).flatMap(([name, member]) => placesOf(member, text, [...path, name]));
  return text !== undefined && textOfPrimitive(value) === text ? [[...path]] : [];
}

function textAt(value: JsonValue, path: readonly string[]): string | undefined {
  let found: JsonValue | undefined = value;
  for (const name of path) found = isJsonObject(found) ? memberOf(found, name) : undefined;
  return found === undefined ? undefined : textOfPrimitive(found);
}

function textOfPrimitive(value: JsonValue): string | undefined {
  return typeof value === 'object' ? undefined : String(value);
}

function encodeHeaderValue(value: string): string {
  const isPlain =
    value !== '' && value.trim() === value && PLAIN.test(value) && decodeHeaderValue(value) === value;
  return isPlain ? value : `${ENCODED_START}${encodeBase64(encodeUtf8(value))}${ENCODED_END}`;
}

/**
 * Judges the headers of a POST with one JSON-RPC message.
 * @param message - The body
 * @param isLegacyAllowed - Whether versions before {@link MODERN_VERSION} are; their requests may say none
 */
export function judgeHeaders(
  headers: ReadonlyMap<string, string>,
  message: JsonObject,
  isLegacyAllowed: boolean,
): HeaderVerdict {
  const said = headers.get('mcp-protocol-version');
  const method = textOf(message, 'method');
  const params = objectOf(message, 'params');
  const meant = textOf(objectOf(params, '_meta'), VERSION_KEY);
  if (meant !== undefined && said === undefined) return wrong('MCP-Protocol-Version is missing');
  if (meant !== undefined && meant !== said)
    return wrong(`MCP-Protocol-Version is ${shown(said)}, and the body says ${shown(meant)}`);
  const isModern = said !== undefined && said >= MODERN_VERSION;
  if (!isModern && !isLegacyAllowed) return refuseLegacy(said, method, params);

  const saidMethod = headers.get('mcp-method');
  if (saidMethod !== undefined && saidMethod !== method)
    return wrong(`Mcp-Method is ${shown(saidMethod)}, and the body says ${shown(method)}`);
  const isRequest = method !== undefined && Object.hasOwn(message, 'id');
  if (isModern && method === undefined)
    return {
      fault: {
        code: INVALID_REQUEST,
        message: 'expected a request or a notification: this version has no responses',
      },
    };
  if (isModern && isRequest && saidMethod === undefined) return wrong('Mcp-Method is missing');

  const [member, isRequired] = NAME_SOURCES.get(method ?? '') ?? [];
  const name = member === undefined ? undefined : textOf(params, member);
  const saidName = headers.get('mcp-name');
  if (saidName === undefined)
    return isModern && isRequest && isRequired === true && name !== undefined
      ? wrong('Mcp-Name is missing')
      : { era: isModern ? 'modern' : 'legacy' };
  const decoded = decodeHeaderValue(saidName);
  if (decoded === undefined) return wrong('Mcp-Name is not soundly encoded');
  // Of a method without a name nobody reads it.
  if (member !== undefined && decoded !== name)
    return wrong(`Mcp-Name is ${shown(decoded)}, and the body says ${shown(name)}`);
  return { era: isModern ? 'modern' : 'legacy' };
}

function refuseLegacy(
  said: string | undefined,
  method: string | undefined,
  params: JsonObject | undefined,
): HeaderVerdict {
  const requested = said ?? (method === 'initialize' ? textOf(params, 'protocolVersion') : undefined);
  if (requested === undefined) return wrong('MCP-Protocol-Version is missing');
  const fault: HeaderFault = {
    code: UNSUPPORTED_VERSION,
    message: `unsupported protocol version: this proxy takes versions before ${MODERN_VERSION} only where it allows legacy ones`,
    data: { supported: [MODERN_VERSION], requested },
  };
  return { fault };
}

function wrong(why: string): HeaderVerdict {
  return { fault: mismatch(why) };
}

function mismatch(why: string): HeaderFault {
  return { code: HEADER_MISMATCH, message: `header mismatch: ${why}` };
}

function shown(value: string | undefined): string {
  return value === undefined ? 'absent' : printable(value, 80);
}

function objectOf(value: JsonObject | undefined, name: string): JsonObject | undefined {
  const member = memberOf(value, name);
  return isJsonObject(member) ? member : undefined;
}

function textOf(value: JsonObject | undefined, name: string): string | undefined {
  const member = memberOf(value, name);
  return typeof member === 'string' ? member : undefined;
}

function memberOf(value: JsonObject | undefined, name: string): JsonValue | undefined {
  return value !== undefined && Object.hasOwn(value, name) ? value[name] : undefined;
}
