/**
 * PKCS#8 (RFC 5208, RFC 5958, RFC 9881) in DER, on Node only. OpenSSL parses keys of curves; trailing bytes and the kind of key, about
 * which it is lax, are checked here. Keys of ML-DSA-44, which not every OpenSSL knows, have a few fixed prefixes. Each algorithm is
 * written as a fixed prefix and the key.
 */

import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { tryDecodeHex } from '../../base/bytes/encoding.js';
import { asBuffer } from '../../base/platform/buffer.js';
import { startsWith, unsupportedAlgorithm } from './der.js';
import {
  SECRET_LENGTH,
  keyError,
  malformed,
  type CurveAlgorithm,
  type RawPrivateKey,
  type RawPublicKey,
} from './key-form.js';
import { ML_DSA_44_EXPANDED_LENGTH, expandMlDsa44 } from './ml-dsa-44.js';

const ED25519_PKCS8 = tryDecodeHex('302e020100300506032b657004220420')!;
/** PKCS#8 version 2 (RFC 5958) carries the public key too; OpenSSL 3.0 does not read it, other tools write it. */
const ED25519_PKCS8_V2 = {
  head: tryDecodeHex('3051020101300506032b657004220420')!,
  mid: tryDecodeHex('812100')!,
};
const P256_PKCS8 = {
  head: tryDecodeHex('308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420')!,
  mid: tryDecodeHex('a144034200')!,
};

/** RFC 9881: the seed; the seed and the expanded key, as OpenSSL writes; the expanded key alone. */
const ML_DSA_44_PKCS8 = {
  seed: tryDecodeHex('3034020100300b060960864801650304031104228020')!,
  both: tryDecodeHex('30820a3e020100300b060960864801650304031104820a2a30820a260420')!,
  mid: tryDecodeHex('04820a00')!,
  expanded: tryDecodeHex('30820a18020100300b060960864801650304031104820a0404820a00')!,
};

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED` */
export function readPkcs8(der: Uint8Array): RawPrivateKey {
  const mlDsa44 = readMlDsa44Pkcs8(der);
  if (mlDsa44 !== undefined) return mlDsa44;
  const { head, mid } = ED25519_PKCS8_V2;
  if (der.length === 83 && startsWith(der, 0, head) && startsWith(der, 48, mid))
    return { alg: 'ed25519', secret: der.slice(16, 48), claimedPublic: der.slice(51) };
  const key = parseDer(der);
  const alg = algorithmOf(key);
  if (!isOneDerValue(der)) throw malformed('one PKCS#8 private key in DER', 'bytes after it');
  const jwk = key.export({ format: 'jwk' });
  return { alg, secret: decode(jwk.d), claimedPublic: publicBytes(alg, jwk) };
}

/** `undefined` for other keys. @throws NorthrootError `KEY_MALFORMED` if seed and key differ, `KEY_UNSUPPORTED` without a seed */
function readMlDsa44Pkcs8(der: Uint8Array): RawPrivateKey | undefined {
  const { seed, both, mid, expanded } = ML_DSA_44_PKCS8;
  if (der.length === seed.length + SECRET_LENGTH && startsWith(der, 0, seed))
    return { alg: 'ml-dsa-44', secret: der.slice(seed.length) };
  if (der.length === expanded.length + ML_DSA_44_EXPANDED_LENGTH && startsWith(der, 0, expanded))
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected an ML-DSA-44 private key with its seed, found one without',
      'the seed cannot be found again: make another key',
    );
  const midAt = both.length + SECRET_LENGTH;
  const keyAt = midAt + mid.length;
  if (
    der.length !== keyAt + ML_DSA_44_EXPANDED_LENGTH ||
    !startsWith(der, 0, both) ||
    !startsWith(der, midAt, mid)
  )
    return undefined;
  const secret = der.slice(both.length, midAt);
  if (!equalBytes(expandMlDsa44(secret).secretKey, der.subarray(keyAt)))
    throw malformed('the expanded key that belongs to the seed', 'another');
  return { alg: 'ml-dsa-44', secret };
}

/** PKCS#8 version 1 as OpenSSL writes it: p256 with the public key, ml-dsa-44 as the seed alone. */
export function formatPkcs8(secret: Uint8Array, publicKey: RawPublicKey): Uint8Array {
  if (publicKey.alg === 'ed25519') return concatBytes([ED25519_PKCS8, secret]);
  if (publicKey.alg === 'ml-dsa-44') return concatBytes([ML_DSA_44_PKCS8.seed, secret]);
  return concatBytes([P256_PKCS8.head, secret, P256_PKCS8.mid, publicKey.bytes]);
}

function parseDer(der: Uint8Array): KeyObject {
  try {
    return createPrivateKey({ key: asBuffer(der), format: 'der', type: 'pkcs8' });
  } catch (cause) {
    const message = 'expected a PKCS#8 private key in DER, found other bytes';
    throw keyError('KEY_MALFORMED', message, undefined, cause);
  }
}

function algorithmOf(key: KeyObject): CurveAlgorithm {
  const type = key.asymmetricKeyType;
  const curve = key.asymmetricKeyDetails?.namedCurve;
  if (type === 'ed25519') return 'ed25519';
  if (type === 'ec' && curve === 'prime256v1') return 'p256';
  const found = type === 'ec' ? `ec ${curve ?? 'with parameters of its own'}` : (type ?? 'another');
  throw unsupportedAlgorithm(found);
}

function publicBytes(alg: CurveAlgorithm, jwk: JsonWebKey): Uint8Array {
  return alg === 'ed25519' ? decode(jwk.x) : Uint8Array.of(0x04, ...decode(jwk.x), ...decode(jwk.y));
}

function decode(text: string | undefined): Uint8Array {
  return new Uint8Array(Buffer.from(text ?? '', 'base64url'));
}

/** Whether the outer length covers all bytes: OpenSSL ignores trailing ones. */
function isOneDerValue(der: Uint8Array): boolean {
  const first = der[1]!;
  if (first < 0x80) return der.length === 2 + first;
  const octets = first & 0x7f;
  let length = 0;
  for (let i = 0; i < octets && i < 4; i++) length = length * 256 + (der[2 + i] ?? 0);
  return der.length === 2 + octets + length;
}
