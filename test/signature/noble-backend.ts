/** An independent backend in plain JavaScript, slow on Node, for cross-checking. */

import { importNobleEd25519 } from '../../src/base/platform/noble-ed25519.js';
import { importVerificationKey, type SignatureBackend } from '../../src/format/signature/backend.js';

/** Verifies Ed25519 with @noble/ed25519 and @noble/hashes; P-256 with the platform's, as every backend does. */
export const nobleBackend: SignatureBackend = {
  name: 'noble',
  importKey: (publicKey) => importVerificationKey(publicKey, importNobleEd25519),
};
