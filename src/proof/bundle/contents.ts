/**
 * Contents by their digests: what a ledger names and does not hold. A content fits a digest when its bytes have it, or, of JSON, when
 * its canonical form has; what hides a guessable value is such JSON, `{"salt","value"}` (SPEC §3.5).
 */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import { ingestJson } from '../../base/json/ingest.js';
import { jsonPointer } from '../../base/json/pointer.js';
import type { JsonValue } from '../../base/json/value.js';
import { isDigest, toDigestText } from '../../base/value/digest.js';

/** A digest in an event, and where. */
export interface NamedDigest {
  /** `sha-256:…` */
  readonly digest: string;
  /** RFC 6901, from the event's root. */
  readonly pointer: string;
}

/** So many of the records that name a content are listed; all are counted. */
export const MAX_NAMED_BY = 100;
/** Characters of the pointers that are listed of all contents of a bundle: one pointer may be as long as a line. */
export const MAX_NAMED_CHARACTERS = 1_048_576;

/** The SHA-256 digests in an event, wherever they stand. */
export function listDigests(value: JsonValue, path: readonly (string | number)[] = []): NamedDigest[] {
  if (typeof value !== 'object' || value === null) return [];
  if (isDigest(value)) {
    return value.alg === 'sha-256' ? [{ digest: toDigestText(value.b64), pointer: jsonPointer(path) }] : [];
  }
  return Object.entries(value).flatMap(([name, member]) => listDigests(member, [...path, name]));
}

/** A content in one of the forms that a digest can be of. */
export interface ContentForm {
  /** `sha-256:…` */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

/** The forms of a content: its bytes as they are and, of JSON, its canonical form where that is another one. */
export function formsOfContent(bytes: Uint8Array): ContentForm[] {
  const forms = [{ digest: digestOf(bytes), bytes }];
  const { value } = ingestJson(bytes);
  if (value === undefined) return forms;
  const canonical = canonicalBytes(value);
  const digest = digestOf(canonical);
  return digest === forms[0]?.digest ? forms : [...forms, { digest, bytes: canonical }];
}

/** The largest content, in bytes, of which it is asked whether it is salted: none that large is guessed. */
export const MAX_SALTED_BYTES = 1_048_576;

/** Whether a content is `{"salt","value"}`, so that its digest does not give the value away. */
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
