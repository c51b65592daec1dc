/** Signatures and digests as receipts spell them. */

import { encodeBase64url, tryDecodeBase64url, tryDecodeHex } from '../../base/bytes/encoding.js';
import type { Digest } from '../../base/value/digest.js';

const SIGNATURE_BYTES = 64;

/** The 64 bytes of a signature in base64url, with or without padding; undefined of any other text. */
export function signatureBytes(text: string): Uint8Array | undefined {
  const plain = text.replace(/={1,2}$/, '');
  if (plain.length !== 86) return undefined;
  const bytes = tryDecodeBase64url(plain);
  return bytes?.length === SIGNATURE_BYTES ? bytes : undefined;
}

/** The digest of `sha256:` and 64 lower-case hexadecimal digits, or of the digits alone; undefined of any other text. */
export function digestOfHex(text: string): Digest | undefined {
  const [, hex] = /^(?:sha256:)?([0-9a-f]{64})$/.exec(text) ?? [];
  const bytes = hex === undefined ? undefined : tryDecodeHex(hex);
  return bytes === undefined ? undefined : { alg: 'sha-256', b64: encodeBase64url(bytes) };
}
