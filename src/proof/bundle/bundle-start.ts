/** How every bundle begins, for whoever has to tell files apart without reading them. */

/** What the file calls itself. */
export const BUNDLE_NAME = 'northroot-bundle';
/** CBOR's own tag, which says that CBOR follows (RFC 8949 §3.4.6): every bundle begins with it, and with its name. */
export const SELF_DESCRIBED = Uint8Array.of(0xd9, 0xd9, 0xf7);

const ARRAY_OF_SIX = 0x86;
const TEXT = 0x60;
const START = Uint8Array.of(
  ...SELF_DESCRIBED,
  ARRAY_OF_SIX,
  TEXT | BUNDLE_NAME.length,
  ...Array.from(BUNDLE_NAME, (character) => character.charCodeAt(0)),
);

/** Whether bytes begin as every bundle does; the first 21 are enough. */
export function isBundle(bytes: Uint8Array): boolean {
  return START.every((byte, index) => bytes[index] === byte);
}

/** How many bytes {@link isBundle} looks at. */
export const BUNDLE_START_BYTES = START.length;
