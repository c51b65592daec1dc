/**
 * Bytes by ids, in the order in which they came: each with its id in an arena of pieces, and found by open addressing. What is deleted
 * leaves a hole; a piece that is all holes is given back, and where half of the arena is holes it is packed anew.
 */

import { allocateBytes } from '../bytes/concat.js';
import { writeBase64url } from '../bytes/encoding.js';
import { ID_WORDS, IdHasher } from '../ledger/id-hash.js';

const EMPTY = 0;
const LEAST_SLOTS = 1_024;
const PIECE_BITS = 16;
/** Words of four bytes in a piece, but for one with a single longer entry. */
const PIECE_WORDS = 1 << PIECE_BITS;
/** So that an address and 1 more fit a slot. */
const MAX_PIECES = 0xffff;
/** So little is not worth packing. */
const LEAST_WORDS = 4 * PIECE_WORDS;
/** An entry: how many bytes it has, its id, its bytes up to a whole word. */
const HEAD_WORDS = 1 + ID_WORDS;
/** Beside the length, of what was deleted. */
const DELETED = 0x8000_0000;

interface Piece {
  readonly words: Uint32Array;
  filled: number;
  /** Words of entries that are not deleted. */
  live: number;
}

/** See the head of this file. */
export class PackedTable {
  #pieces: (Piece | undefined)[] = [];
  /** Addresses + 1. */
  #slots = new Uint32Array(LEAST_SLOTS);
  #size = 0;
  /** Words in all pieces, and those of them that are in use. */
  #words = 0;
  #live = 0;
  readonly #hasher = new IdHasher();
  readonly #probeBytes = allocateBytes(ID_WORDS * 4);
  readonly #probe = new Uint32Array(this.#probeBytes.buffer, this.#probeBytes.byteOffset, ID_WORDS);

  get size(): number {
    return this.#size;
  }

  /** The bytes of an id, given as 43 characters of canonical base64url. They stand there until the table is changed. */
  get(id: string): Uint8Array | undefined {
    const entry = this.#slots[this.#lookUp(id)] as number;
    return entry === EMPTY ? undefined : this.#bytesAt(entry - 1);
  }

  /** Copies bytes into the table, as its last; those that the id had are forgotten. */
  set(id: string, bytes: Uint8Array): void {
    this.delete(id);
    const length = HEAD_WORDS + Math.ceil(bytes.length / 4);
    if ((this.#size + 1) * 3 > this.#slots.length * 2) this.#rehash(this.#slots.length * 2);
    const last = this.#pieces.at(-1);
    const hasRoom = last !== undefined && last.filled + length <= last.words.length;
    if (!hasRoom && this.#isLoose()) this.#pack();
    writeBase64url(this.#probeBytes, id);
    const address = this.#append(this.#probe, bytes);
    this.#slots[this.#lookUp(id)] = address + 1;
    this.#size += 1;
  }

  delete(id: string): boolean {
    const slot = this.#lookUp(id);
    const entry = this.#slots[slot] as number;
    if (entry === EMPTY) return false;
    const number = (entry - 1) >>> PIECE_BITS;
    const piece = this.#pieces[number] as Piece;
    const at = (entry - 1) % PIECE_WORDS;
    const length = lengthAt(piece.words, at);
    piece.words[at] = (piece.words[at] as number) | DELETED;
    piece.live -= length;
    this.#live -= length;
    this.#size -= 1;
    if (piece.live === 0 && number < this.#pieces.length - 1) {
      this.#words -= piece.words.length;
      this.#pieces[number] = undefined;
    }
    this.#close(slot);
    return true;
  }

  /** Each id as its 32 bytes, and its bytes, in the order in which they came. The table is not to be changed meanwhile. */
  *entries(): Generator<readonly [id: Uint8Array, bytes: Uint8Array], void, void> {
    for (const [number, piece] of this.#pieces.entries()) {
      if (piece === undefined) continue;
      for (const at of liveOf(piece)) {
        const { buffer } = piece.words;
        const address = number * PIECE_WORDS + at;
        yield [new Uint8Array(buffer, (at + 1) * 4, ID_WORDS * 4), this.#bytesAt(address)];
      }
    }
  }

  #bytesAt(address: number): Uint8Array {
    const { words } = this.#pieceOf(address);
    const at = address % PIECE_WORDS;
    return new Uint8Array(words.buffer, (at + HEAD_WORDS) * 4, words[at]);
  }

  #pieceOf(address: number): Piece {
    return this.#pieces[address >>> PIECE_BITS] as Piece;
  }

  #isLoose(): boolean {
    return this.#pieces.length >= MAX_PIECES || (this.#words > LEAST_WORDS && this.#words > 2 * this.#live);
  }

  #append(id: Uint32Array, bytes: Uint8Array): number {
    const length = HEAD_WORDS + Math.ceil(bytes.length / 4);
    let piece = this.#pieces.at(-1);
    if (piece === undefined || piece.filled + length > piece.words.length) {
      if (this.#pieces.length >= MAX_PIECES) throw new RangeError('the table is full');
      piece = { words: new Uint32Array(Math.max(PIECE_WORDS, length)), filled: 0, live: 0 };
      this.#pieces.push(piece);
      this.#words += piece.words.length;
    }
    const at = piece.filled;
    piece.words[at] = bytes.length;
    piece.words.set(id, at + 1);
    new Uint8Array(piece.words.buffer).set(bytes, (at + HEAD_WORDS) * 4);
    piece.filled += length;
    piece.live += length;
    this.#live += length;
    return (this.#pieces.length - 1) * PIECE_WORDS + at;
  }

  /** Moves all entries together, in their order. */
  #pack(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#words = 0;
    this.#live = 0;
    this.#slots.fill(EMPTY);
    for (const [number, piece] of pieces.entries()) {
      if (piece === undefined) continue;
      pieces[number] = undefined;
      for (const at of liveOf(piece)) {
        const id = piece.words.subarray(at + 1, at + HEAD_WORDS);
        const bytes = new Uint8Array(piece.words.buffer, (at + HEAD_WORDS) * 4, piece.words[at]);
        this.#slots[this.#slotOf(id)] = this.#append(id, bytes) + 1;
      }
    }
  }

  #lookUp(id: string): number {
    writeBase64url(this.#probeBytes, id);
    return this.#slotOf(this.#probe);
  }

  /** The slot that holds an id, or the free one where it would go. */
  #slotOf(id: Uint32Array): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#hasher.hash(id, 0) & mask; ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (entry === EMPTY || this.#holds(entry - 1, id)) return slot;
    }
  }

  #holds(address: number, id: Uint32Array): boolean {
    const { words } = this.#pieceOf(address);
    const at = (address % PIECE_WORDS) + 1;
    for (let i = 0; i < ID_WORDS; i += 1) if (words[at + i] !== id[i]) return false;
    return true;
  }

  #homeOf(entry: number): number {
    const address = entry - 1;
    return (
      this.#hasher.hash(this.#pieceOf(address).words, (address % PIECE_WORDS) + 1) & (this.#slots.length - 1)
    );
  }

  /** Frees a slot: what went on behind it, since it was taken, comes nearer to its own. */
  #close(free: number): void {
    const mask = this.#slots.length - 1;
    let hole = free;
    for (let slot = (hole + 1) & mask; this.#slots[slot] !== EMPTY; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (((slot - this.#homeOf(entry)) & mask) < ((slot - hole) & mask)) continue;
      this.#slots[hole] = entry;
      hole = slot;
    }
    this.#slots[hole] = EMPTY;
  }

  #rehash(capacity: number): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(capacity);
    const mask = capacity - 1;
    for (const entry of old) {
      if (entry === EMPTY) continue;
      let slot = this.#homeOf(entry);
      while (this.#slots[slot] !== EMPTY) slot = (slot + 1) & mask;
      this.#slots[slot] = entry;
    }
  }
}

/** Words of the entry at `at`, deleted or not. */
function lengthAt(words: Uint32Array, at: number): number {
  return HEAD_WORDS + Math.ceil(((words[at] as number) % DELETED) / 4);
}

/** Where the entries of a piece stand that are not deleted. */
function* liveOf({ words, filled }: Piece): Generator<number, void, void> {
  for (let at = 0; at < filled; at += lengthAt(words, at)) if ((words[at] as number) < DELETED) yield at;
}
