/** JSON Web Keys (RFC 7517): OKP with Ed25519 (RFC 8037) and EC with P-256 (RFC 7518 §6.2). */

import { encodeBase64url, tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { ingestJson } from '../../base/json/ingest.js';
import {
  curveOf,
  keyError,
  malformed,
  type RawPrivateKey,
  type RawPublicKey,
  SECRET_LENGTH,
} from './key-form.js';

const FORM = 'a JWK';
const COORDINATE_LENGTH = 32;
const SIGNING_ALGS = { ed25519: ['EdDSA', 'Ed25519'], p256: ['ES256'] } as const;

type Members = Readonly<Record<string, unknown>>;

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`, `KEY_IS_PRIVATE` */
export function readPublicJwk(text: string): RawPublicKey {
  const members = parseMembers(text);
  if (members['d'] !== undefined)
    throw keyError(
      'KEY_IS_PRIVATE',
      'expected a public JWK, found a private one',
      'leave out its member "d"',
    );
  return readPublicMembers(members);
}

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`, `KEY_IS_PUBLIC` */
export function readPrivateJwk(text: string): RawPrivateKey {
  const members = parseMembers(text);
  const { alg, bytes } = readPublicMembers(members);
  if (members['d'] === undefined)
    throw keyError(
      'KEY_IS_PUBLIC',
      'expected a private JWK, found a public one',
      'a private JWK has a member "d"',
    );
  return { alg, secret: readMember(members, 'd', SECRET_LENGTH), claimedPublic: bytes };
}

/**
 * The required members in the order of RFC 7638 §3: also the text that the thumbprint hashes.
 *
 * @throws NorthrootError `KEY_UNSUPPORTED` for ml-dsa-44
 */
export function formatPublicJwk(key: RawPublicKey): string {
  return JSON.stringify(publicMembers(key));
}

export function formatPrivateJwk(publicKey: RawPublicKey, secret: Uint8Array): string {
  return JSON.stringify({ ...publicMembers(publicKey), d: encodeBase64url(secret) });
}

function publicMembers({ alg, bytes }: RawPublicKey): Record<string, string> {
  if (curveOf(alg, 'a JWK') === 'ed25519') return { crv: 'Ed25519', kty: 'OKP', x: encodeBase64url(bytes) };
  const x = encodeBase64url(bytes.subarray(1, 1 + COORDINATE_LENGTH));
  const y = encodeBase64url(bytes.subarray(1 + COORDINATE_LENGTH));
  return { crv: 'P-256', kty: 'EC', x, y };
}

function parseMembers(text: string): Members {
  // Readers differ on duplicate members, so these are refused. No message quotes the text, which may hold a private key.
  const { value, issues } = ingestJson(encodeUtf8(text), { numbers: 'double' });
  if (issues.some(({ code }) => code === 'DUPLICATE_KEYS'))
    throw malformed('each member of a JWK once', 'one of them twice');
  if (value === undefined) throw malformed(FORM, 'text that is not JSON');
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(FORM, 'no JSON object');
  if (Array.isArray((value as Members)['keys']))
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected one JWK, found a set of them',
      'take one member of its "keys"',
    );
  return value;
}

function readPublicMembers(members: Members): RawPublicKey {
  const alg = readAlgorithm(members);
  const x = readMember(members, 'x', COORDINATE_LENGTH);
  if (alg === 'ed25519') return { alg, bytes: x };
  return { alg, bytes: Uint8Array.of(0x04, ...x, ...readMember(members, 'y', COORDINATE_LENGTH)) };
}

function readAlgorithm(members: Members): 'ed25519' | 'p256' {
  const { kty, crv, use, alg } = members;
  if (typeof kty !== 'string') throw malformed('a JWK with the member "kty"', 'none');
  const known =
    kty === 'OKP' && crv === 'Ed25519' ? 'ed25519' : kty === 'EC' && crv === 'P-256' ? 'p256' : undefined;
  if (known === undefined)
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected a JWK of kty OKP, crv Ed25519 or kty EC, crv P-256, found another',
    );
  // A key for another purpose MUST NOT be used (RFC 7517 §4.2, §4.4).
  const names: readonly unknown[] = SIGNING_ALGS[known];
  if ((use !== undefined && use !== 'sig') || (alg !== undefined && !names.includes(alg)))
    throw keyError(
      'KEY_UNSUPPORTED',
      `expected a JWK for signing with ${names.join(' or ')}, found another "use" or "alg"`,
    );
  return known;
}

function readMember(members: Members, name: string, length: number): Uint8Array {
  const value = members[name];
  const bytes = typeof value === 'string' ? tryDecodeBase64url(value) : undefined;
  if (bytes?.length === length) return bytes;
  const isPadded = typeof value === 'string' && /^[A-Za-z0-9+/_-]+={1,2}$|[+/]/.test(value);
  throw malformed(
    `${length} bytes of base64url in the JWK's member "${name}"`,
    'other',
    isPadded ? 'base64url has "-" and "_" for "+" and "/", and no "=" at its end (RFC 7515 §2)' : undefined,
  );
}
