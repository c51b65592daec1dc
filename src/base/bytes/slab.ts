/** Bytes for what is written over whole and forgotten together with what was made just before and after it, such as the lines of a group. */

import { allocateScratch } from '#platform';

/** Memory is taken in pieces of this size: to make each array by itself costs more than to fill it. */
const PIECE_BYTES = 256 * 1024;

let piece = allocateScratch(0);
let used = 0;

/** Bytes of anything, which nobody else is given. Whoever keeps some keeps a piece. */
export function takeScratch(length: number): Uint8Array {
  if (length > PIECE_BYTES / 4) return allocateScratch(length);
  if (used + length > piece.length) {
    piece = allocateScratch(PIECE_BYTES);
    used = 0;
  }
  used += length;
  return piece.subarray(used - length, used);
}
