/**
 * Tables of a state in memory whose entries are packed into bytes, in order of insertion: an entry takes its packed bytes and some 25 more.
 * A value that is taken out equals the one that was set, but is another object. Open addressing with linear probing; the hash is keyed by
 * a secret of the process, so that an adversary cannot choose keys that collide.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { Names } from './action-rows.js';
import { Reader, Writer } from './packing.js';
import type { Table } from './table.js';

/** How the entries of a table are packed. */
export interface Packing<V> {
  /** At most 4 KiB, and no key's bytes may begin with another's. */
  readonly writeKey: (writer: Writer, key: string) => void;
  readonly readKey: (reader: Reader) => string;
  /** @returns False for a value that is to be kept as an object. */
  readonly write: (writer: Writer, value: V) => boolean;
  readonly read: (reader: Reader, key: string) => V;
}

/** Entries are in pieces, so that growing copies none. */
const PIECE_BYTES = 1 << 16;
/** A longer entry is kept as an object. */
const MAX_ENTRY_BYTES = 1 << 14;
/** Before each entry: how many bytes it has, and how many of them are the key's. */
const HEAD_BYTES = 4;
const LEAST_BITS = 8;
/** The place of an entry that was deleted. */
const DELETED = -1;

export class PackedTable<V> implements Table<string, V> {
  readonly #packing: Packing<V>;
  readonly #names = new Names();
  readonly #writer = new Writer(this.#names);
  #pieces: Uint8Array[] = [];
  /** Where the last piece is free. */
  #free = PIECE_BYTES;
  /** Where the entries are, in order of insertion: the number of the piece, times its size, and the offset. */
  #places: number[] = [];
  /** Values that are not packed, by the number of their entry, which has only the key. */
  #objects = new Map<number, V>();
  #bits = LEAST_BITS;
  /** The numbers of entries + 1; 0 for a free slot. At most two thirds are full. */
  #slots = new Uint32Array(1 << LEAST_BITS);
  #size = 0;
  /** Bytes of entries that were deleted or have moved. */
  #unused = 0;
  readonly #secret: number[] = [];
  /** The entry that was read or set last: an event asks for the same one several times. */
  #last: { readonly key: string; readonly value: V } | undefined;

  constructor(packing: Packing<V>) {
    this.#packing = packing;
  }

  get size(): number {
    return this.#size;
  }

  has(key: string): boolean {
    return this.#find(key) !== -1;
  }

  get(key: string): V | undefined {
    if (this.#last?.key === key) return this.#last.value;
    const number = this.#find(key);
    if (number === -1) return undefined;
    const [, value] = this.#read(number);
    this.#last = { key, value };
    return value;
  }

  set(key: string, value: V): void {
    this.#last = { key, value };
    const known = this.#find(key);
    const keyLength = this.#writer.length;
    const isPacked = this.#packing.write(this.#writer, value) && this.#writer.length <= MAX_ENTRY_BYTES;
    const bytes = isPacked ? this.#writer.bytes : this.#writer.bytes.subarray(0, keyLength);
    const number = known === -1 ? this.#places.length : known;
    if (isPacked) this.#objects.delete(number);
    else this.#objects.set(number, value);
    if (known !== -1 && bytes.length <= this.#lengthOf(known)) {
      const at = this.#offsetOf(known) + HEAD_BYTES;
      this.#pieceOf(known).set(bytes, at);
      return;
    }
    if (known !== -1) this.#unused += HEAD_BYTES + this.#lengthOf(known);
    this.#places[number] = this.#append(bytes, keyLength);
    if (known !== -1) return;
    this.#size += 1;
    if (3 * this.#places.length > 2 * this.#slots.length) this.#rebuild();
    else this.#addSlot(number);
  }

  delete(key: string): boolean {
    const number = this.#find(key);
    if (number === -1) return false;
    this.#last = undefined;
    this.#unused += HEAD_BYTES + this.#lengthOf(number);
    this.#objects.delete(number);
    this.#places[number] = DELETED;
    this.#size -= 1;
    return true;
  }

  *values(): Generator<V, void, void> {
    for (const [, value] of this) yield value;
  }

  /** Keys and values. */
  *[Symbol.iterator](): Generator<[key: string, value: V], void, void> {
    for (let number = 0; number < this.#places.length; number += 1)
      if (this.#places[number] !== DELETED) yield this.#read(number);
  }

  /** Leaves the key's bytes in the writer. @returns The number of the entry; -1 for none. */
  #find(key: string): number {
    const writer = this.#writer;
    writer.begin();
    this.#packing.writeKey(writer, key);
    const { bytes } = writer;
    for (let slot = this.#slotOf(bytes, 0, bytes.length); ; slot = (slot + 1) % this.#slots.length) {
      const number = this.#slots[slot]! - 1;
      if (number === -1) return -1;
      if (this.#places[number] !== DELETED && this.#hasKey(number, bytes)) return number;
    }
  }

  #hasKey(number: number, key: Uint8Array): boolean {
    const piece = this.#pieceOf(number);
    const at = this.#offsetOf(number) + HEAD_BYTES;
    for (let i = key.length - 1; i >= 0; i -= 1) if (piece[at + i] !== key[i]) return false;
    return true;
  }

  #read(number: number): [key: string, value: V] {
    const reader = new Reader(this.#names, this.#pieceOf(number), this.#offsetOf(number) + HEAD_BYTES);
    const key = this.#packing.readKey(reader);
    return [key, this.#objects.get(number) ?? this.#packing.read(reader, key)];
  }

  #append(bytes: Uint8Array, keyLength: number): number {
    if (this.#free + HEAD_BYTES + bytes.length > PIECE_BYTES) {
      this.#pieces.push(allocateBytes(PIECE_BYTES));
      this.#free = 0;
    }
    const at = this.#free;
    const piece = this.#pieces.at(-1) as Uint8Array;
    piece[at] = bytes.length % 256;
    piece[at + 1] = bytes.length >> 8;
    piece[at + 2] = keyLength % 256;
    piece[at + 3] = keyLength >> 8;
    piece.set(bytes, at + HEAD_BYTES);
    this.#free = at + HEAD_BYTES + bytes.length;
    return (this.#pieces.length - 1) * PIECE_BYTES + at;
  }

  #pieceOf(number: number): Uint8Array {
    return this.#pieces[Math.floor(this.#places[number]! / PIECE_BYTES)]!;
  }

  #offsetOf(number: number): number {
    return this.#places[number]! % PIECE_BYTES;
  }

  #lengthOf(number: number): number {
    const piece = this.#pieceOf(number);
    const at = this.#offsetOf(number);
    return piece[at]! + 256 * piece[at + 1]!;
  }

  #keyLengthOf(number: number): number {
    const piece = this.#pieceOf(number);
    const at = this.#offsetOf(number);
    return piece[at + 2]! + 256 * piece[at + 3]!;
  }

  #rebuild(): void {
    this.#bits = LEAST_BITS;
    while (2 * (1 << this.#bits) < 5 * this.#size) this.#bits += 1;
    if (this.#size < this.#places.length || 2 * this.#unused > PIECE_BYTES * this.#pieces.length)
      this.#compact();
    this.#slots = new Uint32Array(1 << this.#bits);
    for (let number = 0; number < this.#places.length; number += 1) this.#addSlot(number);
  }

  /** Copies the entries, without what is unused. */
  #compact(): void {
    const [pieces, places, objects] = [this.#pieces, this.#places, this.#objects];
    this.#pieces = [];
    this.#free = PIECE_BYTES;
    this.#places = [];
    this.#objects = new Map();
    this.#unused = 0;
    for (const [number, place] of places.entries()) {
      if (place === DELETED) continue;
      const piece = pieces[Math.floor(place / PIECE_BYTES)]!;
      const at = place % PIECE_BYTES;
      const begin = at + HEAD_BYTES;
      const length = piece[at]! + 256 * piece[at + 1]!;
      const keyLength = piece[at + 2]! + 256 * piece[at + 3]!;
      if (objects.has(number)) this.#objects.set(this.#places.length, objects.get(number) as V);
      this.#places.push(this.#append(piece.subarray(begin, begin + length), keyLength));
    }
  }

  #addSlot(number: number): void {
    const from = this.#offsetOf(number) + HEAD_BYTES;
    let slot = this.#slotOf(this.#pieceOf(number), from, this.#keyLengthOf(number));
    while (this.#slots[slot] !== 0) slot = (slot + 1) % this.#slots.length;
    this.#slots[slot] = number + 1;
  }

  /** Multilinear, with the high bits: they depend on all of the secret. */
  #slotOf(bytes: Uint8Array, from: number, length: number): number {
    const secret = this.#secret;
    while (secret.length <= length) secret.push((Math.random() * 0x1_0000_0000) | 0);
    let hash = secret[length]!;
    for (let i = 0; i < length; i += 1) hash = (hash + Math.imul(secret[i]!, bytes[from + i]!)) | 0;
    return hash >>> (32 - this.#bits);
  }
}
