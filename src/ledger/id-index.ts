/**
 * The compact index of event ids that verifying and appending keep: 32 bytes an id and about six for its slot, in
 * typed arrays. Open addressing with linear probing; the hash is keyed by a secret of the process, so that ids chosen by
 * an adversary cannot all meet in one place. What it answers does not depend on that secret.
 */

import { allocateBytes } from '../bytes/concat.js';
import { decodeDigestAt } from '../bytes/base64url-digest.js';
import { writeBase64url } from '../bytes/encoding.js';

const ID_SIZE = 32;
const WORDS = ID_SIZE / 4;
const EMPTY = 0;
/** Ids stand in pieces, so that none is copied when there are more of them. */
const PIECE_BITS = 12;
const PIECE_IDS = 1 << PIECE_BITS;

/** Maps 32-byte ids to the ordinals 0, 1, 2, … in which they were added. */
export class IdIndex {
  readonly #pieces: Uint32Array[] = [];
  /** Ordinal + 1, or 0 for a free slot. At most two thirds full. */
  #slots = new Uint32Array(2048);
  #size: number;
  /** What was looked up last, and where it is or would be. */
  #lastId: string | undefined;
  #lastSlot = 0;
  readonly #secret = Uint32Array.from({ length: WORDS }, () => (Math.random() * 0x1_0000_0000) | 1);
  readonly #probeBytes = allocateBytes(ID_SIZE);
  readonly #probe = new Uint32Array(this.#probeBytes.buffer, this.#probeBytes.byteOffset, WORDS);

  /** An empty index, or one over the ids that {@link IdIndex.save} gave. */
  constructor(ids: Uint32Array = new Uint32Array(0)) {
    this.#size = ids.length / WORDS;
    for (let at = 0; at < ids.length; at += PIECE_IDS * WORDS) {
      const piece = new Uint32Array(PIECE_IDS * WORDS);
      piece.set(ids.subarray(at, at + PIECE_IDS * WORDS));
      this.#pieces.push(piece);
    }
    let capacity = this.#slots.length;
    while (this.#size * 3 > capacity * 2) capacity *= 2;
    this.#rehash(capacity);
  }

  /** The ids in the order of their ordinals, as plain data. */
  save(): Uint32Array {
    const ids = new Uint32Array(this.#size * WORDS);
    this.#pieces.forEach((piece, index) => {
      const at = index * PIECE_IDS * WORDS;
      ids.set(piece.subarray(0, Math.min(piece.length, ids.length - at)), at);
    });
    return ids;
  }

  /** The bytes of the id of an ordinal. */
  at(ordinal: number): Uint8Array {
    const { buffer, byteOffset, byteLength } = this.#wordsOf(ordinal);
    return new Uint8Array(buffer, byteOffset, byteLength).slice();
  }

  /** How many ids were added. */
  get size(): number {
    return this.#size;
  }

  /** The ordinal of an id given as 43 characters of canonical base64url, or -1. */
  find(id: string): number {
    return (this.#slots[this.#lookUp(id)] as number) - 1;
  }

  /** Adds an id that is not in the index yet and returns its ordinal. */
  add(id: string): number {
    if ((this.#size + 1) * 3 > this.#slots.length * 2) this.#rehash(this.#slots.length * 2);
    return this.#enter(this.#lookUp(id));
  }

  /** Puts the probe into a slot. */
  #enter(slot: number): number {
    if (this.#slots[slot] !== EMPTY) throw new RangeError('the id is in the index already');
    if (this.#size % PIECE_IDS === 0) this.#pieces.push(new Uint32Array(PIECE_IDS * WORDS));
    this.#wordsOf(this.#size).set(this.#probe);
    this.#size += 1;
    this.#slots[slot] = this.#size;
    return this.#size - 1;
  }

  /** As {@link IdIndex.find}, of the id whose 43 characters stand at a place. */
  findAt(bytes: Uint8Array, at: number): number {
    decodeDigestAt(bytes, at, this.#probeBytes, 0);
    this.#lastId = undefined;
    this.#lastSlot = this.#slotOf(this.#probe);
    return (this.#slots[this.#lastSlot] as number) - 1;
  }

  /** Adds the id that {@link IdIndex.findAt} was asked for last, and did not find, and returns its ordinal. */
  addLast(): number {
    if ((this.#size + 1) * 3 > this.#slots.length * 2) {
      this.#rehash(this.#slots.length * 2);
      this.#lastSlot = this.#slotOf(this.#probe);
    }
    return this.#enter(this.#lastSlot);
  }

  /** The slot of an id, which is most often asked for and then added: nothing was moved between. */
  #lookUp(id: string): number {
    if (id === this.#lastId) return this.#lastSlot;
    writeBase64url(this.#probeBytes, id);
    this.#lastId = id;
    this.#lastSlot = this.#slotOf(this.#probe);
    return this.#lastSlot;
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
    const piece = this.#pieces[ordinal >>> PIECE_BITS] as Uint32Array;
    const at = (ordinal % PIECE_IDS) * WORDS;
    for (let i = 0; i < WORDS; i += 1) if (piece[at + i] !== words[i]) return false;
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
    this.#lastId = undefined;
    this.#slots = new Uint32Array(capacity);
    for (let ordinal = 0; ordinal < this.#size; ordinal += 1) {
      this.#slots[this.#slotOf(this.#wordsOf(ordinal))] = ordinal + 1;
    }
  }

  #wordsOf(ordinal: number): Uint32Array {
    const at = (ordinal % PIECE_IDS) * WORDS;
    return (this.#pieces[ordinal >>> PIECE_BITS] as Uint32Array).subarray(at, at + WORDS);
  }
}
