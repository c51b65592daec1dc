/**
 * did:key (W3C CCG): `did:key:z` and the base58btc of 0xed 0x01 and the 32 bytes of an Ed25519 key, or of 0x80 0x24 and the 33 bytes of
 * a compressed P-256 point. The only DID URL accepted is that of the key itself, `did:key:zX#zX`.
 */

import { encodeBase58, tryDecodeBase58 } from './base58.js';
import { curveOf, keyError, malformed, type RawPublicKey } from './key-form.js';
import { compressP256, decompressP256 } from './p256-point.js';

const FORM = 'a did:key (did:key:z…)';
const PREFIX = 'did:key:z';

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED` */
export function readDidKey(text: string): RawPublicKey {
  const [did = '', ...fragments] = text.split('#', 3);
  const isOwnKey = fragments.length === 0 || (fragments.length === 1 && did === `did:key:${fragments[0]}`);
  const decoded = isOwnKey && did.startsWith(PREFIX) ? tryDecodeBase58(did.slice(PREFIX.length)) : undefined;
  if (decoded === undefined || decoded.length < 2) throw malformed(FORM, 'other text');
  const codec = decoded[0]! * 256 + decoded[1]!;
  const key = decoded.slice(2);
  switch (codec) {
    case 0xed01:
      if (key.length !== 32) throw malformed('32 bytes of key in the did:key', `${key.length}`);
      return { alg: 'ed25519', bytes: key };
    case 0x8024: {
      const bytes = decompressP256(key);
      if (bytes === undefined) throw malformed('a compressed P-256 point in the did:key', 'none');
      return { alg: 'p256', bytes };
    }
    default:
      throw keyError(
        'KEY_UNSUPPORTED',
        `expected a did:key of Ed25519 or P-256, found codec 0x${codec.toString(16)}`,
      );
  }
}

/** @throws NorthrootError `KEY_MALFORMED` for a p256 key off the curve; `KEY_UNSUPPORTED` for ml-dsa-44 */
export function formatDidKey(key: RawPublicKey): string {
  if (curveOf(key.alg, 'did:key') === 'ed25519')
    return PREFIX + encodeBase58(Uint8Array.of(0xed, 0x01, ...key.bytes));
  const compressed = compressP256(key.bytes);
  if (compressed === undefined) throw malformed('a P-256 point', 'none');
  return PREFIX + encodeBase58(Uint8Array.of(0x80, 0x24, ...compressed));
}
