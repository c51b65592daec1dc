/** Longer views are not cached. */
export const MAX_KEPT_LENGTH = 4_096;

/**
 * Caches views of a buffer at one offset, by length: making one costs as much as hashing 400 bytes, and texts of one kind have few
 * lengths. The next text overwrites the bytes, so a view MUST be used at once.
 */
export class PrefixViews {
  readonly #buffer: ArrayBufferLike;
  readonly #offset: number;
  readonly #views = new Array<Uint8Array | undefined>(MAX_KEPT_LENGTH + 1).fill(undefined);

  constructor(buffer: ArrayBufferLike, offset: number) {
    this.#buffer = buffer;
    this.#offset = offset;
  }

  of(length: number): Uint8Array {
    if (length > MAX_KEPT_LENGTH) return new Uint8Array(this.#buffer, this.#offset, length);
    return (this.#views[length] ??= new Uint8Array(this.#buffer, this.#offset, length));
  }
}
