/**
 * What all forms of a key (PEM, OpenSSH, JWK, …) share: the raw material that reading one gives, the bound on what is
 * read, and the errors. A form's file turns text into raw material and back; `public-key.ts` and `private-key.ts` decide
 * whether that material is a key.
 */

import { NorthrootError } from '../../base/error.js';

/** Ed25519 (RFC 8032); ECDSA on P-256 with SHA-256 (ES256); or ML-DSA-44 (FIPS 204), which signs notes and never records. */
export type KeyAlgorithm = CurveAlgorithm | 'ml-dsa-44';

/** The algorithms that every form of keys has. */
export type CurveAlgorithm = 'ed25519' | 'p256';

/** The bytes of a public key: 32 (RFC 8032) for ed25519, 65 (SEC1, uncompressed) for p256, 1312 for ml-dsa-44. */
export interface RawPublicKey {
  readonly alg: KeyAlgorithm;
  readonly bytes: Uint8Array;
}

/** The 32 bytes of a seed (ed25519, ml-dsa-44) or scalar, big-endian (p256), with the public half that came along, if one did. */
export interface RawPrivateKey {
  readonly alg: KeyAlgorithm;
  readonly secret: Uint8Array;
  readonly claimedPublic?: Uint8Array;
}

export type KeyErrorCode =
  'KEY_MALFORMED' | 'KEY_ENCRYPTED' | 'KEY_UNSUPPORTED' | 'KEY_IS_PUBLIC' | 'KEY_IS_PRIVATE';

/** Above this a file is no key: the largest key read here, in the wordiest form, has less than four thousand bytes. */
export const MAX_KEY_BYTES = 65_536;

export const SECRET_LENGTH = 32;
export const ED25519_LENGTH = 32;
export const P256_LENGTH = 65;

/** The error for a key that cannot be used. Its message never repeats the input, which may be a secret. */
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

/**
 * The algorithm of a key in a form that knows nothing but curves.
 *
 * @throws NorthrootError `KEY_UNSUPPORTED`
 */
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
 * @throws TypeError when `input` is neither a string nor bytes
 * @throws NorthrootError `KEY_MALFORMED` above {@link MAX_KEY_BYTES}, for bytes that are not UTF-8, and for nothing
 */
export function readKeyText(input: string | Uint8Array): string {
  if (typeof input !== 'string' && !(input instanceof Uint8Array)) {
    throw new TypeError('expected a key as a string or Uint8Array');
  }
  if (input.length > MAX_KEY_BYTES) {
    throw malformed(`a key of at most ${MAX_KEY_BYTES} bytes`, `${input.length}`);
  }
  if (typeof input !== 'string' && isDer(input)) {
    throw keyError(
      'KEY_MALFORMED',
      'expected a key as text, found DER',
      'write it as PEM: openssl pkey -inform DER -in FILE -out COPY, with -pubin -pubout for a public key',
    );
  }
  let text: string;
  try {
    text =
      typeof input === 'string'
        ? input
        : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(input);
  } catch (cause) {
    throw keyError(
      'KEY_MALFORMED',
      'expected a key as text, found bytes that are not UTF-8',
      undefined,
      cause,
    );
  }
  // Not String.trim(), which also takes away characters that no form allows.
  let start = 0;
  let end = text.length;
  while (start < end && isAsciiSpace(text.charCodeAt(start))) start++;
  while (end > start && isAsciiSpace(text.charCodeAt(end - 1))) end--;
  if (start === end) throw malformed('a key', 'nothing');
  return text.slice(start, end);
}

/** Whether these bytes are one DER SEQUENCE, as keys in DER are: what is text has no control characters. */
function isDer(bytes: Uint8Array): boolean {
  if (
    bytes[0] !== 0x30 ||
    bytes.every((byte) => byte >= 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)
  )
    return false;
  const [, first = 0, second = 0, third = 0] = bytes;
  if (first < 0x80) return bytes.length === 2 + first;
  if (first === 0x81) return bytes.length === 3 + second;
  return first === 0x82 && bytes.length === 4 + second * 256 + third;
}

function isAsciiSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
