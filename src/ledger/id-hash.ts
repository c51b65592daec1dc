/** Hashes of ids for tables of them, keyed by a secret of the process: which ids meet in one place is for nobody to choose. */

export const ID_WORDS = 8;

/** See the head of this file. */
export class IdHasher {
  readonly #secret = Uint32Array.from({ length: ID_WORDS }, () => (Math.random() * 0x1_0000_0000) | 1);

  /** Of the id at `words[at]`, from 0 to 2³² − 1. */
  hash(words: Uint32Array, at: number): number {
    let h = 0;
    for (let i = 0; i < ID_WORDS; i += 1) {
      h = Math.imul(h ^ (words[at + i] as number) ^ (this.#secret[i] as number), 0x9e3779b1);
      h ^= h >>> 15;
      h = Math.imul(h, this.#secret[ID_WORDS - 1 - i] as number);
      h ^= h >>> 13;
    }
    return h >>> 0;
  }

  /** Another, of the id whose `hash` that is. */
  other(words: Uint32Array, at: number, hash: number): number {
    let h = hash;
    for (let i = 0; i < ID_WORDS; i += 2) {
      h = Math.imul(h ^ (words[at + i] as number) ^ (this.#secret[ID_WORDS - 1 - i] as number), 0x85ebca6b);
      h ^= h >>> 16;
    }
    return Math.imul(h, 0xc2b2ae35) ^ (h >>> 13);
  }
}
