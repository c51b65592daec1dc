/**
 * Binary-to-text encodings, strict in both directions: a text is accepted only if encoding the decoded bytes gives
 * the same text again. `Buffer.from(x, 'base64url')` alone accepts several spellings of one digest.
 */

/** Base64url without padding (RFC 4648 §5). */
export function encodeBase64url(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64url');
}

/** Decodes canonical, unpadded base64url; `undefined` when `text` is anything else (padding, unused bits set, …). */
export function tryDecodeBase64url(text: string): Uint8Array | undefined {
  return decodeStrictly(text, 'base64url');
}

/** Standard base64 with padding (RFC 4648 §4). */
export function encodeBase64(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('base64');
}

/** Decodes canonical, padded standard base64; `undefined` when `text` is anything else. */
export function tryDecodeBase64(text: string): Uint8Array | undefined {
  return decodeStrictly(text, 'base64');
}

/** Lower-case hexadecimal. */
export function encodeHex(bytes: Uint8Array): string {
  return asBuffer(bytes).toString('hex');
}

/** Decodes hexadecimal of either case; `undefined` when `text` has an odd length or any other character. */
export function tryDecodeHex(text: string): Uint8Array | undefined {
  return /^(?:[0-9a-fA-F]{2})*$/.test(text) ? new Uint8Array(Buffer.from(text, 'hex')) : undefined;
}

/** A Buffer over the same memory. */
export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function decodeStrictly(text: string, encoding: 'base64' | 'base64url'): Uint8Array | undefined {
  const bytes = Buffer.from(text, encoding);
  return bytes.toString(encoding) === text ? new Uint8Array(bytes) : undefined;
}
