/**
 * The compact index of event ids that verifying and appending keep: 32 bytes an id and about six for its slot, in
 * typed arrays. Open addressing with linear probing; the hash is keyed by a secret of the process, so that ids chosen by
 * an adversary cannot all meet in one place. What it answers does not depend on that secret. Beyond a number of ids that it may be
 * given it puts them away in temporary files (`id-runs.ts`); what it answers does not depend on that either.
 */

import { decodeDigestAt } from '../../base/bytes/base64url-at.js';
import { allocateBytes } from '../../base/bytes/concat.js';
import { writeBase64url } from '../../base/bytes/encoding.js';
import type { ScratchFile } from '../source/scratch-file.js';
import { ID_WORDS, type IdHashes, IdRuns, type TakeEntry } from './id-runs.js';

const ID_SIZE = ID_WORDS * 4;
const EMPTY = 0;
/** Ids stand in pieces, so that none is copied when there are more of them. */
const PIECE_BITS = 12;
const PIECE_IDS = 1 << PIECE_BITS;
const PIECE_WORDS = PIECE_IDS * ID_WORDS;
const LEAST_SLOTS = 2_048;
/** When slots are filled anew they are in so many parts, by the first bits of the hashes: one of a million ids fits into the nearest cache. */
const PARTS = 256;
const PART_SHIFT = 24;
/** Of ids that were put away, where the last few that were found are: a grant is named by many events. */
const FOUND = 256;

/** How much of an index is in memory. */
export interface IdLimit {
  /** At most so many ids, asked for when the index is bounded and each time that it has put some away. */
  readonly ids: () => number;
  /** Makes a temporary file. */
  readonly open: () => ScratchFile;
}

/** How many ids so many bytes are enough for; at least about a thousand, whatever they take. */
export function idsWithin(bytes: number): number {
  let most = maxIdsOf(LEAST_SLOTS);
  for (let slots = LEAST_SLOTS; slots * 4 < bytes; slots *= 2) {
    most = Math.max(most, Math.min(maxIdsOf(slots), Math.floor((bytes - slots * 4) / ID_SIZE)));
  }
  return most;
}

/** Slots are at most two thirds full. */
function maxIdsOf(slots: number): number {
  return Math.floor((slots * 2) / 3);
}

/** Maps 32-byte ids to the ordinals 0, 1, 2, … in which they were added. */
export class IdIndex {
  readonly #pieces: Uint32Array[] = [];
  /** So many of the first pieces are somebody else's, too: they are read and not written to. */
  #shared = 0;
  /**
   * Ordinal + 1, less those put away, or 0 for a free slot. The bits above that, for which slots have no number, are of the hash: so few
   * ids need to be looked at that are not the one that is asked for.
   */
  #slots = new Uint32Array(LEAST_SLOTS);
  /** How many bits of an entry are the ordinal. */
  #bits = Math.log2(LEAST_SLOTS);
  #size: number;
  /** How many were put away: the ids in memory are those that came after them. */
  #away = 0;
  #limit: IdLimit | undefined;
  #most = Infinity;
  #runs: IdRuns | undefined;
  #found: Uint32Array | undefined;
  /** What was looked up last, and where it is or would be. */
  #lastId: string | undefined;
  #lastSlot = 0;
  #lastHash = 0;
  readonly #secret = Uint32Array.from({ length: ID_WORDS }, () => (Math.random() * 0x1_0000_0000) | 1);
  readonly #probeBytes = allocateBytes(ID_SIZE);
  readonly #probe = new Uint32Array(this.#probeBytes.buffer, this.#probeBytes.byteOffset, ID_WORDS);

  /** An empty index, or one over the ids that {@link IdIndex.save} gave: it keeps what it is given, and does not change it. */
  constructor(parts: readonly Uint32Array[] = []) {
    let words = 0;
    for (const part of parts) {
      if (words % PIECE_WORDS !== 0) throw new RangeError('the ids are not divided into whole pieces');
      words += part.length;
      for (let at = 0; at < part.length; at += PIECE_WORDS) {
        this.#pieces.push(part.subarray(at, at + PIECE_WORDS));
      }
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
   * From now on puts ids away when there are more than that in memory.
   *
   * @throws NorthrootError as files give it; so do all others that look for ids or add them, once some were put away.
   */
  bound(limit: IdLimit): void {
    this.#limit = limit;
    this.#most = limit.ids();
    if (this.#inMemory > this.#most) this.#putAway();
  }

  /** Gives temporary files back. What was put away is lost. */
  close(): void {
    this.#runs?.close();
  }

  /** How many bytes are in memory because ids were put away. */
  get awayBytes(): number {
    return this.#runs?.bytes ?? 0;
  }

  /** The ids in the order of their ordinals, in parts; they may be the index's own. */
  save(): readonly Uint32Array[] {
    if (this.#runs === undefined) {
      const words = this.#size * ID_WORDS;
      return this.#pieces.map((piece, index) => piece.subarray(0, words - index * PIECE_WORDS));
    }
    const ids = new Uint32Array(this.#size * ID_WORDS);
    this.each((words, at, ordinal) => ids.set(words.subarray(at, at + ID_WORDS), ordinal * ID_WORDS));
    return [ids];
  }

  /** Tells of every id: those that were put away first, in no order, and then the others in theirs. */
  each(take: TakeEntry): void {
    this.#runs?.each(take);
    for (let index = 0; index < this.#inMemory; index += 1) {
      take(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, this.#away + index);
    }
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

  /** As {@link IdIndex.find}, of the id whose 43 characters stand at a place. */
  findAt(bytes: Uint8Array, at: number): number {
    decodeDigestAt(bytes, at, this.#probeBytes, 0);
    this.#lastId = undefined;
    this.#lastHash = this.#hash(this.#probe, 0);
    this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#ordinalAt(this.#lastSlot);
  }

  /** As {@link IdIndex.find}, of the id whose eight words stand at a place, and whose hash {@link IdIndex.hash} gave. */
  findWords(words: Int32Array, at: number, hash: number): number {
    for (let i = 0; i < ID_WORDS; i += 1) this.#probe[i] = words[at + i] as number;
    this.#lastId = undefined;
    this.#lastHash = hash;
    this.#lastSlot = this.#slotOf(this.#probe, 0, hash);
    return this.#ordinalAt(this.#lastSlot);
  }

  /** What {@link IdIndex.findWords} is to be told of the id whose eight words stand at a place. */
  hash(words: Int32Array, at: number): number {
    return this.#hash(words, at);
  }

  /**
   * Has the processor fetch what looking for ids of the first `count` hashes will read: their misses of its cache then happen at once.
   *
   * @param hashes - What stands behind them is overwritten, or a compiler might leave all out as useless.
   */
  prefetch(hashes: Uint32Array, count: number): void {
    const slots = this.#slots;
    let read = 0;
    for (let i = 0; i < count; i += 1) read ^= slots[this.#homeOf(hashes[i] as number)] as number;
    hashes[count] = read;
  }

  /** Adds the id that {@link IdIndex.findAt} or {@link IdIndex.findWords} was asked for last, and did not find, and returns its ordinal. */
  addLast(): number {
    if (this.#makeRoom()) this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#enter(this.#lastSlot);
  }

  /** @returns Whether slots are others than before. */
  #makeRoom(): boolean {
    const isFull = this.#inMemory >= this.#most;
    if (isFull) this.#putAway();
    if (this.#inMemory + 1 <= maxIdsOf(this.#slots.length)) return isFull;
    this.#rehash(this.#slots.length * 2);
    return true;
  }

  /** Puts the probe into a slot. */
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

  /** The slot of an id, which is most often asked for and then added: nothing was moved between. */
  #lookUp(id: string): number {
    if (id === this.#lastId) return this.#lastSlot;
    writeBase64url(this.#probeBytes, id);
    this.#lastId = id;
    this.#lastHash = this.#hash(this.#probe, 0);
    this.#lastSlot = this.#slotOf(this.#probe, 0, this.#lastHash);
    return this.#lastSlot;
  }

  /** The slot that holds the id at `words[from]`, or the free slot where it would go. */
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

  /** Slots are in the order of the hashes, but for those of a cluster. */
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
   * Fills slots in the order of their parts: in any other order nearly each is a piece of memory that no cache holds, which costs four
   * times as much as all else.
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
    for (let part = 0; part < PARTS; part += 1) {
      ends[part + 1] = (ends[part + 1] as number) + (ends[part] as number);
    }
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
      // No two are the same: ids need not be looked at.
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
    // They stand where the next ones will, but for those of which there will be no more so many.
    this.#pieces.length = Math.min(this.#pieces.length, Math.ceil(this.#most / PIECE_IDS));
    let capacity = this.#slots.length;
    while (capacity > LEAST_SLOTS && maxIdsOf(capacity / 2) >= this.#most) capacity /= 2;
    if (capacity === this.#slots.length) this.#slots.fill(EMPTY);
    else this.#makeSlots(capacity);
  }

  /** The ids in memory, ordered by their hashes: as their slots are, but for those of a cluster. */
  #inOrder(take: TakeEntry): void {
    interface Member {
      readonly index: number;
      readonly hash: number;
    }
    const last: Member[] = [];
    let cluster: Member[] = [];
    const give = (): void => {
      cluster.sort((a, b) => a.hash - b.hash);
      for (const { index } of cluster) {
        take(this.#pieceOf(index), (index % PIECE_IDS) * ID_WORDS, this.#away + index);
      }
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
      // There was no slot left for it behind its own: it went on at the beginning.
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
