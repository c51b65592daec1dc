/**
 * The key material of a Key object in a ledger or trust policy (SPEC §7): its `keyid` and `public_key` must belong
 * together. Its shape, roles and principals are others' concern; what is wrong is returned, since it is a finding.
 */

import { checkPublicKey, describeKeyFault, tryParseWirePublicKey, type PublicKey } from './public-key.js';

/** What is wrong with a Key object; `pointer` (RFC 6901) is relative to it. */
export interface WireKeyIssue {
  readonly pointer: '/public_key' | '/keyid';
  readonly expected: string;
  readonly actual: string;
}

/** Reads `public_key`, checks that it is a key by which signatures can be valid (SPEC §5), and that `keyid` is its thumbprint. */
export function readWireKey(key: {
  readonly keyid: string;
  readonly public_key: string;
}): { readonly publicKey: PublicKey } | WireKeyIssue {
  const publicKey = tryParseWirePublicKey(key.public_key);
  if (publicKey === undefined) {
    return {
      pointer: '/public_key',
      expected: 'ed25519: and 43 or p256: and 87 characters of base64url',
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
  return { publicKey };
}
