/** The default backend: the platform's, node:crypto on Node and the noble libraries elsewhere. */

import { HOST, importEd25519 } from '#platform';
import { importVerificationKey, type SignatureBackend } from './backend.js';

export const defaultBackend: SignatureBackend = {
  name: HOST,
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
