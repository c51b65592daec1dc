/**
 * Spilled ids: runs in temporary files, each ordered by hash and cut into pages. In memory remain 12 bits per id of its run's filter,
 * which nearly always shows that a run does not have an id, and the first hash and checksum of each page. A lookup reads one page of a
 * run that may have the id. Eight runs of about one size are merged.
 */

import { NorthrootError } from '../../base/error.js';
import type { ScratchFile } from '../source/scratch-file.js';

export const ID_WORDS = 8;
const ENTRY_WORDS = ID_WORDS + 1;
const PAGE_IDS = 112;
const PAGE_WORDS = PAGE_IDS * ENTRY_WORDS;
const PAGE_BYTES = PAGE_WORDS * 4;
/** How many pages a sequential read or write takes at once. */
const STRETCH_PAGES = 64;
/** How many runs of a level are merged into one of the next. */
const FAN = 8;
const FILTER_BITS = 12;
/** A split block Bloom filter: an id sets one bit in each of the eight words of a block. */
const BLOCK_WORDS = 8;
const SALTS = Uint32Array.of(
  ...[0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d, 0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31],
);

/** Two hashes of an id, keyed by a secret of the process, so that an adversary cannot choose them. */
export interface IdHashes {
  /** The hash that orders runs, from 0 to 2³² − 1, for the id at `words[at]`. */
  order(words: Uint32Array, at: number): number;
  /** The second hash, from the first. */
  other(words: Uint32Array, at: number, order: number): number;
}

/** Receives the id at `words[at]` and its ordinal. */
export type TakeEntry = (words: Uint32Array, at: number, ordinal: number) => void;

/** Runs of ids; no id is in two of them. */
export class IdRuns {
  readonly #runs: Run[] = [];
  readonly #hashes: IdHashes;
  readonly #open: () => ScratchFile;

  constructor(hashes: IdHashes, open: () => ScratchFile) {
    this.#hashes = hashes;
    this.#open = open;
  }

  /** How many bytes they take in memory. */
  get bytes(): number {
    return this.#runs.reduce((sum, run) => sum + run.bytes, 0);
  }

  /**
   * Spills ids.
   *
   * @param give - Calls back with each of the `count` ids, ordered by hash.
   * @throws NorthrootError of a file
   */
  add(count: number, give: (take: TakeEntry) => void): void {
    this.#runs.push(this.#write(count, 0, give));
    for (let level = 0; ; level += 1) {
      const alike = this.#runs.filter((run) => run.level === level);
      if (alike.length < FAN) return;
      const sum = alike.reduce((all, run) => all + run.count, 0);
      const merged = this.#write(sum, level + 1, (take) => this.#merge(alike, take));
      const rest = this.#runs.filter((run) => run.level !== level);
      this.#runs.splice(0, Infinity, ...rest, merged);
      for (const run of alike) run.close();
    }
  }

  /**
   * The ordinal of the id at `words[0]`, or -1.
   *
   * @throws NorthrootError of a file; `IO_FAILED` where a page differs from the one written
   */
  find(words: Uint32Array, order: number): number {
    const other = this.#hashes.other(words, 0, order);
    for (const run of this.#runs) {
      const ordinal = run.find(words, order, other);
      if (ordinal !== -1) return ordinal;
    }
    return -1;
  }

  /** Calls back with every id, in no order. @throws NorthrootError as {@link IdRuns.find} */
  each(take: TakeEntry): void {
    for (const run of this.#runs)
      for (const cursor = new Cursor(run, this.#hashes); !cursor.isAtEnd; cursor.next())
        take(cursor.words, cursor.at, cursor.ordinal);
  }

  /** Any later lookup throws. */
  close(): void {
    for (const run of this.#runs) run.close();
  }

  #write(count: number, level: number, give: (take: TakeEntry) => void): Run {
    const run = new Run(this.#open(), count, level);
    try {
      give((words, at, ordinal) => {
        const order = this.#hashes.order(words, at);
        run.add(words, at, ordinal, order, this.#hashes.other(words, at, order));
      });
      run.finish();
    } catch (error) {
      run.close();
      throw error;
    }
    return run;
  }

  #merge(runs: readonly Run[], take: TakeEntry): void {
    let cursors = runs.map((run) => new Cursor(run, this.#hashes));
    while (cursors.length > 0) {
      let least = cursors[0] as Cursor;
      for (const cursor of cursors) if (cursor.order < least.order) least = cursor;
      take(least.words, least.at, least.ordinal);
      least.next();
      if (least.isAtEnd) cursors = cursors.filter((cursor) => cursor !== least);
    }
  }
}

class Run {
  readonly count: number;
  readonly level: number;
  readonly #file: ScratchFile;
  /** The first hash and the checksum of each page. */
  readonly #firsts: Uint32Array;
  readonly #sums: Uint32Array;
  readonly #filter: Uint32Array;
  readonly #blocks: number;
  /** The page being written; afterwards the page that was read last. */
  #words = new Uint32Array(STRETCH_PAGES * PAGE_WORDS);
  #filled = 0;
  #added = 0;

  constructor(file: ScratchFile, count: number, level: number) {
    this.#file = file;
    this.count = count;
    this.level = level;
    const pages = Math.ceil(count / PAGE_IDS);
    this.#firsts = new Uint32Array(pages);
    this.#sums = new Uint32Array(pages);
    this.#blocks = Math.ceil((count * FILTER_BITS) / (BLOCK_WORDS * 32));
    this.#filter = new Uint32Array(this.#blocks * BLOCK_WORDS);
  }

  get bytes(): number {
    return this.#firsts.byteLength + this.#sums.byteLength + this.#filter.byteLength;
  }

  add(words: Uint32Array, at: number, ordinal: number, order: number, other: number): void {
    if (this.#added % PAGE_IDS === 0) this.#firsts[this.#added / PAGE_IDS] = order;
    for (let i = 0; i < ID_WORDS; i += 1) this.#words[this.#filled + i] = words[at + i] as number;
    this.#words[this.#filled + ID_WORDS] = ordinal;
    this.#filled += ENTRY_WORDS;
    this.#added += 1;
    const block = this.#blockOf(order);
    for (let i = 0; i < BLOCK_WORDS; i += 1)
      this.#filter[block + i] = (this.#filter[block + i] as number) | bitOf(other, i);
    if (this.#filled === this.#words.length) this.#flush();
  }

  finish(): void {
    if (this.#added !== this.count) throw new RangeError('there are not as many ids as were announced');
    this.#words.fill(0, this.#filled);
    this.#filled = Math.ceil(this.#filled / PAGE_WORDS) * PAGE_WORDS;
    this.#flush();
    this.#words = new Uint32Array(PAGE_WORDS);
  }

  find(words: Uint32Array, order: number, other: number): number {
    const block = this.#blockOf(order);
    for (let i = 0; i < BLOCK_WORDS; i += 1)
      if (((this.#filter[block + i] as number) & bitOf(other, i)) === 0) return -1;
    // Ids of this hash may begin in the page before.
    for (let page = Math.max(this.#firstAtLeast(order) - 1, 0); page < this.#firsts.length; page += 1) {
      if ((this.#firsts[page] as number) > order) break;
      this.read(this.#words, page);
      const end = Math.min(this.count - page * PAGE_IDS, PAGE_IDS) * ENTRY_WORDS;
      for (let at = 0; at < end; at += ENTRY_WORDS)
        if (isSame(this.#words, at, words)) return this.#words[at + ID_WORDS] as number;
    }
    return -1;
  }

  /** Reads pages, as many as fit. */
  read(target: Uint32Array, page: number): void {
    this.#file.read(new Uint8Array(target.buffer, target.byteOffset, target.byteLength), page * PAGE_BYTES);
    for (let at = 0; at < target.length; at += PAGE_WORDS) {
      if (checksum(target, at) === this.#sums[page + at / PAGE_WORDS]) continue;
      throw new NorthrootError('IO_FAILED', 'a temporary file does not hold what was written to it', {
        hint: 'check the disk that temporary files are on (TMPDIR names another)',
      });
    }
  }

  close(): void {
    this.#file.close();
  }

  #flush(): void {
    const page = (Math.ceil(this.#added / PAGE_IDS) * PAGE_WORDS - this.#filled) / PAGE_WORDS;
    for (let at = 0; at < this.#filled; at += PAGE_WORDS)
      this.#sums[page + at / PAGE_WORDS] = checksum(this.#words, at);
    this.#file.append(new Uint8Array(this.#words.buffer, 0, this.#filled * 4));
    this.#filled = 0;
  }

  #blockOf(order: number): number {
    return Math.floor((order / 0x1_0000_0000) * this.#blocks) * BLOCK_WORDS;
  }

  /** The first page that begins with this hash or a greater one. */
  #firstAtLeast(order: number): number {
    let low = 0;
    let high = this.#firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#firsts[middle] as number) < order) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

class Cursor {
  words = new Uint32Array(0);
  at = 0;
  order = 0;
  readonly #run: Run;
  readonly #hashes: IdHashes;
  #read = 0;
  #pages = 0;

  constructor(run: Run, hashes: IdHashes) {
    this.#run = run;
    this.#hashes = hashes;
    this.#load();
  }

  get isAtEnd(): boolean {
    return this.#read === this.#run.count;
  }

  get ordinal(): number {
    return this.words[this.at + ID_WORDS] as number;
  }

  next(): void {
    this.#read += 1;
    this.at += ENTRY_WORDS;
    this.#load();
  }

  #load(): void {
    if (this.isAtEnd) return;
    if (this.at === this.words.length) {
      const pages = Math.min(Math.ceil(this.#run.count / PAGE_IDS) - this.#pages, STRETCH_PAGES);
      if (this.words.length !== pages * PAGE_WORDS) this.words = new Uint32Array(pages * PAGE_WORDS);
      this.#run.read(this.words, this.#pages);
      this.#pages += pages;
      this.at = 0;
    }
    this.order = this.#hashes.order(this.words, this.at);
  }
}

function bitOf(other: number, word: number): number {
  return 1 << (Math.imul(other, SALTS[word] as number) >>> 27);
}

function isSame(words: Uint32Array, at: number, id: Uint32Array): boolean {
  for (let i = 0; i < ID_WORDS; i += 1) if (words[at + i] !== id[i]) return false;
  return true;
}

/** Detects errors of the disk, not attacks. */
function checksum(words: Uint32Array, at: number): number {
  let sum = 0;
  for (let i = at; i < at + PAGE_WORDS; i += 1)
    sum = Math.imul(sum ^ (words[i] as number), 0x9e3779b1) + (sum >>> 15);
  return sum >>> 0;
}
