/**
 * A compact index of event ids in typed arrays: 32 bytes per id and about six for its slot. Open addressing with linear probing; the hash
 * is keyed by a secret of the process, so that an adversary cannot choose ids that collide. Beyond a limit ids are spilled to temporary
 * files (`id-runs.ts`). Results depend on neither.
 */

import { decodeDigestAt } from '../../base/bytes/base64url-at.js';
import { allocateBytes } from '../../base/bytes/concat.js';
import { writeBase64url } from '../../base/bytes/encoding.js';
import type { ScratchFile } from '../source/scratch-file.js';
import { ID_WORDS, type IdHashes, IdRuns, type TakeEntry } from './id-runs.js';

const ID_SIZE = ID_WORDS * 4;
const EMPTY = 0;
/** Ids are kept in pieces, so that growing copies none. */
const PIECE_BITS = 12;
const PIECE_IDS = 1 << PIECE_BITS;
const PIECE_WORDS = PIECE_IDS * ID_WORDS;
const LEAST_SLOTS = 2_048;
/** Slots are refilled in so many parts, by the first bits of the hashes: a part of a million ids fits the nearest cache. */
const PARTS = 256;
const PART_SHIFT = 24;
/** A small cache of spilled ids that were found: many events name one grant. */
const FOUND = 256;

interface IdLimit {
  /** The maximum number of ids; read when the index is bounded and after each spill. */
  readonly ids: () => number;
  /** Makes a temporary file. */
  readonly open: () => ScratchFile;
}

/** How many ids fit into so many bytes; at least about a thousand. */
export function idsWithin(bytes: number): number {
  let most = maxIdsOf(LEAST_SLOTS);
  for (let slots = LEAST_SLOTS; slots * 4 < bytes; slots *= 2)
    most = Math.max(most, Math.min(maxIdsOf(slots), Math.floor((bytes - slots * 4) / ID_SIZE)));
  return most;
}

/** Slots are at most two thirds full. */
function maxIdsOf(slots: number): number {
  return Math.floor((slots * 2) / 3);
}

/** Maps 32-byte ids to the ordinals 0, 1, 2, … in which they were added. */
export class IdIndex {
  readonly #pieces: Uint32Array[] = [];
  /** How many of the first pieces are shared with the caller: they are not written to. */
  #shared = 0;
  /**
   * Ordinal + 1, less the spilled ones; 0 for a free slot. The unused high bits are of the hash, so that few wrong ids need to be
   * compared.
   */
  #slots = new Uint32Array(LEAST_SLOTS);
  /** How many bits of an entry are the ordinal. */
  #bits = Math.log2(LEAST_SLOTS);
  #size: number;
  /** How many were spilled: the ids in memory came after them. */
  #away = 0;
  #limit: IdLimit | undefined;
  #most = Infinity;
  #runs: IdRuns | undefined;
  #found: Uint32Array | undefined;
  /** The last id that was looked up, and its slot or the free one for it. */
  #lastId: string | undefined;
  #lastSlot = 0;
  #lastHash = 0;
  readonly #secret = Uint32Array.from({ length: ID_WORDS }, () => (Math.random() * 0x1_0000_0000) | 1);
  readonly #probeBytes = allocateBytes(ID_SIZE);
  readonly #probe = new Uint32Array(this.#probeBytes.buffer, this.#probeBytes.byteOffset, ID_WORDS);

  /** An empty index, or one of the ids from {@link IdIndex.save}, which it keeps and does not change. */
  constructor(parts: readonly Uint32Array[] = []) {
    let words = 0;
    for (const part of parts) {
      if (words % PIECE_WORDS !== 0) throw new RangeError('the ids are not divided into whole pieces');
      words += part.length;
      for (let at = 0; at < part.length; at += PIECE_WORDS)
        this.#pieces.push(part.subarray(at, at + PIECE_WORDS));
    }
    this.#size = words / ID_WORDS;
    this.#shared = Math.floor(this.#size / PIECE_IDS);
    const last = this.#pieces[this.#shared];
    if (last !== undefined) {
      this.#pieces[this.#shared] = new Uint32Array(PIECE_WORDS);
      this.#pieces[this.#shared]?.set(last);
    }
    let capacity = this.#slots.length;
    while (this.#size > maxIdsOf(capacity)) capacity *= 2;
    this.#rehash(capacity);
  }

  /**
   * Spills ids beyond a limit from now on.
   *
   * @throws NorthrootError of a file; so does any later call that looks for ids or adds them
   */
  bound(limit: IdLimit): void {
    this.#limit = limit;
    this.#most = limit.ids();
    if (this.#inMemory > this.#most) this.#putAway();
  }

  /** Releases the temporary files. Spilled ids are lost. */
  close(): void {
    this.#runs?.close();
  }

  /** Bytes in memory for spilled ids. */
  get awayBytes(): number {
    return this.#runs?.bytes ?? 0;
  }

  /** The ids by ordinal, in parts, which may be shared with the index. */
  save(): readonly Uint32Array[] {
    if (this.#runs === undefined) {
      const words = this.#size * ID_WORDS;
      return this.#pieces.map((piece, index) => piece.subarray(0, words - index * PIECE_WORDS));
    }
    const ids = new Uint32Array(this.#size * ID_WORDS);
    this.each((words, at, ordinal) => ids.set(words.subarray(at, at + ID_WORDS), ordinal * ID_WORDS));
    return [ids];
  }

  /** Calls back with every id: spilled ones first, in no order, then the others by ordinal. */
  each(take: TakeEntry): void {
    this.#runs?.each(take);
    for (let index = 0; index < this.#inMemory; index += 1)
      take(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, this.#away + index);
  }

  /** How many ids were added. */
  get size(): number {
    return this.#size;
  }

  /** The ordinal of an id given as 43 characters of canonical base64url, or -1. */
  find(id: string): number {
    return this.#ordinalAt(this.#lookUp(id));
  }

  /** The ordinal of the probe, whose slot this is. */
  #ordinalAt(slot: number): number {
    const entry = this.#slots[slot] as number;
    if (entry !== EMPTY) return this.#away + this.#indexOf(entry);
    return this.#runs === undefined ? -1 : this.#findAway(this.#runs);
  }

  /** Adds an id that {@link IdIndex.find} does not find and returns its ordinal. */
  add(id: string): number {
    this.#makeRoom();
    return this.#enter(this.#lookUp(id));
  }

  /** {@link IdIndex.find} for the id whose 43 characters are at an offset. */
  findAt(bytes: Uint8Array, at: number): number {
    decodeDigestAt(bytes, at, this.#probeBytes, 0);
    this.#lastId = undefined;
    this.#lastHash = this.#hash(this.#probe, 0);
    this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#ordinalAt(this.#lastSlot);
  }

  /** {@link IdIndex.find} for the id whose eight words are at an index. @param hash - From {@link IdIndex.hash}. */
  findWords(words: Int32Array, at: number, hash: number): number {
    for (let i = 0; i < ID_WORDS; i += 1) this.#probe[i] = words[at + i] as number;
    this.#lastId = undefined;
    this.#lastHash = hash;
    this.#lastSlot = this.#slotOf(this.#probe, 0, hash);
    return this.#ordinalAt(this.#lastSlot);
  }

  /** The hash of the id whose eight words are at an index. */
  hash(words: Int32Array, at: number): number {
    return this.#hash(words, at);
  }

  /**
   * Prefetches the slots of the first `count` hashes into the processor's cache: the misses then overlap.
   *
   * @param hashes - The number after them is overwritten: otherwise a compiler might remove the reads.
   */
  prefetch(hashes: Uint32Array, count: number): void {
    const slots = this.#slots;
    let read = 0;
    for (let i = 0; i < count; i += 1) read ^= slots[this.#homeOf(hashes[i] as number)] as number;
    hashes[count] = read;
  }

  /** Adds the id of the last {@link IdIndex.findAt} or {@link IdIndex.findWords}, which found nothing. @returns Its ordinal. */
  addLast(): number {
    if (this.#makeRoom()) this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#enter(this.#lastSlot);
  }

  /** @returns Whether the slots were rebuilt. */
  #makeRoom(): boolean {
    const isFull = this.#inMemory >= this.#most;
    if (isFull) this.#putAway();
    if (this.#inMemory + 1 <= maxIdsOf(this.#slots.length)) return isFull;
    this.#rehash(this.#slots.length * 2);
    return true;
  }

  /** Writes the probe to a slot. */
  #enter(slot: number): number {
    if (this.#slots[slot] !== EMPTY) throw new RangeError('the id is in the index already');
    const index = this.#inMemory;
    if (index >>> PIECE_BITS === this.#pieces.length) this.#pieces.push(new Uint32Array(PIECE_WORDS));
    this.#pieceOf(index).set(this.#probe, (index % PIECE_IDS) * ID_WORDS);
    this.#slots[slot] = this.#entryOf(index, this.#lastHash);
    this.#size += 1;
    return this.#size - 1;
  }

  get #inMemory(): number {
    return this.#size - this.#away;
  }

  /** The slot of an id. Most are looked up and then added, without a change between. */
  #lookUp(id: string): number {
    if (id === this.#lastId) return this.#lastSlot;
    writeBase64url(this.#probeBytes, id);
    this.#lastId = id;
    this.#lastHash = this.#hash(this.#probe, 0);
    this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#lastSlot;
  }

  /** The slot of the id at `words[from]`, or the free slot for it. */
  #slotOf(words: Uint32Array, from: number, hash: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = this.#homeOf(hash); ; slot = (slot + 1) & mask) {
      const entry = this.#slots[slot] as number;
      if (entry === EMPTY) return slot;
      const isLike = (entry ^ (hash << this.#bits)) >>> this.#bits === 0;
      if (isLike && this.#holds(this.#indexOf(entry), words, from)) return slot;
    }
  }

  #entryOf(index: number, hash: number): number {
    return (hash << this.#bits) | (index + 1);
  }

  #indexOf(entry: number): number {
    return (entry & (this.#slots.length - 1)) - 1;
  }

  /** Slots are ordered by hash, except within a cluster. */
  #homeOf(hash: number): number {
    return Math.floor((hash / 0x1_0000_0000) * this.#slots.length);
  }

  #holds(index: number, words: Uint32Array, from: number): boolean {
    const piece = this.#pieceOf(index);
    const at = (index % PIECE_IDS) * ID_WORDS;
    for (let i = 0; i < ID_WORDS; i += 1) if (piece[at + i] !== words[from + i]) return false;
    return true;
  }

  #hash(words: Uint32Array | Int32Array, at: number): number {
    return hashOf(words, at, this.#secret);
  }

  #otherHash(words: Uint32Array, at: number, hash: number): number {
    let h = hash;
    for (let i = 0; i < ID_WORDS; i += 2) {
      h = Math.imul(h ^ (words[at + i] as number) ^ (this.#secret[ID_WORDS - 1 - i] as number), 0x85ebca6b);
      h ^= h >>> 16;
    }
    return Math.imul(h, 0xc2b2ae35) ^ (h >>> 13);
  }

  /**
   * Fills the slots part by part: in any other order nearly each misses the cache, which costs four times as much as everything else.
   */
  #rehash(capacity: number): void {
    this.#lastId = undefined;
    const [count, secret] = [this.#inMemory, this.#secret];
    const ends = new Uint32Array(PARTS + 1);
    for (let index = 0; index < count; index += 1) {
      const hash = hashOf(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, secret);
      const part = hash >>> PART_SHIFT;
      ends[part + 1] = (ends[part + 1] as number) + 1;
    }
    for (let part = 0; part < PARTS; part += 1)
      ends[part + 1] = (ends[part + 1] as number) + (ends[part] as number);
    const inOrder = new Uint32Array(count);
    const hashes = new Uint32Array(count);
    for (let index = 0; index < count; index += 1) {
      const hash = hashOf(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, secret);
      const part = hash >>> PART_SHIFT;
      const at = ends[part] as number;
      ends[part] = at + 1;
      inOrder[at] = index;
      hashes[at] = hash;
    }
    this.#makeSlots(capacity);
    const slots = this.#slots;
    for (let at = 0; at < count; at += 1) {
      const hash = hashes[at] as number;
      // All ids differ: they need not be compared.
      let slot = this.#homeOf(hash);
      while (slots[slot] !== EMPTY) slot = (slot + 1) & (capacity - 1);
      slots[slot] = this.#entryOf(inOrder[at] as number, hash);
    }
  }

  #makeSlots(capacity: number): void {
    this.#slots = new Uint32Array(capacity);
    this.#bits = Math.log2(capacity);
  }

  #pieceOf(index: number): Uint32Array {
    return this.#pieces[index >>> PIECE_BITS] as Uint32Array;
  }

  #findAway(runs: IdRuns): number {
    const found = (this.#found ??= new Uint32Array(FOUND * (ID_WORDS + 1)));
    const at = (this.#lastHash % FOUND) * (ID_WORDS + 1);
    let isSame = true;
    for (let i = 0; i < ID_WORDS && isSame; i += 1) isSame = found[at + i] === this.#probe[i];
    // The ordinal + 1, or 0.
    if (isSame && found[at + ID_WORDS] !== 0) return (found[at + ID_WORDS] as number) - 1;
    const ordinal = runs.find(this.#probe, this.#lastHash);
    if (ordinal !== -1) {
      found.set(this.#probe, at);
      found[at + ID_WORDS] = ordinal + 1;
    }
    return ordinal;
  }

  #putAway(): void {
    if (this.#limit === undefined) return;
    const hashes: IdHashes = {
      order: (words, at) => this.#hash(words, at),
      other: (words, at, order) => this.#otherHash(words, at, order),
    };
    this.#runs ??= new IdRuns(hashes, this.#limit.open);
    this.#runs.add(this.#inMemory, (take) => this.#inOrder(take));
    this.#away = this.#size;
    this.#lastId = undefined;
    this.#most = this.#limit.ids();
    this.#pieces.splice(0, this.#shared);
    this.#shared = 0;
    // The next ones reuse their pieces, except those that will not be needed.
    this.#pieces.length = Math.min(this.#pieces.length, Math.ceil(this.#most / PIECE_IDS));
    let capacity = this.#slots.length;
    while (capacity > LEAST_SLOTS && maxIdsOf(capacity / 2) >= this.#most) capacity /= 2;
    if (capacity === this.#slots.length) this.#slots.fill(EMPTY);
    else this.#makeSlots(capacity);
  }

  /** The ids in memory, ordered by hash: as their slots are, except within a cluster. */
  #inOrder(take: TakeEntry): void {
    interface Member {
      readonly index: number;
      readonly hash: number;
    }
    const last: Member[] = [];
    let cluster: Member[] = [];
    const give = (): void => {
      cluster.sort((a, b) => a.hash - b.hash);
      for (const { index } of cluster)
        take(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, this.#away + index);
      cluster = [];
    };
    for (let slot = 0; slot < this.#slots.length; slot += 1) {
      const entry = this.#slots[slot] as number;
      if (entry === EMPTY) {
        if (cluster.length > 0) give();
        continue;
      }
      const index = this.#indexOf(entry);
      const hash = this.#hash(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS);
      // Its cluster wrapped around to the beginning.
      if (this.#homeOf(hash) > slot) last.push({ index, hash });
      else cluster.push({ index, hash });
    }
    cluster.push(...last);
    give();
  }
}

function hashOf(words: Uint32Array | Int32Array, at: number, secret: Uint32Array): number {
  let h = 0;
  for (let i = 0; i < ID_WORDS; i += 1) {
    h = Math.imul(h ^ (words[at + i] as number) ^ (secret[i] as number), 0x9e3779b1);
    h ^= h >>> 15;
    h = Math.imul(h, secret[ID_WORDS - 1 - i] as number);
    h ^= h >>> 13;
  }
  return h >>> 0;
}
