/** Request keys (SPEC §8 rule 18) of calls: by the host's own id, or by their order where it has none. */

import { sha256Base64url } from '../base/bytes/sha256.js';
import { canonicalBytes } from '../base/json/canonicalize.js';
import type { Digest } from '../base/value/digest.js';

/** Without what separates parts, and with room for the number of a further try. */
const PLAIN = /^[A-Za-z0-9._+=@-]{1,120}$/;
const MAX_PLAIN = 120;
/** What keys that this file makes begin with. */
const MADE: readonly string[] = ['ref', 'nth'];
const IN_ORDER = /^nth:[A-Za-z0-9_-]{43}\/[1-9]\d{0,6}$/;

/** How often a call can be asked for again after it was released. */
export const MAX_TRIES = 16;

/** The most calls without an id that are the same. */
export const MAX_ORDER = 1_000_000;

/**
 * The key of a call by its id: `SESSION:ID`, or `ID` without a session. What no key may have, or what could be another's, is digested.
 */
export function keyOfCall(session: string | undefined, ref: string): string {
  const isPlain = PLAIN.test(ref);
  if (isPlain && session === undefined) return ref;
  const isWhole = isPlain && session !== undefined && PLAIN.test(session) && !MADE.includes(session);
  if (isWhole && session.length + ref.length < MAX_PLAIN) return `${session}:${ref}`;
  return `ref:${sha256Base64url(canonicalBytes([session ?? null, ref]))}`;
}

/** The id of a call of a session by its key, whichever try it is; undefined for another's key, and for one that is digested. */
export function refOfKey(session: string, key: string): string | undefined {
  if (!key.startsWith(`${session}:`)) return undefined;
  const ref = key.slice(session.length + 1).replace(/\/\d{1,2}$/, '');
  return keyOfCall(session, ref) === key.replace(/\/\d{1,2}$/, '') ? ref : undefined;
}

/** The key of a further try, after the ones before were released. */
export function keyOfTry(key: string, count: number): string {
  return count === 1 ? key : `${key}/${count}`;
}

/** The key of the try after this one; undefined after the last, and for calls that are told by their order. */
export function nextTryOf(key: string): string | undefined {
  if (IN_ORDER.test(key)) return undefined;
  const [, first = key, count = '1'] = /^(.*)\/(\d{1,2})$/.exec(key) ?? [];
  return Number(count) < MAX_TRIES ? keyOfTry(first, Number(count) + 1) : undefined;
}

/** The key of a call to settle: one that has no id is named by the key that it was given. */
export function keyOfRef(session: string | undefined, ref: string): string {
  return IN_ORDER.test(ref) ? ref : keyOfCall(session, ref);
}

/** The key of a call by its order, from 1 on, among the same ones of a session. */
export function keyOfOrder(
  {
    session,
    tool,
    digest,
  }: { readonly session: string | undefined; readonly tool: string; readonly digest: Digest },
  order: number,
): string {
  return `nth:${sha256Base64url(canonicalBytes([session ?? null, tool, digest.b64]))}/${order}`;
}
