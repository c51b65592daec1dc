/**
 * Public keys (SPEC §7): their ids and text forms. Parsing also checks that signatures by a key can be valid (SPEC §5), so that an
 * unusable key is not mistaken for one that has not signed yet.
 */

import {
  encodeBase64url,
  tryDecodeBase64,
  tryDecodeBase64url,
  tryDecodeHex,
} from '../../base/bytes/encoding.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { formatSpki, readSpki } from './der.js';
import { detectForm, refuseForeignForm } from './detect-form.js';
import { formatDidKey, readDidKey } from './did-key.js';
import { checkEd25519PublicKey, type Ed25519KeyFault } from './ed25519-point.js';
import { formatPublicJwk, readPublicJwk } from './jwk.js';
import {
  ED25519_LENGTH,
  type KeyAlgorithm,
  keyError,
  malformed,
  P256_LENGTH,
  type RawPublicKey,
  readKeyText,
} from './key-form.js';
import { ML_DSA_44_LENGTH } from './ml-dsa-44.js';
import { formatOpenSshPublic, readOpenSshPublic } from './openssh.js';
import { checkP256PublicKey, type P256KeyFault } from './p256-point.js';
import { formatPem, parsePem, pemLabel } from './pem.js';
import { formatVkey, readVkey } from './vkey.js';

export interface PublicKey {
  readonly alg: KeyAlgorithm;
  /** 32 bytes (RFC 8032) for ed25519, 65 bytes (SEC1, uncompressed) for p256, 1312 bytes (FIPS 204) for ml-dsa-44. */
  readonly bytes: Uint8Array;
  /** 43 characters of base64url: see {@link keyThumbprint}. */
  readonly keyid: string;
}

/** `cosigner` is the vkey of a witness. */
export type PublicKeyForm = 'wire' | 'pem' | 'openssh' | 'vkey' | 'cosigner' | 'did' | 'jwk';

type PublicKeyFault = Ed25519KeyFault | P256KeyFault;

const LENGTH: Readonly<Record<KeyAlgorithm, number>> = {
  ed25519: ED25519_LENGTH,
  p256: P256_LENGTH,
  'ml-dsa-44': ML_DSA_44_LENGTH,
};

/**
 * A public key of the given bytes, which are copied. Checks only their length, see {@link checkPublicKey}.
 *
 * @throws TypeError for an unknown `alg` or no Uint8Array; RangeError for a wrong length
 */
export function makePublicKey(alg: KeyAlgorithm, bytes: Uint8Array): PublicKey {
  if (!Object.hasOwn(LENGTH, alg)) throw new TypeError('expected alg to be ed25519, p256 or ml-dsa-44');
  if (!(bytes instanceof Uint8Array)) throw new TypeError('expected bytes to be a Uint8Array');
  if (bytes.length !== LENGTH[alg])
    throw new RangeError(`expected ${LENGTH[alg]} bytes, found ${bytes.length}`);
  const raw = { alg, bytes: new Uint8Array(bytes) };
  return Object.freeze({ ...raw, keyid: keyThumbprint(raw) });
}

/**
 * The key id (SPEC §4, §7), in base64url: the SHA-256 thumbprint of the JWK (RFC 7638; RFC 8037 §2 for ed25519); for ml-dsa-44
 * the SHA-256 of {@link formatPublicKey}.
 */
export function keyThumbprint(key: RawPublicKey): string {
  return sha256Base64url(encodeUtf8(key.alg === 'ml-dsa-44' ? formatPublicKey(key) : formatPublicJwk(key)));
}

/**
 * Whether a signature by this key can be valid (SPEC §5): an Ed25519 key must be canonically encoded, on the curve, not of small
 * order and torsion-free (about 1.5 ms); a P-256 key an uncompressed point of the curve; an ML-DSA-44 key any 1312 bytes.
 */
export function checkPublicKey(key: RawPublicKey): 'ok' | PublicKeyFault {
  switch (key.alg) {
    case 'ed25519':
      return checkEd25519PublicKey(key.bytes);
    case 'p256':
      return checkP256PublicKey(key.bytes);
    case 'ml-dsa-44':
      return key.bytes.length === ML_DSA_44_LENGTH ? 'ok' : 'wrong_length';
  }
}

/** A fault of {@link checkPublicKey} in words. */
export function describeKeyFault(fault: PublicKeyFault): string {
  return FAULTS[fault];
}

const FAULTS: Readonly<Record<PublicKeyFault, string>> = {
  wrong_length: 'a key of another length',
  not_canonical: 'a point that is not canonically encoded',
  small_order: 'a point of small order',
  not_on_curve: 'a point that is not on the curve',
  not_torsion_free: 'a point that is not torsion-free',
  not_uncompressed: 'a point that is not in uncompressed form',
};

/** The text of keys in ledgers and trust policies (SPEC §7): `ed25519:`, `p256:` or `ml-dsa-44:`, and base64url. */
export function formatPublicKey(key: RawPublicKey): string {
  return `${key.alg}:${encodeBase64url(key.bytes)}`;
}

/** Reads exactly what {@link formatPublicKey} writes; `undefined` for other text. Checks only the length. */
export function tryParseWirePublicKey(text: string): PublicKey | undefined {
  const [, alg = '', base64 = ''] = /^(ed25519|p256|ml-dsa-44):([A-Za-z0-9_-]{43,1750})$/.exec(text) ?? [];
  if (!isKeyAlgorithm(alg)) return undefined;
  const bytes = tryDecodeBase64url(base64);
  return bytes?.length === LENGTH[alg] ? makePublicKey(alg, bytes) : undefined;
}

function isKeyAlgorithm(alg: string): alg is KeyAlgorithm {
  return Object.hasOwn(LENGTH, alg);
}

/**
 * Writes a key in one of its forms. `pem` ends in a newline, the others are one line without one.
 *
 * @param name - The key name of a `vkey` or `cosigner` (required there), or the comment of `openssh`.
 * @throws TypeError for an unknown form or a vkey without a name; RangeError for a name that the form cannot hold
 * @throws NorthrootError `KEY_UNSUPPORTED` if the form lacks the algorithm (a vkey of P-256, a JWK of ML-DSA-44);
 *   `KEY_MALFORMED` for a P-256 key off the curve as did:key
 */
export function formatPublicKeyAs(key: RawPublicKey, form: PublicKeyForm, name?: string): string {
  switch (form) {
    case 'wire':
      return formatPublicKey(key);
    case 'pem':
      return formatPem('PUBLIC KEY', formatSpki(key));
    case 'openssh':
      return formatOpenSshPublic(key, name);
    case 'vkey':
    case 'cosigner':
      if (name === undefined) throw new TypeError('expected a name for the vkey');
      return formatVkey(name, key, form === 'vkey' || key.alg === 'ml-dsa-44' ? undefined : 'cosignature');
    case 'did':
      return formatDidKey(key);
    case 'jwk':
      return formatPublicJwk(key);
    default:
      throw new TypeError('expected a form: wire, pem, openssh, vkey, cosigner, did or jwk');
  }
}

/**
 * Reads a public key in any of its forms: wire text (SPEC §7), SPKI PEM, OpenSSH, C2SP vkey, did:key, JWK, or raw: 32
 * (ed25519), 65 (p256) or 1312 bytes (ml-dsa-44), binary or as base64url, base64 or hex. JWK, OpenSSH and did:key have curves
 * only. ASCII white space around a text is ignored; names and comments are dropped.
 *
 * @throws TypeError if `input` is neither a string nor bytes
 * @throws NorthrootError `KEY_MALFORMED` (no known form, or a key by which no signature can be valid, SPEC §5),
 *   `KEY_UNSUPPORTED` (another algorithm), `KEY_IS_PRIVATE`
 * @example
 * parsePublicKey('ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIqI4910CfGV_…').keyid;
 */
export function parsePublicKey(input: string | Uint8Array): PublicKey {
  const raw = readRawBytes(input) ?? readPublicText(readKeyText(input));
  const fault = checkPublicKey(raw);
  if (fault !== 'ok') throw malformed(`a usable ${raw.alg} public key`, FAULTS[fault]);
  return makePublicKey(raw.alg, raw.bytes);
}

function readPublicText(text: string): RawPublicKey {
  refuseForeignForm(text);
  switch (detectForm(text)) {
    case 'pem':
      return readPublicPem(text);
    case 'jwk':
      return readPublicJwk(text);
    case 'did':
      return readDidKey(text);
    case 'openssh':
      return readOpenSshPublic(text);
    case 'vkey':
      return readVkey(text).key;
    case 'wire': {
      const key = tryParseWirePublicKey(text);
      if (key === undefined)
        throw malformed('ed25519:, p256: or ml-dsa-44: and the key in base64url', 'other text');
      return key;
    }
    case 'signer':
      throw keyError(
        'KEY_IS_PRIVATE',
        'expected a public key, found a signer',
        'give the vkey that belongs to it',
      );
    case 'raw': {
      const key = readRawText(text);
      if (key !== undefined) return key;
      throw keyError(
        'KEY_MALFORMED',
        'expected a public key, found text in no form of one',
        'known forms: PEM, OpenSSH, vkey, did:key, JWK, ed25519:…, p256:…, ml-dsa-44:…, 32 bytes in base64 or hex',
      );
    }
  }
}

function readPublicPem(text: string): RawPublicKey {
  const label = pemLabel(text) ?? '';
  if (label === 'PUBLIC KEY') return readSpki(parsePem(text).bytes);
  if (label.endsWith('PRIVATE KEY'))
    throw keyError(
      'KEY_IS_PRIVATE',
      'expected a public key, found a private one',
      label.startsWith('OPENSSH')
        ? 'write its public half: ssh-keygen -y -f FILE'
        : 'write its public half: openssl pkey -in FILE -pubout',
    );
  if (label === 'CERTIFICATE')
    throw keyError(
      'KEY_UNSUPPORTED',
      'expected a public key, found a certificate',
      'write its key: openssl x509 -in FILE -noout -pubkey',
    );
  if (label === 'EC PARAMETERS')
    throw malformed(
      'a public key',
      text.includes('PRIVATE KEY-----')
        ? 'the parameters of a curve and a private key'
        : 'the parameters of a curve alone',
      text.includes('PRIVATE KEY-----') ? 'write its public half: openssl pkey -in FILE -pubout' : undefined,
    );
  throw malformed(
    'a PEM block with the label PUBLIC KEY',
    label === '' ? 'other text' : `the label ${label}`,
  );
}

function readRawText(text: string): RawPublicKey | undefined {
  // The encodings of 32, 65 and 1312 bytes all differ in length.
  const bytes =
    text.length === 64 || text.length === 130 || text.length === 2624
      ? tryDecodeHex(text)
      : text.length === 43 || text.length === 87 || text.length === 1750
        ? tryDecodeBase64url(text)
        : text.length === 44 || text.length === 88 || text.length === 1752
          ? tryDecodeBase64(text)
          : undefined;
  return bytes && rawKey(bytes);
}

function readRawBytes(input: string | Uint8Array): RawPublicKey | undefined {
  // A text file can have 32 bytes too; a random key never has printable bytes only.
  if (!(input instanceof Uint8Array)) return undefined;
  const isText = input.every((byte) => byte < 0x7f && (byte >= 0x20 || byte === 0x0a));
  return isText ? undefined : rawKey(new Uint8Array(input));
}

function rawKey(bytes: Uint8Array): RawPublicKey | undefined {
  if (bytes.length === ED25519_LENGTH) return { alg: 'ed25519', bytes };
  if (bytes.length === P256_LENGTH) return { alg: 'p256', bytes };
  if (bytes.length === ML_DSA_44_LENGTH) return { alg: 'ml-dsa-44', bytes };
  return undefined;
}
