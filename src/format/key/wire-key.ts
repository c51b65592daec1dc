/** The key of a Key object in a ledger or trust policy (SPEC §7). Faults are returned, since they become findings. */

import { fail, type Result, succeed, type ValueFault } from '../../base/fault.js';
import { checkPublicKey, describeKeyFault, type PublicKey, tryParseWirePublicKey } from './public-key.js';

const NOTE_ROLES: readonly string[] = ['checkpoint', 'witness'];
const PASSKEY_ROLES: readonly string[] = ['event', 'authority'];

/**
 * Decodes `public_key` and checks that signatures by it can be valid (SPEC §5), that `keyid` is its id, and that its algorithm, and a
 * passkey, may have the roles. Pointers are from the Key object.
 */
export function decodeWireKey(key: {
  readonly keyid: string;
  readonly public_key: string;
  readonly roles: readonly string[];
  readonly webauthn?: object | undefined;
}): Result<PublicKey, ValueFault<'SCHEMA'>> {
  const publicKey = tryParseWirePublicKey(key.public_key);
  if (publicKey === undefined) {
    const expected = 'ed25519: and 43, p256: and 87, or ml-dsa-44: and 1750 characters of base64url';
    return refuse('/public_key', expected, key.public_key);
  }
  const fault = checkPublicKey(publicKey);
  if (fault !== 'ok')
    return refuse('/public_key', `a usable ${publicKey.alg} public key`, describeKeyFault(fault));
  if (publicKey.keyid !== key.keyid) return refuse('/keyid', publicKey.keyid, key.keyid);
  const unfit = key.roles.filter((role) => publicKey.alg === 'ml-dsa-44' && !NOTE_ROLES.includes(role));
  if (unfit.length > 0) {
    const expected = 'checkpoint and witness only: an ml-dsa-44 key signs notes, and no records';
    return refuse('/roles', expected, unfit.join(', '));
  }
  if (key.webauthn === undefined) return succeed(publicKey);
  if (publicKey.alg === 'ml-dsa-44')
    return refuse('/webauthn', 'an ed25519 or p256 key for a passkey', publicKey.alg);
  const other = key.roles.filter((role) => !PASSKEY_ROLES.includes(role));
  if (other.length === 0) return succeed(publicKey);
  return refuse('/roles', 'event and authority only: a passkey signs approvals alone', other.join(', '));
}

function refuse(pointer: string, expected: string, actual: string): Result<never, ValueFault<'SCHEMA'>> {
  return fail({ code: 'SCHEMA', pointer, expected, actual });
}
