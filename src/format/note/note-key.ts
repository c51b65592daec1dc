/**
 * Keys of signed notes: a name and a key. An Ed25519 key signs the text of a note (type 0x01, https://c2sp.org/signed-note) or a
 * timestamped cosignature of a checkpoint (type 0x04, https://c2sp.org/tlog-cosignature). An ML-DSA-44 key (type 0x06, ibid.) signs a
 * checkpoint's tree with the time, as the log or as a witness, depending on its name; extension lines are not covered.
 */

import { concatBytes } from '../../base/bytes/concat.js';
import { encodeHex } from '../../base/bytes/encoding.js';
import { encodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { keyError, malformed } from '../key/key-form.js';
import { ML_DSA_44_SIGNATURE_LENGTH } from '../key/ml-dsa-44.js';
import { checkPublicKey, describeKeyFault, makePublicKey, type PublicKey } from '../key/public-key.js';
import { algorithmOf, formatVkey, isKeyName, readVkey, vkeyId, type VkeyType } from '../key/vkey.js';
import type { SignatureBackend, VerificationKey } from '../signature/backend.js';
import { defaultBackend } from '../signature/default-backend.js';
import type { Signer } from '../signature/signer.js';
import { decodeCheckpointText } from './checkpoint.js';
import type { NoteSignature } from './signed-note.js';

export interface NoteKey {
  readonly name: string;
  readonly type: VkeyType;
  /** The 4 bytes of the key ID as lower-case hex. */
  readonly keyId: string;
  readonly publicKey: PublicKey;
  readonly verification: VerificationKey;
}

/** The largest exact timestamp, in seconds since 1970. */
const MAX_TIMESTAMP = Number.MAX_SAFE_INTEGER;
const TIMESTAMP_BYTES = 8;
/** The longest name in an ML-DSA-44 signature's message. */
export const MAX_ML_DSA_NAME_BYTES = 255;
const SUBTREE_LABEL = encodeLatin1('subtree/v1\n\0');

/** The length of a cosignature without its timestamp. */
const SIGNATURE_BYTES: Readonly<Record<Exclude<VkeyType, 'ed25519'>, number>> = {
  cosignature: 64,
  'ml-dsa-44': ML_DSA_44_SIGNATURE_LENGTH,
};

/**
 * A note key of an Ed25519 key, or for type `ml-dsa-44` of an ML-DSA-44 key.
 *
 * @param verification - The key prepared by a backend. Default: by the default backend.
 * @throws RangeError if `name` is no key name
 * @throws NorthrootError `KEY_UNSUPPORTED` for another algorithm; `KEY_MALFORMED` for an unusable key (SPEC §5)
 */
export function makeNoteKey(
  name: string,
  publicKey: PublicKey,
  type: VkeyType,
  verification: VerificationKey = defaultBackend.importKey(publicKey),
): NoteKey {
  const keyId = keyIdOf(name, publicKey, type);
  if (!verification.usable) {
    const fault = checkPublicKey(publicKey);
    throw malformed(
      'a usable key of notes',
      fault === 'ok' ? 'one that verifies nothing' : describeKeyFault(fault),
    );
  }
  return { name, type, keyId, publicKey, verification };
}

/**
 * The note key of a vkey of type 0x01, 0x04 or 0x06.
 *
 * @throws NorthrootError `KEY_MALFORMED` (no vkey, or an unusable key, SPEC §5), `KEY_UNSUPPORTED` (another type)
 */
export function parseNoteKey(vkey: string, backend: SignatureBackend = defaultBackend): NoteKey {
  const { name, type, key } = readVkey(vkey);
  const publicKey = makePublicKey(key.alg, key.bytes);
  return makeNoteKey(name, publicKey, type, backend.importKey(publicKey));
}

/** The vkey of a note key. */
export function formatNoteKey({ name, publicKey, type }: NoteKey): string {
  return formatVkey(name, publicKey, type);
}

/** Whether a key of this type can be a log's, which signs checkpoints under its own name, usually its origin. */
export function canBeLogKey({ type }: { readonly type: VkeyType }): boolean {
  return type !== 'cosignature';
}

/** Whether a key of this type can be a witness's. */
export function canBeWitnessKey({ type }: { readonly type: VkeyType }): boolean {
  return type !== 'ed25519';
}

/**
 * Signs the text of a note as its log: an Ed25519 key signs the text (type 0x01), an ML-DSA-44 key its tree (type 0x06).
 *
 * @param timestamp - For ML-DSA-44: when the tree was the log's largest, in seconds since 1970; 0 for no statement.
 * @throws RangeError if `name` is no key name; for ML-DSA-44 also for a text that is no checkpoint, a name or an origin of
 *   more than 255 bytes, and an invalid timestamp
 * @throws NorthrootError `KEY_UNSUPPORTED` for a P-256 key
 */
export function signNote(text: string, name: string, signer: Signer, timestamp = 0): NoteSignature {
  if (signer.publicKey.alg === 'ml-dsa-44') return cosignNote(text, name, signer, timestamp);
  const keyId = keyIdOf(name, signer.publicKey, 'ed25519');
  return { name, keyId, signature: signer.sign(encodeUtf8(text)) };
}

/**
 * Cosigns the text of a checkpoint: type 0x04 with an Ed25519 key, 0x06 with an ML-DSA-44 key.
 *
 * @param timestamp - Seconds since 1970.
 * @throws RangeError, NorthrootError as {@link signNote}
 */
export function cosignNote(text: string, name: string, signer: Signer, timestamp: number): NoteSignature {
  if (!Number.isSafeInteger(timestamp) || timestamp < 0)
    throw new RangeError('timestamp must be in seconds since 1970');
  const type = signer.publicKey.alg === 'ml-dsa-44' ? 'ml-dsa-44' : 'cosignature';
  const keyId = keyIdOf(name, signer.publicKey, type);
  const message = cosignedMessage(type, name, text, timestamp);
  if (message === undefined)
    throw new RangeError(
      `expected a checkpoint, and a name and an origin of at most ${MAX_ML_DSA_NAME_BYTES} bytes, to sign with ml-dsa-44`,
    );
  return { name, keyId, signature: concatBytes([uint64(timestamp), signer.sign(message)]) };
}

/** Whether `signature` names `key`. It is not verified. */
export function isSignedBy({ name, keyId }: NoteSignature, key: NoteKey): boolean {
  return key.name === name && key.keyId === keyId;
}

/**
 * Verifies a signature of a note's text by the key that it names.
 *
 * @returns `undefined` if it is invalid; the time of a cosignature in seconds since 1970, `null` for type 0x01.
 */
export function verifyNoteSignature(
  text: string,
  { signature }: NoteSignature,
  { name, type, verification }: NoteKey,
): { readonly timestamp: number | null } | undefined {
  if (type === 'ed25519')
    return verification.verify(encodeUtf8(text), signature) ? { timestamp: null } : undefined;
  if (signature.length !== TIMESTAMP_BYTES + SIGNATURE_BYTES[type]) return undefined;
  const timestamp = new DataView(signature.buffer, signature.byteOffset).getBigUint64(0);
  if (timestamp > BigInt(MAX_TIMESTAMP)) return undefined;
  const seconds = Number(timestamp);
  const message = cosignedMessage(type, name, text, seconds);
  const isValid = message !== undefined && verification.verify(message, signature.subarray(TIMESTAMP_BYTES));
  return isValid ? { timestamp: seconds } : undefined;
}

/** The message of a cosignature; `undefined` if ML-DSA-44 cannot sign the text. */
function cosignedMessage(
  type: VkeyType,
  name: string,
  text: string,
  timestamp: number,
): Uint8Array | undefined {
  return type === 'ml-dsa-44'
    ? subtreeMessage(name, text, timestamp)
    : encodeUtf8(`cosignature/v1\ntime ${timestamp}\n${text}`);
}

/** tlog-cosignature's `cosigned_message` of a whole tree. */
function subtreeMessage(name: string, text: string, timestamp: number): Uint8Array | undefined {
  const decoded = decodeCheckpointText(text);
  if (!decoded.ok) return undefined;
  const checkpoint = decoded.value;
  const [cosigner, origin] = [encodeUtf8(name), encodeUtf8(checkpoint.origin)];
  if (cosigner.length > MAX_ML_DSA_NAME_BYTES || origin.length > MAX_ML_DSA_NAME_BYTES) return undefined;
  return concatBytes([
    SUBTREE_LABEL,
    Uint8Array.of(cosigner.length),
    cosigner,
    uint64(timestamp),
    Uint8Array.of(origin.length),
    origin,
    uint64(0),
    uint64(checkpoint.size),
    encodeLatin1(checkpoint.root),
  ]);
}

function uint64(value: number): Uint8Array {
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(value));
  return bytes;
}

function keyIdOf(name: string, { alg, bytes }: PublicKey, type: VkeyType): string {
  if (!isKeyName(name)) throw new RangeError('expected a key name: not empty, no white space, no "+"');
  if (alg !== algorithmOf(type))
    throw keyError('KEY_UNSUPPORTED', `expected an ${algorithmOf(type)} key to sign notes, found ${alg}`);
  return encodeHex(vkeyId(name, bytes, type));
}
