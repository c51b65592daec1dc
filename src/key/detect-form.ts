/**
 * Tells the forms of keys apart by how a text begins, before anything is read. A text that is meant as one form and is
 * malformed stays that form: it is never tried as the next.
 */

import { SIGNER_PREFIX } from './vkey.js';

export type DetectedForm = 'pem' | 'jwk' | 'did' | 'wire' | 'openssh' | 'signer' | 'vkey' | 'raw';

/** The form that `text`, which is not empty, has or is meant to have. */
export function detectForm(text: string): DetectedForm {
  if (text.startsWith('-----BEGIN ')) return 'pem';
  if (text.startsWith('{')) return 'jwk';
  if (text.startsWith('did:')) return 'did';
  if (/^(?:ed25519|p256):/.test(text)) return 'wire';
  if (/^(?:ssh-|ecdsa-sha2-|sk-ssh-|sk-ecdsa-)\S*[ \t]/.test(text)) return 'openssh';
  if (text.startsWith(SIGNER_PREFIX)) return 'signer';
  // Standard base64 has "+" too, but 32 and 65 bytes of it end in "=", and the 33 bytes of a vkey do not.
  if (/^[^+]*\+[^+]*\+/.test(text) && !/^(?:[A-Za-z0-9+/]{43}|[A-Za-z0-9+/]{87})=$/.test(text)) return 'vkey';
  return 'raw';
}
