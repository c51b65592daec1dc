/**
 * Contents that a ledger names by digest and does not hold. A content matches by its bytes or, if it is JSON, by its canonical form, which
 * includes the salted `{"salt","value"}` of SPEC §3.5.
 */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { jsonPointer } from '../../base/json/pointer.js';
import type { JsonValue } from '../../base/json/value.js';
import { isDigest, toDigestText } from '../../base/value/digest.js';

interface NamedDigest {
  /** `sha-256:…` */
  readonly digest: string;
  /** RFC 6901, from the event's root. */
  readonly pointer: string;
}

/** The most records listed as naming a content; all are counted. */
export const MAX_NAMED_BY = 100;
/** The most characters of listed pointers in a bundle: one pointer may be as long as a line. */
export const MAX_NAMED_CHARACTERS = 1_048_576;

/** All SHA-256 digests in an event. */
export function listDigests(value: JsonValue, path: readonly (string | number)[] = []): NamedDigest[] {
  if (typeof value !== 'object' || value === null) return [];
  if (isDigest(value))
    return value.alg === 'sha-256' ? [{ digest: toDigestText(value.b64), pointer: jsonPointer(path) }] : [];
  return Object.entries(value).flatMap(([name, member]) => listDigests(member, [...path, name]));
}

interface ContentForm {
  /** `sha-256:…` */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** The forms of a content: its bytes and, if it is JSON in another form, its canonical form. */
export function formsOfContent(bytes: Uint8Array): ContentForm[] {
  const forms = [{ digest: digestOf(bytes), bytes }];
  const { value } = ingestJson(bytes);
  if (value === undefined) return forms;
  const canonical = canonicalBytes(value);
  const digest = digestOf(canonical);
  return digest === forms[0]?.digest ? forms : [...forms, { digest, bytes: canonical }];
}

/** The largest content, in bytes, that is checked for a salt: larger values are not guessed. */
export const MAX_SALTED_BYTES = 1_048_576;

/** Whether a content is `{"salt","value"}`, whose digest does not reveal the value. */
export function isSalted(bytes: Uint8Array): boolean {
  if (bytes[0] !== OPENING || bytes.length > MAX_SALTED_BYTES) return false;
  const { value } = ingestJson(bytes);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { salt } = value;
  return Object.keys(value).sort().join() === 'salt,value' && typeof salt === 'string' && SALT.test(salt);
}

const OPENING = 0x7b;
const SALT = /^[A-Za-z0-9_-]{22,}$/;

/** `sha-256:…` of bytes. */
export function digestOf(bytes: Uint8Array): string {
  return toDigestText(sha256Base64url(bytes));
}
