/** Scratch memory for values that are overwritten whole and live about as long as their neighbours, such as the lines of a group. */

import { allocateScratch } from '#platform';

/** The size of an allocation: allocating each array by itself costs more than filling it. */
const PIECE_BYTES = 256 * 1024;

let piece = allocateScratch(0);
let used = 0;

/** Uninitialised bytes for the caller alone. Keeping them keeps the whole piece alive. */
export function takeScratch(length: number): Uint8Array {
  if (length > PIECE_BYTES / 4) return allocateScratch(length);
  if (used + length > piece.length) {
    piece = allocateScratch(PIECE_BYTES);
    used = 0;
  }
  used += length;
  return piece.subarray(used - length, used);
}
