/** Signature backends. They share the checks of SPEC §5 and so its verdict: a backend supplies only the equation. */

import { importP256 } from '#platform';
import type { Equation } from '../../base/platform/platform.js';
import { verifyMlDsa44 } from '../key/ml-dsa-44.js';
import { checkPublicKey, type PublicKey } from '../key/public-key.js';
import { checkEd25519Signature } from './ed25519.js';

/** The verdict on a signature MUST NOT depend on the backend. */
export interface SignatureBackend {
  readonly name: string;
  /** Prepares a key for any number of signatures. It is checked (SPEC §5) on first use, in about 1.5 ms: keep the result. */
  importKey(key: PublicKey): VerificationKey;
}

export interface VerificationKey {
  readonly publicKey: PublicKey;
  /** Whether SPEC §5 accepts the key; if not, every signature by it is invalid. */
  readonly usable: boolean;
  /** Whether `signature` (64 bytes; 2420 for ml-dsa-44; any other length is invalid) is valid for `message`. */
  verify(message: Uint8Array, signature: Uint8Array): boolean;
}

/** ES256 signatures are r ‖ s, 32 bytes each (IEEE P1363). */
const P1363_LENGTH = 64;

/**
 * Prepares a key on first use: many keys of a ledger never sign. Every backend verifies P-256 with the platform (low s is not required,
 * SPEC §5) and ML-DSA-44 with @noble/post-quantum, as node:crypto lacks it in places.
 */
export function importVerificationKey(
  publicKey: PublicKey,
  importEd25519: (bytes: Uint8Array) => Equation,
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
  importEd25519: (bytes: Uint8Array) => Equation,
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
