/**
 * Tells the forms of keys apart by how a text begins, before anything is read. A text that is meant as one form and is
 * malformed stays that form: it is never tried as the next.
 */

import { keyError, malformed } from './key-form.js';
import { SIGNER_PREFIX } from './vkey.js';

export type DetectedForm = 'pem' | 'jwk' | 'did' | 'wire' | 'openssh' | 'signer' | 'vkey' | 'raw';

/** The form that `text`, which is not empty, has or is meant to have. */
export function detectForm(text: string): DetectedForm {
  if (text.startsWith('-----BEGIN ')) return 'pem';
  if (text.startsWith('{')) return 'jwk';
  if (text.startsWith('did:')) return 'did';
  if (/^(?:ed25519|p256|ml-dsa-44):/.test(text)) return 'wire';
  if (/^(?:ssh-|ecdsa-sha2-|sk-ssh-|sk-ecdsa-)\S*[ \t]/.test(text)) return 'openssh';
  if (text.startsWith(SIGNER_PREFIX)) return 'signer';
  // Standard base64 has "+" too, but raw keys of 32, 65 and 1312 bytes have lengths and an end that no vkey has.
  const isBase64 = /^(?:[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{87}=|[A-Za-z0-9+/]{1750}==)$/.test(text);
  if (/^[^+]*\+[^+]*\+/.test(text) && !isBase64) return 'vkey';
  return 'raw';
}

/**
 * Refuses what is a key in a form that is not read, and says how to write it in one that is.
 *
 * @throws NorthrootError `KEY_UNSUPPORTED` (RFC 4716, a list of JWKs), `KEY_MALFORMED` (text around a PEM block)
 */
export function refuseForeignForm(text: string): void {
  if (text.startsWith('---- BEGIN SSH2 ')) {
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected a key in one of the known forms, found one in the form of RFC 4716',
      'write it in one line: ssh-keygen -i -f FILE',
    );
  }
  if (text.startsWith('[')) {
    throw keyError('KEY_UNSUPPORTED', 'expected one key, found a JSON array', 'give one JWK of it');
  }
  if (!text.startsWith('-----BEGIN ') && text.includes('-----BEGIN ')) {
    throw malformed(
      'a PEM block and nothing before it',
      'other text',
      'leave out what stands before -----BEGIN',
    );
  }
}
