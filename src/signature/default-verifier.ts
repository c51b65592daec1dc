/** The backend that is used where none is given: that of the platform, node:crypto on Node and the noble libraries elsewhere. */

import { HOST, importEd25519 } from '#platform';
import { importVerificationKey, type Verifier } from './verifier.js';

/** The platform's own backend. */
export const defaultVerifier: Verifier = {
  name: HOST,
  importKey: (publicKey) => importVerificationKey(publicKey, importEd25519),
};
