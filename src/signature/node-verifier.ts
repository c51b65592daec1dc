/** The backend of Node: OpenSSL through node:crypto. It is the default one there, see `default-verifier.ts`. */

import { importEd25519 } from '../platform/node.js';
import { importVerificationKey, type Verifier } from './verifier.js';

/** Verifies with node:crypto. */
export const nodeVerifier: Verifier = {
  name: 'node',
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
