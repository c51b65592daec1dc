/** Which headers a proxy hands on (RFC 9110 §7.6.1), and what a request must have for its parts to mean one thing to all. */

import { printable } from '../../base/bytes/printable.js';

/** Names and values in turn, as node:http has them. */
export type RawHeaders = readonly string[];

/** Of one connection: never handed on. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

/** Of a request: made anew, or they would make another request of the one that was read. */
const REMADE: ReadonlySet<string> = new Set([
  ...['host', 'content-length', 'expect', 'accept-encoding'],
  ...['x-http-method', 'x-http-method-override', 'x-method-override'],
]);

/** Which must not be repeated: one reader may take the first, and another the last. */
const SINGLE: ReadonlySet<string> = new Set([
  ...['host', 'origin', 'content-type', 'content-length', 'content-encoding', 'transfer-encoding'],
  ...['authorization', 'x-api-key', 'api-key', 'idempotency-key', 'anthropic-version'],
  ...['mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id'],
]);

const LOOPBACK: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '[::1]']);
const HOST = /^(\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})(?::\d{1,5})?$/;
/** What a path must not have: other readers make another path of it. */
const AMBIGUOUS_PATH = /[\\#]|\/(?:\.|%2e){1,2}(?:[/?]|%2f|%5c|$)|%2f|%5c|%00/i;

function* pairsOf(raw: RawHeaders): Generator<readonly [name: string, value: string, lower: string]> {
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] as string;
    yield [name, raw[at + 1] as string, name.toLowerCase()];
  }
}

/** Without those of the connection, those that `Connection` names, and `without`, names in lower case. */
export function endToEnd(raw: RawHeaders, without: ReadonlySet<string>): string[] {
  const dropped = new Set(without);
  for (const [, value, lower] of pairsOf(raw))
    if (lower === 'connection') for (const name of value.split(',')) dropped.add(name.trim().toLowerCase());
  const kept: string[] = [];
  for (const [name, value, lower] of pairsOf(raw))
    if (!HOP_BY_HOP.has(lower) && !dropped.has(lower)) kept.push(name, value);
  return kept;
}

/** The reason of a status, without what node:http reads and refuses to write. */
export function reasonOf(text: string | undefined): string {
  return (text ?? '').replace(/[^\t\x20-\x7e\x80-\xff]/g, '');
}

/** The headers of a request as its upstream gets them, but for `Host` and those of the body. */
export function requestHeaders(
  raw: RawHeaders,
  set: Readonly<Record<string, string>> = {},
  remove: readonly string[] = [],
): string[] {
  const lower = (names: readonly string[]): string[] => names.map((name) => name.toLowerCase());
  const without = new Set([...REMADE, ...lower(remove), ...lower(Object.keys(set))]);
  return [...endToEnd(raw, without), ...Object.entries(set).flat()];
}

/** Why a request cannot be handed on, in words; undefined for one that can. */
export function findRequestFault(path: string, raw: RawHeaders): string | undefined {
  if (!path.startsWith('/')) return 'expected a path, found another target';
  const [name = ''] = path.split('?');
  if (AMBIGUOUS_PATH.test(name) || path.includes('#')) return 'the path can be read in more than one way';
  const seen = new Set<string>();
  for (const [, value, lower] of pairsOf(raw)) {
    if (lower === 'transfer-encoding' && value.trim().toLowerCase() !== 'chunked')
      return 'expected no transfer-encoding but chunked';
    if (SINGLE.has(lower) && seen.has(lower)) return `${printable(lower, 40)} is given more than once`;
    seen.add(lower);
  }
  if (seen.has('content-length') && seen.has('transfer-encoding'))
    return 'content-length and transfer-encoding exclude each other';
  return undefined;
}

/** Whether a `Host` names this machine's loopback, or one of `hosts`: a page of another name may lead its reader's browser here. */
export function isOwnHost(host: string | undefined, hosts: readonly string[]): boolean {
  const name = HOST.exec(host ?? '')?.[1]?.toLowerCase();
  return name !== undefined && (LOOPBACK.has(name) || hosts.some((own) => own.toLowerCase() === name));
}

/** Whether an address that is listened on is this machine's alone. */
export function isLoopback(host = '127.0.0.1'): boolean {
  return LOOPBACK.has(host.toLowerCase()) || host === '::1' || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(host);
}
