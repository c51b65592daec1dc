/** Detects the form of a key by the beginning of its text. A malformed text keeps its form: it is never tried as another. */

import { keyError, malformed } from './key-form.js';
import { SIGNER_PREFIX } from './vkey.js';

type DetectedForm = 'pem' | 'jwk' | 'did' | 'wire' | 'openssh' | 'signer' | 'vkey' | 'raw';

/** The intended form of a text, which MUST NOT be empty. */
export function detectForm(text: string): DetectedForm {
  if (text.startsWith('-----BEGIN ')) return 'pem';
  if (text.startsWith('{')) return 'jwk';
  if (text.startsWith('did:')) return 'did';
  if (/^(?:ed25519|p256|ml-dsa-44):/.test(text)) return 'wire';
  if (/^(?:ssh-|ecdsa-sha2-|sk-ssh-|sk-ecdsa-)\S*[ \t]/.test(text)) return 'openssh';
  if (text.startsWith(SIGNER_PREFIX)) return 'signer';
  // Standard base64 also has "+", but raw keys of 32, 65 and 1312 bytes have lengths and an end that no vkey has.
  const isBase64 = /^(?:[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{87}=|[A-Za-z0-9+/]{1750}==)$/.test(text);
  if (/^[^+]*\+[^+]*\+/.test(text) && !isBase64) return 'vkey';
  return 'raw';
}

/**
 * Refuses keys in unsupported forms, and says how to convert them.
 *
 * @throws NorthrootError `KEY_UNSUPPORTED` (RFC 4716, a list of JWKs), `KEY_MALFORMED` (text around a PEM block)
 */
export function refuseForeignForm(text: string): void {
  if (text.startsWith('---- BEGIN SSH2 '))
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected a key in one of the known forms, found one in the form of RFC 4716',
      'write it in one line: ssh-keygen -i -f FILE',
    );
  if (text.startsWith('['))
    throw keyError('KEY_UNSUPPORTED', 'expected one key, found a JSON array', 'give one JWK of it');
  if (!text.startsWith('-----BEGIN ') && text.includes('-----BEGIN '))
    throw malformed('a PEM block and nothing before it', 'other text', 'remove the text before -----BEGIN');
}
