/** Detects bundles by their first bytes. */

export const BUNDLE_NAME = 'northroot-bundle';
/** The tag of self-described CBOR (RFC 8949 §3.4.6), with which every bundle begins. */
export const SELF_DESCRIBED = Uint8Array.of(0xd9, 0xd9, 0xf7);

const ARRAY_OF_SIX = 0x86;
const TEXT = 0x60;
const START = Uint8Array.of(
  ...SELF_DESCRIBED,
  ARRAY_OF_SIX,
  TEXT | BUNDLE_NAME.length,
  ...Array.from(BUNDLE_NAME, (character) => character.charCodeAt(0)),
);

/** Whether bytes begin like a bundle; the first 21 are enough. */
export function isBundle(bytes: Uint8Array): boolean {
  return START.every((byte, index) => bytes[index] === byte);
}

/** How many bytes {@link isBundle} needs. */
export const BUNDLE_START_BYTES = START.length;
