/**
 * Private keys: generating, parsing and formatting. Only the secret is read from a file: the public key is computed, and a file with
 * another one is refused, since signing with mismatched halves leaks Ed25519 secrets. No error quotes the input.
 */

import { createECDH, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';

import { equalBytes } from '../../base/bytes/compare.js';
import type { NorthrootError } from '../../base/error.js';
import { asBuffer } from '../../base/platform/buffer.js';
import { detectForm, refuseForeignForm } from './detect-form.js';
import { formatPrivateJwk, readPrivateJwk } from './jwk.js';
import {
  ED25519_LENGTH,
  SECRET_LENGTH,
  keyError,
  malformed,
  readKeyText,
  type KeyAlgorithm,
  type RawPrivateKey,
} from './key-form.js';
import { expandMlDsa44 } from './ml-dsa-44.js';
import { OPENSSH_PRIVATE_LABEL, readOpenSshPrivate } from './openssh.js';
import { formatPem, parsePem, pemLabel } from './pem.js';
import { formatPkcs8, readPkcs8 } from './pkcs8.js';
import { makePublicKey, type PublicKey } from './public-key.js';
import { readNoteSigner, vkeyId } from './vkey.js';

export interface PrivateKey {
  readonly publicKey: PublicKey;
  /** The key in PKCS#8 (DER), unencrypted. */
  readonly pkcs8: Uint8Array;
}

export type PrivateKeyForm = 'pem' | 'jwk';

/** A new key from the operating system's randomness. @throws TypeError for an unknown `alg` */
export function generatePrivateKey(alg: KeyAlgorithm = 'ed25519'): PrivateKey {
  const options = { privateKeyEncoding: { format: 'der', type: 'pkcs8' } } as const;
  const publicKeyEncoding = { format: 'der', type: 'spki' } as const;
  switch (alg) {
    case 'ed25519':
      return readPrivateDer(generateKeyPairSync('ed25519', { ...options, publicKeyEncoding }).privateKey);
    case 'p256':
      return readPrivateDer(
        generateKeyPairSync('ec', { namedCurve: 'prime256v1', ...options, publicKeyEncoding }).privateKey,
      );
    case 'ml-dsa-44':
      return makePrivateKey({ alg, secret: new Uint8Array(randomBytes(SECRET_LENGTH)) });
    default:
      throw new TypeError('expected alg to be ed25519, p256 or ml-dsa-44');
  }
}

/**
 * Reads a private key: PKCS#8 PEM, OpenSSH, JWK (each Ed25519 or P-256; PEM also ML-DSA-44), or a C2SP signer
 * (`PRIVATE+KEY+…`, Ed25519 or ML-DSA-44).
 *
 * @throws TypeError if `input` is neither a string nor bytes
 * @throws NorthrootError `KEY_MALFORMED` (no known form, or mismatched halves), `KEY_ENCRYPTED`, `KEY_UNSUPPORTED` (another
 *   algorithm or form), `KEY_IS_PUBLIC`
 */
export function parsePrivateKey(input: string | Uint8Array): PrivateKey {
  const text = readKeyText(input);
  refuseForeignForm(text);
  switch (detectForm(text)) {
    case 'pem':
      return readPrivatePem(text);
    case 'jwk':
      return makePrivateKey(readPrivateJwk(text));
    case 'signer': {
      const { key, name, id, type } = readNoteSigner(text);
      const made = makePrivateKey(key);
      if (!equalBytes(id, vkeyId(name, made.publicKey.bytes, type)))
        throw malformed("a signer with its key's own hash", 'another');
      return made;
    }
    case 'wire':
    case 'openssh':
    case 'vkey':
    case 'did':
      throw isPublic();
    case 'raw':
      throw keyError(
        'KEY_MALFORMED',
        'expected a private key, found text in no form of one',
        'known forms: PKCS#8 PEM, OpenSSH, JWK, PRIVATE+KEY+…',
      );
  }
}

function isPublic(): NorthrootError {
  const message = 'expected a private key, found a public one';
  return keyError('KEY_IS_PUBLIC', message, 'give the file that it was made from');
}

/** Reads unencrypted PKCS#8 in DER. @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED` */
export function readPrivateDer(der: Uint8Array): PrivateKey {
  return makePrivateKey(readPkcs8(der));
}

/**
 * Writes a private key, unencrypted: PKCS#8 PEM with a final newline, or a JWK in one line without one.
 *
 * @throws TypeError for an unknown form; NorthrootError `KEY_UNSUPPORTED` for ml-dsa-44 as a JWK
 */
export function formatPrivateKey(key: PrivateKey, form: PrivateKeyForm): string {
  switch (form) {
    case 'pem':
      return formatPem('PRIVATE KEY', key.pkcs8);
    case 'jwk':
      return formatPrivateJwk(key.publicKey, readPkcs8(key.pkcs8).secret);
    default:
      throw new TypeError('expected a form: pem or jwk');
  }
}

function readPrivatePem(text: string): PrivateKey {
  const label = pemLabel(text) ?? '';
  // An old-style encrypted block has header lines, which are not base64, so it is detected before parsing.
  if (label === 'ENCRYPTED PRIVATE KEY' || /^Proc-Type: 4,ENCRYPTED\r?$/m.test(text))
    throw keyError(
      'KEY_ENCRYPTED',
      'expected a private key without a passphrase, found one with',
      'write a copy without it: openssl pkey -in FILE -out COPY',
    );
  switch (label) {
    case 'PUBLIC KEY':
      throw isPublic();
    case 'PRIVATE KEY':
      return readPrivateDer(parsePem(text).bytes);
    case OPENSSH_PRIVATE_LABEL:
      return makePrivateKey(readOpenSshPrivate(parsePem(text).bytes));
    case 'EC PARAMETERS':
      throw text.includes('-----BEGIN EC PRIVATE KEY-----')
        ? oldForm('EC PARAMETERS before an EC PRIVATE KEY')
        : malformed(
            'a private key',
            'the parameters of a curve alone',
            'make a key: these parameters hold none',
          );
    case 'EC PRIVATE KEY':
    case 'RSA PRIVATE KEY':
    case 'DSA PRIVATE KEY':
      throw oldForm(label);
    default:
      throw malformed(
        'a PEM block with the label PRIVATE KEY',
        label === '' ? 'other text' : `the label ${label}`,
      );
  }
}

function oldForm(found: string): NorthrootError {
  return keyError(
    'KEY_UNSUPPORTED',
    `expected a PEM block with the label PRIVATE KEY, found ${found}`,
    'write it as PKCS#8: openssl pkcs8 -topk8 -nocrypt -in FILE -out COPY',
  );
}

function makePrivateKey({ alg, secret, claimedPublic }: RawPrivateKey): PrivateKey {
  if (secret.length !== SECRET_LENGTH)
    throw malformed(`a secret of ${SECRET_LENGTH} bytes`, `${secret.length}`);
  const publicKey = makePublicKey(alg, PUBLIC_HALF[alg](secret));
  if (claimedPublic !== undefined && !equalBytes(claimedPublic, publicKey.bytes))
    throw malformed('the public half that belongs to the private one', 'another');
  return Object.freeze({ publicKey, pkcs8: formatPkcs8(secret, publicKey) });
}

const PUBLIC_HALF: Readonly<Record<KeyAlgorithm, (secret: Uint8Array) => Uint8Array>> = {
  ed25519: ed25519Public,
  p256: p256Public,
  'ml-dsa-44': (seed) => expandMlDsa44(seed).publicKey,
};

function ed25519Public(seed: Uint8Array): Uint8Array {
  const der = formatPkcs8(seed, { alg: 'ed25519', bytes: seed });
  const key = createPublicKey(createPrivateKey({ key: asBuffer(der), format: 'der', type: 'pkcs8' }));
  return new Uint8Array(key.export({ format: 'der', type: 'spki' }).subarray(-ED25519_LENGTH));
}

function p256Public(scalar: Uint8Array): Uint8Array {
  const ecdh = createECDH('prime256v1');
  try {
    ecdh.setPrivateKey(scalar);
  } catch (cause) {
    const message = 'expected a P-256 scalar, found 0 or the group order or more';
    throw keyError('KEY_MALFORMED', message, undefined, cause);
  }
  return new Uint8Array(ecdh.getPublicKey());
}
