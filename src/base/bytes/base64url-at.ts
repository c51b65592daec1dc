/** Decodes digests and signatures (base64url without padding) in place, from the bytes of canonical JSON. */

import { encodeLatin1 } from './text.js';

const ALPHABET = encodeLatin1('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
/** The value of a byte that is not base64url. */
const NO_VALUE = 64;
const VALUES = new Uint8Array(256).fill(NO_VALUE);
ALPHABET.forEach((character, value) => (VALUES[character] = value));

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
 * @returns False if they are not canonical base64url; `target` is then undefined.
 */
export function decodeSignatureAt(bytes: Uint8Array, at: number, target: Uint8Array): boolean {
  const all = decodeGroups(bytes, at, 21, target, 0);
  const high = VALUES[bytes[at + 84]!]!;
  const low = VALUES[bytes[at + 85]!]!;
  target[63] = (high << 2) | (low >>> 4);
  // The last character carries two bits of the byte; the other four must be 0.
  return (all | high | low) < NO_VALUE && (low & 15) === 0;
}

/** Decodes `count` groups of four characters to three bytes each. Returns the OR of all values, to detect {@link NO_VALUE}. */
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
