/**
 * What all forms of keys (PEM, OpenSSH, JWK, …) share: raw keys, the size limit, and the errors. The file of a form converts between
 * text and raw keys; `public-key.ts` and `private-key.ts` decide whether a raw key is valid.
 */

import { NorthrootError } from '../../base/error.js';

/** Ed25519 (RFC 8032); ECDSA on P-256 with SHA-256 (ES256); or ML-DSA-44 (FIPS 204), which signs notes and never records. */
export type KeyAlgorithm = CurveAlgorithm | 'ml-dsa-44';

export type CurveAlgorithm = 'ed25519' | 'p256';

/** The bytes of a public key: 32 (RFC 8032) for ed25519, 65 (SEC1, uncompressed) for p256, 1312 for ml-dsa-44. */
export interface RawPublicKey {
  readonly alg: KeyAlgorithm;
  readonly bytes: Uint8Array;
}

/** The 32 bytes of a seed (ed25519, ml-dsa-44) or scalar, big-endian (p256), and the public key beside it, if any. */
export interface RawPrivateKey {
  readonly alg: KeyAlgorithm;
  readonly secret: Uint8Array;
  readonly claimedPublic?: Uint8Array;
}

type KeyErrorCode =
  | 'KEY_MALFORMED'
  | 'KEY_ENCRYPTED'
  | 'KEY_UNSUPPORTED'
  | 'KEY_IS_PUBLIC'
  | 'KEY_IS_PRIVATE';

/** The largest supported key, in its longest form, has less than four thousand bytes. */
export const MAX_KEY_BYTES = 65_536;

export const SECRET_LENGTH = 32;
export const ED25519_LENGTH = 32;
export const P256_LENGTH = 65;

/** The error for an unusable key. The message MUST NOT repeat the input, which may be a secret. */
export function keyError(
  code: KeyErrorCode,
  message: string,
  hint?: string,
  cause?: unknown,
): NorthrootError {
  return new NorthrootError(code, message, { ...(hint !== undefined && { hint }), cause });
}

export function malformed(form: string, found: string, hint?: string): NorthrootError {
  return keyError('KEY_MALFORMED', `expected ${form}, found ${found}`, hint);
}

/** The algorithm of a key in a form for curves only. @throws NorthrootError `KEY_UNSUPPORTED` */
export function curveOf(alg: KeyAlgorithm, form: string): CurveAlgorithm {
  if (alg !== 'ml-dsa-44') return alg;
  throw keyError(
    'KEY_UNSUPPORTED',
    `expected a key of Ed25519 or P-256 for ${form}, found ml-dsa-44`,
    'PEM, vkey and ml-dsa-44:… text hold it',
  );
}

/**
 * The text of a key file, without the ASCII white space around it.
 *
 * @throws TypeError if `input` is neither a string nor bytes
 * @throws NorthrootError `KEY_MALFORMED` above {@link MAX_KEY_BYTES}, for DER, for invalid UTF-8, and for white space only
 */
export function readKeyText(input: string | Uint8Array): string {
  if (typeof input !== 'string' && !(input instanceof Uint8Array))
    throw new TypeError('expected a key as a string or Uint8Array');
  if (input.length > MAX_KEY_BYTES)
    throw malformed(`a key of at most ${MAX_KEY_BYTES} bytes`, `${input.length}`);
  if (typeof input !== 'string' && isDer(input))
    throw keyError(
      'KEY_MALFORMED',
      'expected a key as text, found DER',
      'write it as PEM: openssl pkey -inform DER -in FILE -out COPY, with -pubin -pubout for a public key',
    );
  const text = typeof input === 'string' ? input : decodeText(input);
  // Not String.trim(), which also removes characters that no form allows.
  let start = 0;
  let end = text.length;
  while (start < end && isAsciiSpace(text.charCodeAt(start))) start++;
  while (end > start && isAsciiSpace(text.charCodeAt(end - 1))) end--;
  if (start === end) throw malformed('a key', 'nothing');
  return text.slice(start, end);
}

function decodeText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    const message = 'expected a key as text, found bytes that are not UTF-8';
    throw keyError('KEY_MALFORMED', message, undefined, cause);
  }
}

/** Whether the bytes are one DER SEQUENCE; text has no control characters. */
function isDer(bytes: Uint8Array): boolean {
  if (bytes[0] !== 0x30 || bytes.every((byte) => byte > 0x20 || isAsciiSpace(byte))) return false;
  const [, first = 0, second = 0, third = 0] = bytes;
  if (first < 0x80) return bytes.length === 2 + first;
  if (first === 0x81) return bytes.length === 3 + second;
  return first === 0x82 && bytes.length === 4 + second * 256 + third;
}

function isAsciiSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
