/** JSON Web Tokens with HS256 (RFC 7515, RFC 7518 §3.2), and no other algorithm: what a token says of its own algorithm chooses nothing. */

import { createHmac, timingSafeEqual } from 'node:crypto';
import { tryDecodeBase64url } from '../../../base/bytes/encoding.js';
import { decodeSourceJson, SourceObject } from '../../../base/json/source-json.js';
import { numberAt, textAt, valueAt } from '../../shared/values.js';

export interface JwtExpectation {
  /** In seconds since 1970. */
  readonly now: number;
  /** What `aud` must name; without it a token that names any is refused. */
  readonly audience?: string | undefined;
}

const MAX_TOKEN_LENGTH = 8_192;
/** How far a clock of who made a token may be ahead, in seconds. */
const AHEAD_SECONDS = 60;
const FORM = /^([\w-]{1,512})\.([\w-]{1,7168})\.([\w-]{43})$/;
const HEADER = Buffer.from('{"alg":"HS256"}').toString('base64url');

/** Makes a token. The claims are plain JSON. */
export function signJwt(claims: object, secret: string): string {
  const input = `${HEADER}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`;
  return `${input}.${macOf(input, secret).toString('base64url')}`;
}

/**
 * The claims of a token; undefined of one that is not by this secret, is over or not yet valid, has no end, or is for others.
 */
export function verifyJwt(
  token: string,
  secret: string,
  { now, audience }: JwtExpectation,
): SourceObject | undefined {
  if (token.length > MAX_TOKEN_LENGTH) return undefined;
  const [, header = '', payload = '', stated = ''] = FORM.exec(token) ?? [];
  if (header === '') return undefined;
  const mac = tryDecodeBase64url(stated);
  const expected = macOf(`${header}.${payload}`, secret);
  if (mac?.length !== expected.length || !timingSafeEqual(mac, expected)) return undefined;
  const head = readPart(header);
  if (textAt(head, 'alg') !== 'HS256' || head?.has('crit') === true) return undefined;
  const claims = readPart(payload);
  if (claims === undefined) return undefined;
  const time = (name: string): number | undefined => {
    const text = numberAt(claims, name);
    return text === undefined ? undefined : Number(text);
  };
  const [exp, nbf = 0, iat = 0] = [time('exp'), time('nbf'), time('iat')];
  if (exp === undefined || !(now < exp)) return undefined;
  if (!(nbf <= now + AHEAD_SECONDS && iat <= now + AHEAD_SECONDS)) return undefined;
  return isFor(claims, audience) ? claims : undefined;
}

function isFor(claims: SourceObject, audience: string | undefined): boolean {
  const stated = valueAt(claims, 'aud');
  if (stated === undefined) return audience === undefined;
  if (audience === undefined) return false;
  return stated === audience || (Array.isArray(stated) && stated.includes(audience));
}

function macOf(input: string, secret: string): Buffer {
  return createHmac('sha256', secret).update(input).digest();
}

function readPart(part: string): SourceObject | undefined {
  const bytes = tryDecodeBase64url(part);
  const decoded = bytes === undefined ? undefined : decodeSourceJson(bytes);
  return decoded?.ok === true && decoded.value instanceof SourceObject ? decoded.value : undefined;
}
