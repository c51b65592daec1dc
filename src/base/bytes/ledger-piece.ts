/** The pieces of a ledger's files, see `ledger-prefix.ts`: apart from what hashes them, for threads that load nothing else. */

/** How many bytes a piece has; the last one of a file may have fewer, and none has none. */
export const PIECE_BYTES = 4 * 1024 * 1024;

/** Of the hash of a piece, a SHA-256. */
export const PIECE_HASH_BYTES = 32;
