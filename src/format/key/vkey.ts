/**
 * C2SP signed-note keys (https://c2sp.org/signed-note): a verifier key ("vkey") is `name+hex(key ID)+base64(type ‖ public key)`, the
 * signer of Go's `note` package is `PRIVATE+KEY+name+hex(key ID)+base64(type ‖ seed)`, and the key ID is
 * SHA-256(name ‖ "\n" ‖ type ‖ public key)[:4].
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

/**
 * How a key signs notes: Ed25519 over the text (0x01); a timestamped Ed25519 cosignature (0x04); a timestamped ML-DSA-44 signature of
 * a log or witness (0x06, https://c2sp.org/tlog-cosignature).
 */
export type VkeyType = 'ed25519' | 'cosignature' | 'ml-dsa-44';

const TYPE_BYTES: Readonly<Record<VkeyType, number>> = {
  ed25519: 0x01,
  cosignature: 0x04,
  'ml-dsa-44': 0x06,
};
const VKEY_TYPES = Object.keys(TYPE_BYTES) as VkeyType[];
export const SIGNER_PREFIX = 'PRIVATE+KEY+';

/** A parsed vkey or signer. `id` is its 4-byte key ID, `key` the public key or the seed. */
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

/** The unknown type of a well-formed vkey, such as `0x02`; `undefined` for other text. Its key ID, which depends on the type, is not checked. */
export function tryUnknownVkeyType(text: string): string | undefined {
  const parts = trySplit(text);
  if (parts === undefined || typeOf(parts.typed) !== undefined) return undefined;
  return hexType(parts.typed);
}

/**
 * The seed of a signer, and the key ID that its public key MUST have under its name.
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
 * @param type - Default: 0x01 for an Ed25519 key, 0x06 for one of ML-DSA-44.
 * @throws RangeError if `name` is no key name
 * @throws NorthrootError `KEY_UNSUPPORTED` for a key of another algorithm than the type's
 */
export function formatVkey(
  name: string,
  key: RawPublicKey,
  type: VkeyType = key.alg === 'ml-dsa-44' ? 'ml-dsa-44' : 'ed25519',
): string {
  if (!isKeyName(name)) throw new RangeError('expected a key name: not empty, no white space, no "+"');
  if (key.alg !== algorithmOf(type))
    throw keyError('KEY_UNSUPPORTED', `expected an ${algorithmOf(type)} key for a vkey, found ${key.alg}`);
  const typed = Uint8Array.of(TYPE_BYTES[type], ...key.bytes);
  return `${name}+${encodeHex(vkeyId(name, key.bytes, type))}+${encodeBase64(typed)}`;
}

/** The algorithm of a type's keys. */
export function algorithmOf(type: VkeyType): KeyAlgorithm {
  return type === 'ml-dsa-44' ? 'ml-dsa-44' : 'ed25519';
}

/** The 4-byte key ID of a key under a name. */
export function vkeyId(name: string, publicKey: Uint8Array, type: VkeyType = 'ed25519'): Uint8Array {
  const typed = Uint8Array.of(TYPE_BYTES[type], ...publicKey);
  return sha256(concatBytes([encodeUtf8(`${name}\n`), typed])).slice(0, 4);
}

/** Whether `name` is a key name: not empty, without Unicode spaces, "+", control characters and lone surrogates. */
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
  if (typed.length !== 1 + length)
    throw malformed(`${length} bytes of key after its type`, `${typed.length - 1}`);
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
