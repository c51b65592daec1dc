/**
 * C2SP signed-note keys (https://c2sp.org/signed-note): a verifier key ("vkey") is
 * `name+hex(key ID)+base64(0x01 ‖ public key)`, the signer that Go's `note` package writes is
 * `PRIVATE+KEY+name+hex(key ID)+base64(0x01 ‖ seed)`, and the key ID is
 * SHA-256(name ‖ "\n" ‖ 0x01 ‖ public key)[:4]. A type says how a signature is made too: 0x01 is Ed25519 over the text of a
 * note, 0x04 a timestamped Ed25519 cosignature, 0x06 a timestamped ML-DSA-44 one (https://c2sp.org/tlog-cosignature), which logs
 * sign with too. Other types are not known here.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { encodeBase64, encodeHex, tryDecodeBase64, tryDecodeHex } from '../../base/bytes/encoding.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import {
  ED25519_LENGTH,
  type KeyAlgorithm,
  keyError,
  malformed,
  type RawPrivateKey,
  type RawPublicKey,
  SECRET_LENGTH,
} from './key-form.js';
import { ML_DSA_44_LENGTH } from './ml-dsa-44.js';

/** How a key signs notes: its text (0x01); a cosignature with the time (0x04); or one of ML-DSA-44 (0x06), of logs and witnesses. */
export type VkeyType = 'ed25519' | 'cosignature' | 'ml-dsa-44';

const TYPE_BYTES: Readonly<Record<VkeyType, number>> = {
  ed25519: 0x01,
  cosignature: 0x04,
  'ml-dsa-44': 0x06,
};
const VKEY_TYPES = Object.keys(TYPE_BYTES) as VkeyType[];
export const SIGNER_PREFIX = 'PRIVATE+KEY+';

/** What a vkey or signer text says. `id` is its 4-byte key ID, `key` the public key or the seed. */
interface NamedKey {
  readonly name: string;
  readonly id: Uint8Array;
  readonly type: VkeyType;
  readonly key: Uint8Array;
}

/** A verifier key: a name, how it signs, and the key that signs under it. */
export interface Vkey {
  readonly name: string;
  readonly type: VkeyType;
  readonly key: RawPublicKey;
}

/** @throws NorthrootError `KEY_MALFORMED` (shape, encoding, key ID), `KEY_UNSUPPORTED` (another type than 0x01, 0x04 and 0x06) */
export function readVkey(text: string): Vkey {
  const { name, id, type, key } = splitNamedKey(text, 'a vkey (name+hash+base64)', publicLength);
  if (!equalBytes(id, vkeyId(name, key, type)))
    throw malformed("a vkey with its key's own hash", 'another hash');
  return { name, type, key: { alg: algorithmOf(type), bytes: key } };
}

/**
 * The type of a vkey that has the form of one and a type that is not known here, as in `0x02`; `undefined` for any other text. Its
 * key ID is not looked at: how it is made is the type's own affair.
 */
export function tryUnknownVkeyType(text: string): string | undefined {
  const parts = trySplit(text);
  if (parts === undefined || typeOf(parts.typed) !== undefined) return undefined;
  return hexType(parts.typed);
}

/**
 * The seed of a signer and the key ID that its public key must have under its name.
 *
 * @throws NorthrootError `KEY_MALFORMED`, `KEY_UNSUPPORTED`
 */
export function readNoteSigner(text: string): {
  readonly key: RawPrivateKey;
  readonly name: string;
  readonly id: Uint8Array;
  readonly type: VkeyType;
} {
  const { name, id, type, key } = splitNamedKey(
    text.slice(SIGNER_PREFIX.length),
    'a signer (PRIVATE+KEY+name+hash+base64)',
    () => SECRET_LENGTH,
  );
  if (type === 'cosignature') throw unsupported(Uint8Array.of(TYPE_BYTES[type]));
  return { key: { alg: algorithmOf(type), secret: key }, name, id, type };
}

/**
 * @throws RangeError when `name` is not a key name
 * @param type - Unless given, 0x01 for an Ed25519 key and 0x06 for one of ML-DSA-44.
 * @throws NorthrootError `KEY_UNSUPPORTED` for a key that is not of the type's algorithm
 */
export function formatVkey(
  name: string,
  key: RawPublicKey,
  type: VkeyType = key.alg === 'ml-dsa-44' ? 'ml-dsa-44' : 'ed25519',
): string {
  if (!isKeyName(name)) throw new RangeError('expected a key name: not empty, no white space, no "+"');
  if (key.alg !== algorithmOf(type)) {
    throw keyError('KEY_UNSUPPORTED', `expected an ${algorithmOf(type)} key for a vkey, found ${key.alg}`);
  }
  const typed = Uint8Array.of(TYPE_BYTES[type], ...key.bytes);
  return `${name}+${encodeHex(vkeyId(name, key.bytes, type))}+${encodeBase64(typed)}`;
}

/** The algorithm of the keys that sign so. */
export function algorithmOf(type: VkeyType): KeyAlgorithm {
  return type === 'ml-dsa-44' ? 'ml-dsa-44' : 'ed25519';
}

/** The 4-byte key ID of a key under a name. */
export function vkeyId(name: string, publicKey: Uint8Array, type: VkeyType = 'ed25519'): Uint8Array {
  const typed = Uint8Array.of(TYPE_BYTES[type], ...publicKey);
  return sha256(concatBytes([encodeUtf8(`${name}\n`), typed])).slice(0, 4);
}

/** Whether `name` can name a key in a signed note: not empty, without Unicode spaces, "+", control characters and lone surrogates. */
export function isKeyName(name: string): boolean {
  return /^[^\s+\p{Z}\p{Cc}\p{Cs}]+$/u.test(name);
}

function publicLength(type: VkeyType): number {
  return type === 'ml-dsa-44' ? ML_DSA_44_LENGTH : ED25519_LENGTH;
}

function splitNamedKey(text: string, form: string, lengthOf: (type: VkeyType) => number): NamedKey {
  const parts = trySplit(text);
  if (parts === undefined) throw malformed(form, 'other text');
  const { name, id, typed } = parts;
  const type = typeOf(typed);
  if (type === undefined) throw unsupported(typed);
  const length = lengthOf(type);
  if (typed.length !== 1 + length) {
    throw malformed(`${length} bytes of key after its type`, `${typed.length - 1}`);
  }
  return { name, id, type, key: typed.slice(1) };
}

/** The three parts of a named key; `typed` is not empty. */
function trySplit(
  text: string,
): { readonly name: string; readonly id: Uint8Array; readonly typed: Uint8Array } | undefined {
  const first = text.indexOf('+');
  const second = text.indexOf('+', first + 1);
  const name = text.slice(0, Math.max(first, 0));
  const idText = text.slice(first + 1, Math.max(second, 0));
  if (second === -1 || !isKeyName(name)) return undefined;
  const id = /^[0-9a-f]{8}$/.test(idText) ? tryDecodeHex(idText) : undefined;
  const typed = tryDecodeBase64(text.slice(second + 1));
  return id === undefined || typed === undefined || typed.length === 0 ? undefined : { name, id, typed };
}

function typeOf(typed: Uint8Array): VkeyType | undefined {
  return VKEY_TYPES.find((each) => TYPE_BYTES[each] === typed[0]);
}

function hexType(typed: Uint8Array): string {
  return `0x${encodeHex(typed.subarray(0, 1))}`;
}

function unsupported(typed: Uint8Array): Error {
  return keyError(
    'KEY_UNSUPPORTED',
    `expected a key of type 0x01 (Ed25519), 0x04 (cosignature) or 0x06 (ML-DSA-44), found type ${hexType(typed)}`,
  );
}
