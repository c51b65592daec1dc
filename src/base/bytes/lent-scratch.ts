/**
 * Large scratch memory that is lent and used again. Who verifies many ledgers, one after the other, would allocate it for each, and the
 * host's collector would look at the whole heap after every few.
 */

import { allocateScratch } from '#platform';

/** The sizes that are kept are powers of two up to a chunk of a file; a smaller request gets the smallest. */
const MIN_BYTES = 64 * 1024;
const MAX_BYTES = 1024 * 1024;
/** What two readers need that take turns: a chunk and a block each. */
const MAX_KEPT = 4;

const kept: Uint8Array[] = [];

/**
 * Uninitialised bytes, at least `length`, for the caller alone until it gives them back with {@link giveBackScratch}. If it does not,
 * they are collected like others.
 */
export function borrowScratch(length: number): Uint8Array {
  let size = MIN_BYTES;
  while (size < length) size *= 2;
  const index = kept.findIndex((bytes) => bytes.length === size);
  return (index === -1 ? undefined : kept.splice(index, 1)[0]) ?? allocateScratch(size);
}

/** Others may overwrite the bytes from now on. */
export function giveBackScratch(bytes: Uint8Array): void {
  if (bytes.length > MAX_BYTES || kept.includes(bytes)) return;
  if (kept.length === MAX_KEPT) kept.shift();
  kept.push(bytes);
}

/** Borrowed room for numbers that live until the next ones. */
export class LentNumbers {
  #bytes: Uint8Array | undefined;

  /** A copy, which the next call overwrites. */
  copy(numbers: Int32Array): Int32Array {
    if (this.#bytes === undefined || this.#bytes.length < numbers.byteLength) {
      this.giveBack();
      this.#bytes = borrowScratch(numbers.byteLength);
    }
    const copied = new Int32Array(this.#bytes.buffer, this.#bytes.byteOffset, numbers.length);
    copied.set(numbers);
    return copied;
  }

  giveBack(): void {
    if (this.#bytes !== undefined) giveBackScratch(this.#bytes);
    this.#bytes = undefined;
  }
}
