/** The fixed prefixes of SPKI in DER (RFC 5280, RFC 5480, RFC 8410). */

/** Of the 32 bytes of an Ed25519 key. */
export const ED25519_SPKI_PREFIX = fromHex('302a300506032b6570032100');
/** Of the 65 bytes of an uncompressed P-256 point. */
export const P256_SPKI_PREFIX = fromHex('3059301306072a8648ce3d020106082a8648ce3d030107034200');
/** Of the 33 bytes of a compressed one. */
export const P256_COMPRESSED_SPKI_PREFIX = fromHex('3039301306072a8648ce3d020106082a8648ce3d030107032200');

/** The key; the name of an unsupported algorithm; `undefined` for what is not the canonical DER of a key. */
export type SpkiKey =
  | { readonly alg: 'ed25519' | 'p256'; readonly bytes: Uint8Array }
  | { readonly other: string }
  | undefined;

function fromHex(text: string): Uint8Array {
  return Uint8Array.from(text.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));
}
