/**
 * SPKI (RFC 5280, RFC 8410, RFC 9881) in DER. The platform parses keys of curves; keys of ML-DSA-44, which not every OpenSSL knows, have
 * one fixed prefix. Each algorithm is written as a fixed prefix and the key.
 */

import { readSpki as readCurveSpki } from '#platform';
import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { tryDecodeHex } from '../../base/bytes/encoding.js';
import type { NorthrootError } from '../../base/error.js';
import { ED25519_SPKI_PREFIX, P256_SPKI_PREFIX } from '../../base/platform/spki.js';
import { type KeyAlgorithm, keyError, malformed, type RawPublicKey } from './key-form.js';
import { ML_DSA_44_LENGTH } from './ml-dsa-44.js';

const SPKI_PREFIX: Readonly<Record<KeyAlgorithm, Uint8Array>> = {
  ed25519: ED25519_SPKI_PREFIX,
  p256: P256_SPKI_PREFIX,
  'ml-dsa-44': tryDecodeHex('30820532300b06096086480165030403110382052100')!,
};

/** @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED` */
export function readSpki(der: Uint8Array): RawPublicKey {
  const mlDsa44 = SPKI_PREFIX['ml-dsa-44'];
  if (der.length === mlDsa44.length + ML_DSA_44_LENGTH && startsWith(der, 0, mlDsa44))
    return { alg: 'ml-dsa-44', bytes: der.slice(mlDsa44.length) };
  const key = readCurveSpki(der);
  if (key === undefined) throw malformed('one SPKI public key in DER', 'other bytes');
  if ('other' in key) throw unsupportedAlgorithm(key.other);
  return key;
}

export function formatSpki(key: RawPublicKey): Uint8Array {
  return concatBytes([SPKI_PREFIX[key.alg], key.bytes]);
}

export function unsupportedAlgorithm(found: string): NorthrootError {
  return keyError('KEY_UNSUPPORTED', `expected a key of Ed25519, P-256 or ML-DSA-44, found ${found}`);
}

export function startsWith(bytes: Uint8Array, offset: number, part: Uint8Array): boolean {
  return equalBytes(bytes.subarray(offset, offset + part.length), part);
}
