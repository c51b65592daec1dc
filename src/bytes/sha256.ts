/** SHA-256 (FIPS 180-4) of bytes, in the encodings that the hot path wants: `crypto.hash` with text output is the fastest in Node. */

import { hash } from 'node:crypto';

/** The 32 bytes of SHA-256(`bytes`). */
export function sha256(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(Buffer.from(hash('sha256', bytes, 'base64url'), 'base64url'));
}

/** SHA-256(`bytes`) as 43 characters of base64url, the form that digests have in events (SPEC §2). */
export function sha256Base64url(bytes: Uint8Array): string {
  return hash('sha256', bytes, 'base64url');
}
