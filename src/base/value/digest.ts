/**
 * Digests, SPEC §2: `{"alg":"sha-256","b64":B}` in events, `sha-256:B` in text. Only canonical base64url is accepted, so two digests
 * are equal exactly if their texts are.
 *
 * Digests of foreign systems may name another algorithm. They are opaque and bounded: an `alg` of up to 32 lower-case letters,
 * digits and `-`, and up to 128 characters of canonical base64url.
 */

import { encodeBase64url, tryDecodeHex } from '../bytes/encoding.js';
import { sha256Base64url } from '../bytes/sha256.js';

/** A digest as in events. `b64` is base64url without padding. */
export interface Digest {
  readonly alg: string;
  readonly b64: string;
}

/** The algorithm of all ids. */
export const SHA256 = 'sha-256';
const SHA256_PREFIX = 'sha-256:';
const SHA256_BYTES = 32;
const SHA256_B64 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
const ALG = /^[a-z0-9][a-z0-9-]{0,31}$/;
/** The unused low bits of the last character must be 0: 4 of them after two characters, 2 after three. */
const CANONICAL_B64 = /^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]|[A-Za-z0-9_-][AQgw])?$/;
/** 96 bytes: longer than any hash in use, and short enough to show. */
const MAX_B64_LENGTH = 128;

/** Whether `value` is a digest of SPEC §2, of SHA-256 or of another algorithm. */
export function isDigest(value: unknown): value is Digest {
  if (typeof value !== 'object' || value === null) return false;
  if (Object.keys(value).length !== 2 || !Object.hasOwn(value, 'alg') || !Object.hasOwn(value, 'b64'))
    return false;
  const { alg, b64 } = value as Partial<Record<keyof Digest, unknown>>;
  return typeof alg === 'string' && typeof b64 === 'string' && isDigestContent(alg, b64);
}

/** Whether a text is the one spelling of 32 bytes in base64url. */
export function isSha256Text(b64: string): boolean {
  return SHA256_B64.test(b64);
}

/** The SHA-256 digest of a base64url text. @throws RangeError unless `b64` is 43 characters of canonical base64url. */
export function digestFromBase64url(b64: string): Digest {
  if (!isSha256Text(b64)) throw new RangeError('expected 43 characters of canonical base64url');
  return { alg: SHA256, b64 };
}

/** The SHA-256 digest of `bytes`. */
export function sha256Digest(bytes: Uint8Array): Digest {
  return { alg: SHA256, b64: sha256Base64url(bytes) };
}

/** The text `sha-256:B` of a SHA-256 digest's base64url, the form of ids in findings and reports. */
export function toDigestText(b64: string): string {
  return `${SHA256_PREFIX}${b64}`;
}

/** The base64url of a SHA-256 digest's text; text without `sha-256:` is returned unchanged. */
export function fromDigestText(text: string): string {
  return text.startsWith(SHA256_PREFIX) ? text.slice(SHA256_PREFIX.length) : text;
}

/** A SHA-256 digest's text cut to `characters` of its base64url, for people. */
export function shortenDigestText(text: string, characters: number): string {
  return text.slice(0, SHA256_PREFIX.length + characters);
}

/** A digest as text: `alg:b64`, so `sha-256:B`. */
export function formatDigest(digest: Digest): string {
  return `${digest.alg}:${digest.b64}`;
}

/**
 * Reads a digest from text: `sha-256:B`, 64 hexadecimal characters with or without `sha-256:`, or `alg:b64` of another algorithm.
 * @throws RangeError for other text.
 */
export function parseDigest(text: string): Digest {
  const digest = tryParseDigest(text);
  if (digest === undefined)
    throw new RangeError(
      'expected a digest as sha-256:<43 characters of base64url> or 64 hexadecimal characters',
    );
  return digest;
}

/** {@link parseDigest}, but `undefined` for other text. */
export function tryParseDigest(text: string): Digest | undefined {
  const colon = text.indexOf(':');
  const alg = colon < 0 ? SHA256 : text.slice(0, colon);
  const rest = text.slice(colon + 1);
  if (alg === SHA256 && rest.length === 2 * SHA256_BYTES) {
    const bytes = tryDecodeHex(rest);
    return bytes && { alg, b64: encodeBase64url(bytes) };
  }
  return colon >= 0 && isDigestContent(alg, rest) ? { alg, b64: rest } : undefined;
}

function isDigestContent(alg: string, b64: string): boolean {
  if (alg === SHA256) return isSha256Text(b64);
  return ALG.test(alg) && b64.length > 0 && b64.length <= MAX_B64_LENGTH && CANONICAL_B64.test(b64);
}
