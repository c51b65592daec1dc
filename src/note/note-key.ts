/**
 * Keys of signed notes: a name and an Ed25519 key that signs either the text of a note (type 0x01,
 * https://c2sp.org/signed-note) or a timestamped cosignature of a checkpoint (type 0x04, https://c2sp.org/tlog-cosignature).
 */

import { encodeHex } from '../bytes/encoding.js';
import { makePublicKey, type PublicKey } from '../key/public-key.js';
import { formatVkey, isKeyName, readVkey, vkeyId, type VkeyType } from '../key/vkey.js';
import { keyError } from '../key/key-form.js';
import { nodeVerifier } from '../signature/node-verifier.js';
import type { Signer } from '../signature/signer.js';
import type { VerificationKey, Verifier } from '../signature/verifier.js';
import type { NoteSignature } from './signed-note.js';

/** A key that signs notes. */
export interface NoteKey {
  readonly name: string;
  readonly type: VkeyType;
  /** The 4 bytes of the key ID as lower-case hex. */
  readonly keyId: string;
  readonly publicKey: PublicKey;
  readonly verification: VerificationKey;
}

/** The largest timestamp that a cosignature may have and that is exact here, in seconds since 1970. */
const MAX_TIMESTAMP = Number.MAX_SAFE_INTEGER;
const TIMESTAMP_BYTES = 8;
const SIGNATURE_BYTES = 64;

/**
 * A note key of an Ed25519 key.
 *
 * @param verification - The key prepared by a backend, where there is one already; node:crypto's otherwise.
 * @throws RangeError for what cannot be a key name
 * @throws NorthrootError `KEY_UNSUPPORTED` for another algorithm
 */
export function makeNoteKey(
  name: string,
  publicKey: PublicKey,
  type: VkeyType,
  verification: VerificationKey = nodeVerifier.importKey(publicKey),
): NoteKey {
  return { name, type, keyId: keyIdOf(name, publicKey, type), publicKey, verification };
}

/**
 * The note key that a vkey says, of type 0x01 or 0x04.
 *
 * @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`
 */
export function parseNoteKey(vkey: string, verifier: Verifier = nodeVerifier): NoteKey {
  const { name, type, key } = readVkey(vkey);
  const publicKey = makePublicKey(key.alg, key.bytes);
  return makeNoteKey(name, publicKey, type, verifier.importKey(publicKey));
}

/** The vkey of a note key. */
export function formatNoteKey({ name, publicKey, type }: NoteKey): string {
  return formatVkey(name, publicKey, type);
}

/**
 * Signs the text of a note under a name.
 *
 * @throws RangeError for what cannot be a key name
 * @throws NorthrootError `KEY_UNSUPPORTED` when the signer's key is not Ed25519
 */
export function signNote(text: string, name: string, signer: Signer): NoteSignature {
  const keyId = keyIdOf(name, signer.publicKey, 'ed25519');
  return { name, keyId, signature: signer.sign(Buffer.from(text)) };
}

/**
 * Cosigns the text of a checkpoint under a name.
 *
 * @param timestamp - Seconds since 1970.
 * @throws RangeError for a timestamp that is none, and for what cannot be a key name
 * @throws NorthrootError `KEY_UNSUPPORTED` when the signer's key is not Ed25519
 */
export function cosignNote(text: string, name: string, signer: Signer, timestamp: number): NoteSignature {
  if (!Number.isSafeInteger(timestamp) || timestamp < 0)
    throw new RangeError('timestamp must be in seconds since 1970');
  const signature = Buffer.alloc(TIMESTAMP_BYTES + SIGNATURE_BYTES);
  signature.writeBigUInt64BE(BigInt(timestamp));
  signature.set(signer.sign(cosignedMessage(text, timestamp)), TIMESTAMP_BYTES);
  const keyId = keyIdOf(name, signer.publicKey, 'cosignature');
  return { name, keyId, signature: new Uint8Array(signature) };
}

/** Whether `signature` is by `key` in name, key ID and type; whether it is right is another question. */
export function isSignedBy({ name, keyId }: NoteSignature, key: NoteKey): boolean {
  return key.name === name && key.keyId === keyId;
}

/**
 * Verifies a signature of a note's text by the key that it names.
 *
 * @returns `undefined` when it is wrong; the time of a cosignature in seconds since 1970, or `null` where there is none.
 */
export function verifyNoteSignature(
  text: string,
  { signature }: NoteSignature,
  { type, verification }: NoteKey,
): { readonly timestamp: number | null } | undefined {
  if (type === 'ed25519')
    return verification.verify(Buffer.from(text), signature) ? { timestamp: null } : undefined;
  if (signature.length !== TIMESTAMP_BYTES + SIGNATURE_BYTES) return undefined;
  const timestamp = Buffer.from(signature.subarray(0, TIMESTAMP_BYTES)).readBigUInt64BE();
  if (timestamp > BigInt(MAX_TIMESTAMP)) return undefined;
  const seconds = Number(timestamp);
  const isRight = verification.verify(cosignedMessage(text, seconds), signature.subarray(TIMESTAMP_BYTES));
  return isRight ? { timestamp: seconds } : undefined;
}

function cosignedMessage(text: string, timestamp: number): Uint8Array {
  return Buffer.from(`cosignature/v1\ntime ${timestamp}\n${text}`);
}

function keyIdOf(name: string, { alg, bytes }: PublicKey, type: VkeyType): string {
  if (!isKeyName(name)) throw new RangeError('expected a key name: not empty, no white space, no "+"');
  if (alg !== 'ed25519') {
    throw keyError('KEY_UNSUPPORTED', `expected an ed25519 key to sign notes, found ${alg}`);
  }
  return encodeHex(vkeyId(name, bytes, type));
}
