/** P-256 points in SEC1 form (SEC 1 §2.3.3): validation and compression. */

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

/** A compressed point (33 bytes) as an uncompressed one (65 bytes); `undefined` for other bytes. */
export function decompressP256(bytes: Uint8Array): Uint8Array | undefined {
  return bytes.length === 33 && (bytes[0] === 2 || bytes[0] === 3)
    ? convertP256Point(bytes, 'uncompressed')
    : undefined;
}

/** An uncompressed point (65 bytes) as a compressed one (33 bytes); `undefined` for other bytes. */
export function compressP256(bytes: Uint8Array): Uint8Array | undefined {
  return bytes.length === P256_LENGTH && bytes[0] === UNCOMPRESSED
    ? convertP256Point(bytes, 'compressed')
    : undefined;
}
