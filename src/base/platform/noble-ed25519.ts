/**
 * The equation of Ed25519 in plain JavaScript, with the Point class of @noble/ed25519: its `verify` is cofactored and so accepts
 * signatures that SPEC §5 refuses.
 */

import { Point } from '@noble/ed25519';
import { sha512 } from '@noble/hashes/sha2.js';
import type { Equation } from './platform.js';

const GROUP_ORDER = Point.CURVE().n;
const R_LENGTH = 32;

/** [S]B = R + [k]A, as R' = [S]B − [k]A compared by its encoding. */
export function importNobleEd25519(publicKey: Uint8Array): Equation {
  const minusA = Point.fromBytes(publicKey).negate();
  return (message, signature) => {
    const s = readLittleEndian(signature.subarray(R_LENGTH));
    const hash = sha512.create().update(signature.subarray(0, R_LENGTH)).update(publicKey).update(message);
    const k = readLittleEndian(hash.digest()) % GROUP_ORDER;
    // The scalars are public, and either may be 0, which the safe multiplication refuses.
    const expected = Point.BASE.multiplyUnsafe(s).add(minusA.multiplyUnsafe(k)).toBytes();
    return expected.every((byte, i) => byte === signature[i]);
  };
}

function readLittleEndian(bytes: Uint8Array): bigint {
  const digits = Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0'));
  return BigInt(`0x${digits.reverse().join('')}`);
}
