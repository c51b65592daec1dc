/**
 * ML-DSA-44 (FIPS 204) as keys of notes have it (SPEC §6, §7): pure, with an empty context. A private key is kept as its
 * seed of 32 bytes, from which everything else follows; RFC 9881 recommends that form too.
 */

import { ml_dsa44 } from '@noble/post-quantum/ml-dsa.js';

export const ML_DSA_44_LENGTH = 1312;
export const ML_DSA_44_SIGNATURE_LENGTH = 2420;
export const ML_DSA_44_EXPANDED_LENGTH = 2560;

/** A seed written out: what signing takes, and the public half. About 1.5 ms. */
export function expandMlDsa44(seed: Uint8Array): {
  readonly secretKey: Uint8Array;
  readonly publicKey: Uint8Array;
} {
  return ml_dsa44.keygen(seed);
}

/**
 * Signs in the hedged way that FIPS 204 has as its default: fresh randomness goes in beside the key, so that neither a fault nor
 * what power and time give away shows the key, and a broken generator alone does no harm. So no two signatures of a message are alike.
 *
 * @param secretKey - Of {@link expandMlDsa44}.
 */
export function signMlDsa44(message: Uint8Array, secretKey: Uint8Array): Uint8Array {
  return ml_dsa44.sign(message, secretKey);
}

/** Whether `signature`, of whatever length, is one of `message`. About 2 ms. */
export function verifyMlDsa44(signature: Uint8Array, message: Uint8Array, publicKey: Uint8Array): boolean {
  return (
    signature.length === ML_DSA_44_SIGNATURE_LENGTH &&
    publicKey.length === ML_DSA_44_LENGTH &&
    ml_dsa44.verify(signature, message, publicKey)
  );
}
