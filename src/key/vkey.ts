/**
 * C2SP signed-note keys (https://c2sp.org/signed-note): a verifier key ("vkey") is
 * `name+hex(key ID)+base64(0x01 ‖ public key)`, the signer that Go's `note` package writes is
 * `PRIVATE+KEY+name+hex(key ID)+base64(0x01 ‖ seed)`, and the key ID is
 * SHA-256(name ‖ "\n" ‖ 0x01 ‖ public key)[:4]. A type says how a signature is made too: 0x01 is Ed25519 over the text of a
 * note, 0x04 a timestamped Ed25519 cosignature (https://c2sp.org/tlog-cosignature). Other types are not known here.
 */

import { equalBytes } from '../bytes/compare.js';
import { encodeBase64, encodeHex, tryDecodeBase64, tryDecodeHex } from '../bytes/encoding.js';
import { sha256 } from '../bytes/sha256.js';
import { keyError, malformed, type RawPrivateKey, type RawPublicKey } from './key-form.js';

/** How a key signs notes: its text, or a cosignature with the time. */
export type VkeyType = 'ed25519' | 'cosignature';

const TYPE_BYTES: Readonly<Record<VkeyType, number>> = { ed25519: 0x01, cosignature: 0x04 };
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

/** @throws NorthrootError `KEY_MALFORMED` (shape, encoding, key ID), `KEY_UNSUPPORTED` (another type than 0x01 and 0x04) */
export function readVkey(text: string): Vkey {
  const { name, id, type, key } = splitNamedKey(text, 'a vkey (name+hash+base64)');
  if (!equalBytes(id, vkeyId(name, key, type)))
    throw malformed("a vkey with its key's own hash", 'another hash');
  return { name, type, key: { alg: 'ed25519', bytes: key } };
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
} {
  const { name, id, type, key } = splitNamedKey(
    text.slice(SIGNER_PREFIX.length),
    'a signer (PRIVATE+KEY+name+hash+base64)',
  );
  if (type !== 'ed25519') throw unsupported(TYPE_BYTES[type]);
  return { key: { alg: 'ed25519', secret: key }, name, id };
}

/**
 * @throws RangeError when `name` is not a key name
 * @throws NorthrootError `KEY_UNSUPPORTED` for a key that is not Ed25519
 */
export function formatVkey(name: string, key: RawPublicKey, type: VkeyType = 'ed25519'): string {
  if (!isKeyName(name)) throw new RangeError('expected a key name: not empty, no white space, no "+"');
  if (key.alg !== 'ed25519')
    throw keyError('KEY_UNSUPPORTED', `expected an ed25519 key for a vkey, found ${key.alg}`);
  const typed = Uint8Array.of(TYPE_BYTES[type], ...key.bytes);
  return `${name}+${encodeHex(vkeyId(name, key.bytes, type))}+${encodeBase64(typed)}`;
}

/** The 4-byte key ID of an Ed25519 key under a name. */
export function vkeyId(name: string, publicKey: Uint8Array, type: VkeyType = 'ed25519'): Uint8Array {
  const typed = Uint8Array.of(TYPE_BYTES[type], ...publicKey);
  return sha256(Buffer.concat([Buffer.from(`${name}\n`), typed])).slice(0, 4);
}

/** Whether `name` can name a key in a signed note: not empty, without Unicode spaces, "+", control characters and lone surrogates. */
export function isKeyName(name: string): boolean {
  return /^[^\s+\p{Z}\p{Cc}\p{Cs}]+$/u.test(name);
}

function splitNamedKey(text: string, form: string): NamedKey {
  const first = text.indexOf('+');
  const second = text.indexOf('+', first + 1);
  const name = text.slice(0, Math.max(first, 0));
  const idText = text.slice(first + 1, Math.max(second, 0));
  if (second === -1 || !isKeyName(name)) throw malformed(form, 'other text');
  const id = /^[0-9a-f]{8}$/.test(idText) ? tryDecodeHex(idText) : undefined;
  const typed = tryDecodeBase64(text.slice(second + 1));
  if (id === undefined || typed === undefined || typed.length === 0) throw malformed(form, 'other text');
  const type = typed[0] === 0x01 ? 'ed25519' : typed[0] === 0x04 ? 'cosignature' : undefined;
  if (type === undefined) throw unsupported(typed[0] as number);
  if (typed.length !== 33) throw malformed('32 bytes of key after its type', `${typed.length - 1}`);
  return { name, id, type, key: typed.slice(1) };
}

function unsupported(type: number): Error {
  return keyError(
    'KEY_UNSUPPORTED',
    `expected a key of type 0x01 (Ed25519) or 0x04 (cosignature), found type 0x${encodeHex(Uint8Array.of(type))}`,
  );
}
