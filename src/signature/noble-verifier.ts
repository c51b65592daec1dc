/**
 * A second, independent backend in plain JavaScript: slow, for cross-checking the first. It uses the Point class of
 * @noble/ed25519 and not its `verify`, which is cofactored and so accepts signatures that SPEC §5 does not.
 */

import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';

import { equalBytes } from '../bytes/compare.js';
import { importVerificationKey, type Verifier } from './verifier.js';

/** Verifies Ed25519 with @noble/ed25519 and @noble/hashes; P-256 with node:crypto, as every backend does. */
export const nobleVerifier: Verifier = {
  name: 'noble',
  importKey: (publicKey) =>
    importVerificationKey(publicKey, (bytes) => {
      const minusA = Point.fromBytes(bytes).negate();
      return (message, signature) => {
        const r = signature.subarray(0, 32);
        const s = readLittleEndian(signature.subarray(32));
        const k =
          readLittleEndian(sha512.create().update(r).update(bytes).update(message).digest()) % GROUP_ORDER;
        // Neither scalar is secret; the unsafe multiplication also takes 0, as S and k may be.
        const expected = Point.BASE.multiplyUnsafe(s).add(minusA.multiplyUnsafe(k));
        return equalBytes(expected.toBytes(), r);
      };
    }),
};

const GROUP_ORDER = Point.CURVE().n;

function readLittleEndian(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}
