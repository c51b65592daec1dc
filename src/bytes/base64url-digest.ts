/** 32 bytes as they stand in canonical JSON: 43 characters of base64url, decoded where they lie. */

import { encodeLatin1 } from './text.js';

const ALPHABET = encodeLatin1('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const VALUES = new Uint8Array(256);
ALPHABET.forEach((character, value) => (VALUES[character] = value));

/** Decodes 43 characters of canonical base64url to `target[targetAt, targetAt + 32)`. */
export function decodeDigestAt(bytes: Uint8Array, at: number, target: Uint8Array, targetAt: number): void {
  let place = at;
  let byte = targetAt;
  for (let i = 0; i < 10; i += 1, place += 4, byte += 3) {
    const bits =
      (VALUES[bytes[place]!]! << 18) |
      (VALUES[bytes[place + 1]!]! << 12) |
      (VALUES[bytes[place + 2]!]! << 6) |
      VALUES[bytes[place + 3]!]!;
    target[byte] = bits >>> 16;
    target[byte + 1] = bits >>> 8;
    target[byte + 2] = bits;
  }
  const bits =
    (VALUES[bytes[place]!]! << 18) | (VALUES[bytes[place + 1]!]! << 12) | (VALUES[bytes[place + 2]!]! << 6);
  target[byte] = bits >>> 16;
  target[byte + 1] = bits >>> 8;
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
