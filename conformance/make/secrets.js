/** Private keys of the content: by name, as the fixtures' are, so that anybody can make the same signatures. */

import { createPrivateKey } from 'node:crypto';
import { createSigner, parsePrivateKey } from '../../dist/api/format.js';
import { sha256 } from '../../fixtures/make/keys.js';

const PKCS8 = {
  ed25519: '302e020100300506032b657004220420',
  p256: '3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420',
};

/** A secret as requests have it. */
export function secretOf(name, alg = 'ed25519') {
  return { alg, seed: sha256(`northroot fixture key: ${name}`).toString('base64') };
}

/** The product's signer of a secret. */
export function signerOf({ alg, seed }) {
  const der = Buffer.concat([Buffer.from(PKCS8[alg], 'hex'), Buffer.from(seed, 'base64')]);
  const key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' });
  return createSigner(parsePrivateKey(key.export({ format: 'pem', type: 'pkcs8' })));
}
