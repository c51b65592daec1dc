/**
 * SHA-256 (FIPS 180-4): as 32 bytes; as 43 characters of base64url, the form of digests in events (SPEC §2); as a binary string of
 * 32 characters, the fastest form in Node; and incrementally.
 */

export { createSha256, sha256, sha256Base64url, sha256Latin1 } from '#platform';
export type { Hasher } from '../platform/platform.js';
