/** Signing (SPEC §4, §5): PureEdDSA, ES256 in IEEE P1363 form or hedged ML-DSA-44, depending on the key; events by DSSE. */

import { createPrivateKey, sign } from 'node:crypto';
import { describeValue } from '../../base/options.js';

import { equalBytes } from '../../base/bytes/compare.js';
import { encodeBase64url } from '../../base/bytes/encoding.js';
import { keyError } from '../key/key-form.js';
import { readPkcs8 } from '../key/pkcs8.js';
import { expandMlDsa44, signMlDsa44 } from '../key/ml-dsa-44.js';
import { readPrivateDer, type PrivateKey } from '../key/private-key.js';
import { checkPublicKey, describeKeyFault, type PublicKey } from '../key/public-key.js';
import { asBuffer } from '../../base/platform/buffer.js';
import type { EventSignature } from './dsse.js';
import { eventMessage, writeEventMessage } from './event-signature.js';

/** Signs with one key, wherever that is kept. */
export interface Signer {
  readonly publicKey: PublicKey;
  /** A signature of `message`: 64 bytes; 2420 for ml-dsa-44. */
  sign(message: Uint8Array): Uint8Array;
}

/**
 * A signer that holds its key in memory.
 *
 * @throws NorthrootError `KEY_MALFORMED` for mismatched halves or an unusable key (SPEC §5); `KEY_UNSUPPORTED` for another algorithm
 * @throws TypeError for anything but a key of `parsePrivateKey`
 * @example
 * const signer = createSigner(generatePrivateKey());
 * signEvent(canonicalBytes(event), signer); // { keyid, sig }
 */
export function createSigner(privateKey: PrivateKey): Signer {
  assertPrivateKey(privateKey);
  const { publicKey, pkcs8 } = readPrivateDer(privateKey.pkcs8);
  const claimed = privateKey.publicKey;
  if (
    claimed.alg !== publicKey.alg ||
    claimed.keyid !== publicKey.keyid ||
    !equalBytes(claimed.bytes, publicKey.bytes)
  ) {
    const message = 'expected the public half that belongs to the private one, found another';
    throw keyError('KEY_MALFORMED', message);
  }
  const fault = checkPublicKey(publicKey);
  if (fault !== 'ok')
    throw keyError('KEY_MALFORMED', `expected a usable key, found ${describeKeyFault(fault)}`);
  if (publicKey.alg === 'ml-dsa-44') {
    const { secretKey } = expandMlDsa44(readPkcs8(pkcs8).secret);
    return { publicKey, sign: (message) => signMlDsa44(message, secretKey) };
  }
  const key = createPrivateKey({ key: asBuffer(pkcs8), format: 'der', type: 'pkcs8' });
  const [digest, options] =
    publicKey.alg === 'ed25519'
      ? ([null, key] as const)
      : (['sha256', { key, dsaEncoding: 'ieee-p1363' }] as const);
  const signer: Signer = { publicKey, sign: (message) => new Uint8Array(sign(digest, message, options)) };
  keys.set(signer, { key, digest, options });
  return signer;
}

/** The arguments of `crypto.sign`. The key is a KeyObject, a type that code which only verifies need not know. */
interface SigningParts {
  readonly key: object;
  readonly digest: 'sha256' | null;
}

interface OwnParts extends SigningParts {
  readonly options: Parameters<typeof sign>[2];
}

const keys = new WeakMap<Signer, OwnParts>();

/** The arguments with which another thread of this process can sign; undefined if the key is not in this process. */
export function signingKeyOf(signer: Signer): SigningParts | undefined {
  const own = keys.get(signer);
  return own && { key: own.key, digest: own.digest };
}

/**
 * Signs the canonical bytes of an event, ids included (SPEC §4), for the `signatures` of a record.
 *
 * @throws NorthrootError `KEY_UNSUPPORTED` for an ml-dsa-44 key, which signs only notes (SPEC §7)
 */
export function signEvent(eventBytes: Uint8Array, signer: Signer): EventSignature {
  assertSignsRecords(signer.publicKey);
  const { keyid } = signer.publicKey;
  const own = keys.get(signer);
  if (own === undefined) return { keyid, sig: encodeBase64url(signer.sign(eventMessage(eventBytes))) };
  const message = writeEventMessage(eventBytes);
  return { keyid, sig: sign(own.digest, message, own.options).toString('base64url') };
}

/** @throws NorthrootError `KEY_UNSUPPORTED` for an ml-dsa-44 key */
export function assertSignsRecords({ alg }: PublicKey): void {
  if (alg !== 'ml-dsa-44') return;
  throw keyError(
    'KEY_UNSUPPORTED',
    'expected an ed25519 or p256 key to sign records, found ml-dsa-44',
    'an ml-dsa-44 key signs the notes of checkpoints, beside an ed25519 key',
  );
}

function assertPrivateKey(given: unknown): void {
  const key = (typeof given === 'object' && given !== null ? given : {}) as Partial<PrivateKey>;
  if (key.pkcs8 instanceof Uint8Array && typeof key.publicKey === 'object') return;
  throw new TypeError(
    `createSigner: expected a private key as parsePrivateKey gives it, found ${describeValue(given)}`,
  );
}
