/**
 * SHA-256 (FIPS 180-4) of bytes: as 32 bytes; as 43 characters of base64url, the form that digests have in events (SPEC §2); as a
 * binary string of 32 characters, the form in which Node hashes fastest; and of bytes that come in parts.
 */

export { createSha256, sha256, sha256Base64url, sha256Latin1 } from '#platform';
export type { Hasher } from '../platform/platform.js';
