/**
 * The checks of Ed25519 signatures (SPEC §5) before any curve arithmetic. After them, every backend that decides by the cofactorless
 * equation [S]B = R + [k]A gives the same verdict. docs/spec/ed25519-verdicts.md lists those of published vector sets.
 */

import { tryDecodeHex } from '../../base/bytes/encoding.js';
import { isCanonicalPoint, isSmallOrderPoint } from '../key/ed25519-point.js';

export { checkEd25519PublicKey } from '../key/ed25519-point.js';

type Ed25519SignatureFault = 'wrong_length' | 's_not_reduced' | 'r_not_canonical' | 'r_small_order';

const ED25519_SIGNATURE_LENGTH = 64;

/** L, the order of the base point: 2^252 + 27742317777372353535851937790883648493, little-endian. */
const GROUP_ORDER = tryDecodeHex('edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010')!;

/**
 * Whether `signature` can be valid: 64 bytes R ‖ S, S < L, R canonically encoded and not of small order. Compares bytes only: it runs
 * for every signature.
 */
export function checkEd25519Signature(signature: Uint8Array): 'ok' | Ed25519SignatureFault {
  if (signature.length !== ED25519_SIGNATURE_LENGTH) return 'wrong_length';
  if (!isReducedScalar(signature)) return 's_not_reduced';
  if (!isCanonicalPoint(signature)) return 'r_not_canonical';
  if (isSmallOrderPoint(signature)) return 'r_small_order';
  return 'ok';
}

/** Whether bytes 32 to 63, little-endian, are less than L. */
function isReducedScalar(signature: Uint8Array): boolean {
  for (let i = 31; i >= 0; i--) {
    const digit = signature[32 + i]!;
    const limit = GROUP_ORDER[i]!;
    if (digit !== limit) return digit < limit;
  }
  return false;
}
