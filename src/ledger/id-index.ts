/**
 * The compact index of event ids that verifying and appending keep: 32 bytes an id and about six for its slot, in
 * typed arrays. Open addressing with linear probing; the hash is keyed by a secret of the process, so that ids chosen by
 * an adversary cannot all meet in one place. What it answers does not depend on that secret.
 */

import { allocateBytes } from '../bytes/concat.js';
import { writeBase64url } from '../bytes/encoding.js';

const ID_SIZE = 32;
const WORDS = ID_SIZE / 4;
const EMPTY = 0;

/** Maps 32-byte ids to the ordinals 0, 1, 2, … in which they were added. */
export class IdIndex {
  #ids: Uint32Array;
  /** Ordinal + 1, or 0 for a free slot. At most two thirds full. */
  #slots = new Uint32Array(2048);
  #size: number;
  readonly #secret = Uint32Array.from({ length: WORDS }, () => (Math.random() * 0x1_0000_0000) | 1);
  readonly #probeBytes = allocateBytes(ID_SIZE);
  readonly #probe = new Uint32Array(this.#probeBytes.buffer, this.#probeBytes.byteOffset, WORDS);

  /** An empty index, or one over the ids that {@link IdIndex.save} gave. */
  constructor(ids: Uint32Array = new Uint32Array(0)) {
    this.#size = ids.length / WORDS;
    this.#ids = new Uint32Array(Math.max(WORDS * 1024, ids.length));
    this.#ids.set(ids);
    let capacity = this.#slots.length;
    while (this.#size * 3 > capacity * 2) capacity *= 2;
    this.#rehash(capacity);
  }

  /** The ids in the order of their ordinals, as plain data. */
  save(): Uint32Array {
    return this.#ids.slice(0, this.#size * WORDS);
  }

  /** How many ids were added. */
  get size(): number {
    return this.#size;
  }

  /** The ordinal of an id given as 43 characters of canonical base64url, or -1. */
  find(id: string): number {
    writeBase64url(this.#probeBytes, id);
    return (this.#slots[this.#slotOf(this.#probe)] as number) - 1;
  }

  /** Adds an id that is not in the index yet and returns its ordinal. */
  add(id: string): number {
    if ((this.#size + 1) * 3 > this.#slots.length * 2) this.#rehash(this.#slots.length * 2);
    if ((this.#size + 1) * WORDS > this.#ids.length) {
      const grown = new Uint32Array(this.#ids.length * 2);
      grown.set(this.#ids);
      this.#ids = grown;
    }
    writeBase64url(this.#probeBytes, id);
    const slot = this.#slotOf(this.#probe);
    if (this.#slots[slot] !== EMPTY) throw new RangeError('the id is in the index already');
    this.#ids.set(this.#probe, this.#size * WORDS);
    this.#size += 1;
    this.#slots[slot] = this.#size;
    return this.#size - 1;
  }

  /** The slot that holds `words`, or the free slot where it would go. */
  #slotOf(words: Uint32Array): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#hash(words) & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (entry === EMPTY || this.#holds(entry - 1, words)) return slot;
    }
  }

  #holds(ordinal: number, words: Uint32Array): boolean {
    const at = ordinal * WORDS;
    for (let i = 0; i < WORDS; i += 1) if (this.#ids[at + i] !== words[i]) return false;
    return true;
  }

  #hash(words: Uint32Array): number {
    let h = 0;
    for (let i = 0; i < WORDS; i += 1) {
      h = Math.imul(h ^ (words[i] as number) ^ (this.#secret[i] as number), 0x9e3779b1);
      h ^= h >>> 15;
      h = Math.imul(h, this.#secret[WORDS - 1 - i] as number);
      h ^= h >>> 13;
    }
    return h >>> 0;
  }

  #rehash(capacity: number): void {
    this.#slots = new Uint32Array(capacity);
    for (let ordinal = 0; ordinal < this.#size; ordinal += 1) {
      const at = ordinal * WORDS;
      this.#slots[this.#slotOf(this.#ids.subarray(at, at + WORDS))] = ordinal + 1;
    }
  }
}
