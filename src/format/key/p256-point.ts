/** P-256 points in SEC1 form (SEC 1 §2.3.3): whether one is a key, and from the compressed form to the other and back. */

import { convertP256Point } from '#platform';

import { P256_LENGTH } from './key-form.js';

const UNCOMPRESSED = 0x04;

export type P256KeyFault = 'wrong_length' | 'not_uncompressed' | 'not_on_curve';

/** Whether `bytes` are a P-256 public key: 65 bytes, uncompressed SEC1, coordinates reduced, on the curve. */
export function checkP256PublicKey(bytes: Uint8Array): 'ok' | P256KeyFault {
  if (bytes.length !== P256_LENGTH) return 'wrong_length';
  if (bytes[0] !== UNCOMPRESSED) return 'not_uncompressed';
  return convertP256Point(bytes, 'uncompressed') === undefined ? 'not_on_curve' : 'ok';
}

/** The 33 bytes of a compressed point as the 65 of an uncompressed one; `undefined` when they are no point. */
export function decompressP256(bytes: Uint8Array): Uint8Array | undefined {
  return bytes.length === 33 && (bytes[0] === 2 || bytes[0] === 3)
    ? convertP256Point(bytes, 'uncompressed')
    : undefined;
}

/** The 65 bytes of an uncompressed point as the 33 of a compressed one; `undefined` when they are no point. */
export function compressP256(bytes: Uint8Array): Uint8Array | undefined {
  return bytes.length === P256_LENGTH && bytes[0] === UNCOMPRESSED
    ? convertP256Point(bytes, 'compressed')
    : undefined;
}
