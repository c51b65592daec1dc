/**
 * Views of the bytes behind one place, each made once: to make one costs as much as to hash 400 bytes. Texts of one kind have few
 * lengths, so whoever hashes them from one place needs few views. What lies there is overwritten by the next text: a view is used at once.
 */

/** Longer views are not kept. */
export const MAX_KEPT_LENGTH = 4_096;

/** See the head of this file. */
export class PrefixViews {
  readonly #buffer: ArrayBufferLike;
  readonly #offset: number;
  readonly #views = new Array<Uint8Array | undefined>(MAX_KEPT_LENGTH + 1).fill(undefined);

  /** @param offset - The place in `buffer`. */
  constructor(buffer: ArrayBufferLike, offset: number) {
    this.#buffer = buffer;
    this.#offset = offset;
  }

  /** A view of so many bytes. */
  of(length: number): Uint8Array {
    if (length > MAX_KEPT_LENGTH) return new Uint8Array(this.#buffer, this.#offset, length);
    return (this.#views[length] ??= new Uint8Array(this.#buffer, this.#offset, length));
  }
}
