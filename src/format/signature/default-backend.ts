/** The backend that is used where none is given: that of the platform, node:crypto on Node and the noble libraries elsewhere. */

import { HOST, importEd25519 } from '#platform';
import { importVerificationKey, type SignatureBackend } from './backend.js';

/** The platform's own backend. */
export const defaultBackend: SignatureBackend = {
  name: HOST,
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
