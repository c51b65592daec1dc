/** The default backend: OpenSSL through node:crypto, which computes R' = [S]B − [k]A and compares its encoding with R. */

import { createPublicKey, verify } from 'node:crypto';

import { asBuffer } from '../bytes/encoding.js';
import { formatSpki } from '../key/der.js';
import { importVerificationKey, type Verifier } from './verifier.js';

/** Verifies with node:crypto. The KeyObject is kept: making one costs nearly as much as a verification. */
export const nodeVerifier: Verifier = {
  name: 'node',
  importKey: (publicKey) =>
    importVerificationKey(publicKey, (bytes) => {
      const der = formatSpki({ alg: 'ed25519', bytes });
      const key = createPublicKey({ key: asBuffer(der), format: 'der', type: 'spki' });
      return (message, signature) => verify(null, message, key, signature);
    }),
};
