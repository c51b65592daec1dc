/** Digests and signatures as they stand in canonical JSON, base64url without padding, decoded where they lie. */

import { encodeLatin1 } from './text.js';

const ALPHABET = encodeLatin1('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
/** What is no character of base64url has a value that none has. */
const NO_VALUE = 64;
const VALUES = new Uint8Array(256).fill(NO_VALUE);
ALPHABET.forEach((character, value) => (VALUES[character] = value));

/** What an Ed25519 signature has. */
export const SIGNATURE_BYTES = 64;
export const SIGNATURE_CHARACTERS = 86;

/** Decodes 43 characters of canonical base64url to `target[targetAt, targetAt + 32)`. */
export function decodeDigestAt(bytes: Uint8Array, at: number, target: Uint8Array, targetAt: number): void {
  decodeGroups(bytes, at, 10, target, targetAt);
  const place = at + 40;
  const bits =
    (VALUES[bytes[place]!]! << 12) | (VALUES[bytes[place + 1]!]! << 6) | VALUES[bytes[place + 2]!]!;
  target[targetAt + 30] = bits >>> 10;
  target[targetAt + 31] = bits >>> 2;
}

/**
 * Decodes 86 characters to the 64 bytes of `target`.
 *
 * @returns False where they are not canonical base64url; what `target` then holds means nothing.
 */
export function decodeSignatureAt(bytes: Uint8Array, at: number, target: Uint8Array): boolean {
  const all = decodeGroups(bytes, at, 21, target, 0);
  const high = VALUES[bytes[at + 84]!]!;
  const low = VALUES[bytes[at + 85]!]!;
  target[63] = (high << 2) | (low >>> 4);
  // The last character has two bits of the byte, and four that are 0.
  return (all | high | low) < NO_VALUE && (low & 15) === 0;
}

/** Of four characters each, three bytes; gives all their values, one over the other. */
function decodeGroups(
  bytes: Uint8Array,
  at: number,
  count: number,
  target: Uint8Array,
  targetAt: number,
): number {
  let all = 0;
  let place = at;
  let byte = targetAt;
  for (let i = 0; i < count; i += 1, place += 4, byte += 3) {
    const a = VALUES[bytes[place]!]!;
    const b = VALUES[bytes[place + 1]!]!;
    const c = VALUES[bytes[place + 2]!]!;
    const d = VALUES[bytes[place + 3]!]!;
    all |= a | b | c | d;
    target[byte] = (a << 2) | (b >>> 4);
    target[byte + 1] = (b << 4) | (c >>> 2);
    target[byte + 2] = (c << 6) | d;
  }
  return all;
}

/** Whether the 43 characters at a place are the base64url of `hash[hashAt, hashAt + 32)`. */
export function isDigestAt(bytes: Uint8Array, at: number, hash: Uint8Array, hashAt: number): boolean {
  let place = at;
  let byte = hashAt;
  for (let i = 0; i < 10; i += 1, place += 4, byte += 3) {
    const bits = (hash[byte]! << 16) | (hash[byte + 1]! << 8) | hash[byte + 2]!;
    if (
      bytes[place] !== ALPHABET[bits >>> 18] ||
      bytes[place + 1] !== ALPHABET[(bits >>> 12) & 63] ||
      bytes[place + 2] !== ALPHABET[(bits >>> 6) & 63] ||
      bytes[place + 3] !== ALPHABET[bits & 63]
    )
      return false;
  }
  const bits = (hash[byte]! << 16) | (hash[byte + 1]! << 8);
  return (
    bytes[place] === ALPHABET[bits >>> 18] &&
    bytes[place + 1] === ALPHABET[(bits >>> 12) & 63] &&
    bytes[place + 2] === ALPHABET[(bits >>> 6) & 63]
  );
}
