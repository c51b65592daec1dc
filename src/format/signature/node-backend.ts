/** The backend of node:crypto (OpenSSL), the default on Node. */

import { importEd25519 } from '../../base/platform/node.js';
import { importVerificationKey, type SignatureBackend } from './backend.js';

export const nodeBackend: SignatureBackend = {
  name: 'node',
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
