/**
 * The key material of a Key object in a ledger or trust policy (SPEC §7): its `keyid` and `public_key` must belong
 * together. Its shape, roles and principals are others' concern; what is wrong is returned, since it is a finding.
 */

import { checkPublicKey, describeKeyFault, tryParseWirePublicKey, type PublicKey } from './public-key.js';

/** What is wrong with a Key object; `pointer` (RFC 6901) is relative to it. */
export interface WireKeyIssue {
  readonly pointer: '/public_key' | '/keyid' | '/roles';
  readonly expected: string;
  readonly actual: string;
}

const NOTE_ROLES: readonly string[] = ['checkpoint', 'witness'];

/** Reads `public_key`, checks that it is a key by which signatures can be valid (SPEC §5), and that `keyid` is its own, and that its roles are such as its algorithm has. */
export function readWireKey(key: {
  readonly keyid: string;
  readonly public_key: string;
  readonly roles: readonly string[];
}): { readonly publicKey: PublicKey } | WireKeyIssue {
  const publicKey = tryParseWirePublicKey(key.public_key);
  if (publicKey === undefined) {
    return {
      pointer: '/public_key',
      expected: 'ed25519: and 43, p256: and 87, or ml-dsa-44: and 1750 characters of base64url',
      actual: key.public_key,
    };
  }
  const fault = checkPublicKey(publicKey);
  if (fault !== 'ok') {
    return {
      pointer: '/public_key',
      expected: `a usable ${publicKey.alg} public key`,
      actual: describeKeyFault(fault),
    };
  }
  if (publicKey.keyid !== key.keyid)
    return { pointer: '/keyid', expected: publicKey.keyid, actual: key.keyid };
  const unfit = key.roles.filter((role) => publicKey.alg === 'ml-dsa-44' && !NOTE_ROLES.includes(role));
  if (unfit.length > 0) {
    return {
      pointer: '/roles',
      expected: 'checkpoint and witness only: an ml-dsa-44 key signs notes, and no records',
      actual: unfit.join(', '),
    };
  }
  return { publicKey };
}
