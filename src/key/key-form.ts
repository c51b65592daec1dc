/**
 * What all forms of a key (PEM, OpenSSH, JWK, …) share: the raw material that reading one gives, the bound on what is
 * read, and the errors. A form's file turns text into raw material and back; `public-key.ts` and `private-key.ts` decide
 * whether that material is a key.
 */

import { NorthrootError } from '../error.js';

/** Ed25519 (RFC 8032), or ECDSA on P-256 with SHA-256 (ES256). */
export type KeyAlgorithm = 'ed25519' | 'p256';

/** The bytes of a public key: 32 (RFC 8032) for ed25519, 65 (SEC1, uncompressed) for p256. */
export interface RawPublicKey {
  readonly alg: KeyAlgorithm;
  readonly bytes: Uint8Array;
}

/** The 32 bytes of a seed (ed25519) or scalar, big-endian (p256), with the public half that came along, if one did. */
export interface RawPrivateKey {
  readonly alg: KeyAlgorithm;
  readonly secret: Uint8Array;
  readonly claimedPublic?: Uint8Array;
}

export type KeyErrorCode =
  'KEY_MALFORMED' | 'KEY_ENCRYPTED' | 'KEY_UNSUPPORTED' | 'KEY_IS_PUBLIC' | 'KEY_IS_PRIVATE';

/** Above this a file is no key: the largest key read here, in the wordiest form, has a few hundred bytes. */
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

export function malformed(form: string, found: string): NorthrootError {
  return keyError('KEY_MALFORMED', `expected ${form}, found ${found}`);
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

function isAsciiSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
