/** The backend of Node: OpenSSL through node:crypto. It is the default one there, see `default-backend.ts`. */

import { importEd25519 } from '../../base/platform/node.js';
import { importVerificationKey, type SignatureBackend } from './backend.js';

/** Verifies with node:crypto. */
export const nodeBackend: SignatureBackend = {
  name: 'node',
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
