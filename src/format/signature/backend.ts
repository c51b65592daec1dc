/**
 * The interface that every signature backend has, and the frame that gives all of them the verdict of SPEC §5: a backend
 * only supplies the equation.
 */

import { importP256 } from '#platform';
import { verifyMlDsa44 } from '../key/ml-dsa-44.js';
import { checkPublicKey, type PublicKey } from '../key/public-key.js';
import { checkEd25519Signature } from './ed25519.js';

/** A backend. The verdict on a signature never depends on which one is used. */
export interface SignatureBackend {
  readonly name: string;
  /** Prepares a key for any number of signatures; it is checked once (SPEC §5), when it is first used, in about 1.5 ms: keep what it returns. */
  importKey(key: PublicKey): VerificationKey;
}

/** A public key prepared by a backend. */
export interface VerificationKey {
  readonly publicKey: PublicKey;
  /** False: the key is not one that SPEC §5 accepts, every signature by it is invalid. */
  readonly usable: boolean;
  /** Whether `signature` (64 bytes, 2420 of ml-dsa-44; of any other length it is invalid) is one of `message` by this key. */
  verify(message: Uint8Array, signature: Uint8Array): boolean;
}

/** Whether [S]B = R + [k]A, for a signature and a key that passed the pre-checks. */
export type Ed25519Equation = (message: Uint8Array, signature: Uint8Array) => boolean;

/** ES256 signatures are r ‖ s, 32 bytes each (IEEE P1363). */
const P1363_LENGTH = 64;

/**
 * Prepares a key, when something is first asked of it: many keys of a ledger never sign. Of an Ed25519 key `importEd25519` makes the
 * equation; P-256 is the platform's in every backend: there is one way to verify ECDSA, so nothing for backends to differ in, and low s
 * is not required (SPEC §5). ML-DSA-44 is @noble/post-quantum's in every backend: node:crypto does not have it everywhere.
 */
export function importVerificationKey(
  publicKey: PublicKey,
  importEd25519: (bytes: Uint8Array) => Ed25519Equation,
): VerificationKey {
  let verify: VerificationKey['verify'] | undefined;
  const prepare = (): VerificationKey['verify'] => (verify ??= prepareKey(publicKey, importEd25519));
  return {
    publicKey,
    get usable() {
      return prepare() !== neverValid;
    },
    verify: (message, signature) => prepare()(message, signature),
  };
}

const neverValid = (): boolean => false;

function prepareKey(
  publicKey: PublicKey,
  importEd25519: (bytes: Uint8Array) => Ed25519Equation,
): VerificationKey['verify'] {
  if (checkPublicKey(publicKey) !== 'ok') return neverValid;
  if (publicKey.alg === 'p256') return verifyP256(publicKey);
  const bytes = new Uint8Array(publicKey.bytes);
  if (publicKey.alg === 'ml-dsa-44') return (message, signature) => verifyMlDsa44(signature, message, bytes);
  const holds = importEd25519(bytes);
  return (message, signature) => checkEd25519Signature(signature) === 'ok' && holds(message, signature);
}

function verifyP256({ bytes }: PublicKey): VerificationKey['verify'] {
  const holds = importP256(new Uint8Array(bytes));
  return (message, signature) => signature.length === P1363_LENGTH && holds(message, signature);
}
