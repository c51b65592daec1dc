/**
 * Clasper's tokens: JSON Web Tokens signed with a secret that only the host has (HS256). Whoever can verify one could make one, so
 * nobody offline verifies them; what they claim is read, and of the token itself no more than its SHA-256 is kept.
 */

import { encodeHex, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { sha256, sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { decodeSourceJson, SourceObject } from '../../base/json/source-json.js';
import { numberAt, textAt, timeOf } from '../shared/values.js';

const MAX_TOKEN_LENGTH = 65_536;

/** What a token claims. None of it is verified. */
export interface TokenClaims {
  /** `sha256:` and hexadecimal digits, of the token's text. */
  readonly hash: string;
  /** Its own id, `jti`. */
  readonly id: string | undefined;
  readonly claims: SourceObject;
  /** Timestamps, in whole seconds. */
  readonly issuedAt: string | undefined;
  readonly expiresAt: string | undefined;
}

/** What a token claims; undefined where the text is none. */
export function readToken(text: string | undefined): TokenClaims | undefined {
  if (text === undefined || text.length > MAX_TOKEN_LENGTH) return undefined;
  const [, payload] = /^[\w-]+\.([\w-]+)\.[\w-]*$/.exec(text) ?? [];
  const bytes = tryDecodeBase64url(payload ?? '');
  if (payload === undefined || bytes === undefined) return undefined;
  const decoded = decodeSourceJson(bytes);
  if (!decoded.ok || !(decoded.value instanceof SourceObject)) return undefined;
  const claims = decoded.value;
  return {
    hash: tokenHash(text),
    id: textAt(claims, 'jti'),
    claims,
    issuedAt: timeOf(numberAt(claims, 'iat'), 's'),
    expiresAt: timeOf(numberAt(claims, 'exp'), 's'),
  };
}

/** What is kept of a token. */
export function tokenHash(text: string): string {
  return `sha256:${encodeHex(sha256(encodeUtf8(text)))}`;
}

/** The SHA-256 of a token's own id in base64url, for who keeps nothing else of it. */
export function tokenMark(id: string): string {
  return sha256Base64url(encodeUtf8(id));
}
