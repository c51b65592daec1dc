/**
 * ML-DSA-44 (FIPS 204) for keys of notes (SPEC §6, §7): pure, with an empty context. A private key is its seed of 32 bytes, as RFC 9881
 * recommends.
 */

import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';

export const ML_DSA_44_LENGTH = 1312;
export const ML_DSA_44_SIGNATURE_LENGTH = 2420;
export const ML_DSA_44_EXPANDED_LENGTH = 2560;

/** The signing key and the public key of a seed. About 1.5 ms. */
export function expandMlDsa44(seed: Uint8Array): {
  readonly secretKey: Uint8Array;
  readonly publicKey: Uint8Array;
} {
  return ml_dsa44.keygen(seed);
}

/**
 * Signs in the hedged mode, FIPS 204's default: fresh randomness protects the key against faults and side channels, and a broken
 * generator alone does no harm. Two signatures of one message differ.
 *
 * @param secretKey - Of {@link expandMlDsa44}.
 */
export function signMlDsa44(message: Uint8Array, secretKey: Uint8Array): Uint8Array {
  return ml_dsa44.sign(message, secretKey);
}

/** Whether `signature`, of any length, is valid. About 2 ms. */
export function verifyMlDsa44(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  return (
    signature.length === ML_DSA_44_SIGNATURE_LENGTH &&
    publicKey.length === ML_DSA_44_LENGTH &&
    ml_dsa44.verify(signature, message, publicKey)
  );
}
