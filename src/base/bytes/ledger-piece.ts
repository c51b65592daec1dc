/** Sizes of `ledger-prefix.ts`, in a file of their own for threads that load nothing else. */

/** The bytes of a piece; the last one of a file may have fewer. */
export const PIECE_BYTES = 4 * 1024 * 1024;

export const PIECE_HASH_BYTES = 32;
