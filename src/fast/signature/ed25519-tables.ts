/**
 * The tables by which Ed25519 signatures are verified, in the memory of one WebAssembly instance (`assembly/ed25519.ts` says what they
 * are): which keys have one, and how large. All together they stay within a bound; keys that are used least lose theirs.
 *
 * Memory is given out in *units*, a table of 4-bit windows each, of which 64 are in a *slab*, one of 8-bit windows.
 */

import { writeSha512 } from '#platform';
import { PrefixViews } from '../../base/bytes/prefix-views.js';
import { type Kernel, tryMakeKernel } from '../../format/key/ed25519-kernel.js';
import { PAYLOAD_TYPE, preAuthHead } from '../../format/signature/dsse.js';

/**
 * A table's shape: a window's bits, how many windows of a scalar share one of the table, for which a sum is doubled, and how many the
 * table has. Together they are at least 253 bits. Of 11 bits the last can have no carry.
 */
export interface Windows {
  readonly width: 4 | 8 | 11;
  readonly levels: 1 | 8;
  readonly count: number;
}

export const SMALL: Windows = { width: 4, levels: 8, count: 8 };
export const LARGE: Windows = { width: 8, levels: 1, count: 32 };
export const LARGEST: Windows = { width: 11, levels: 1, count: 23 };

const ENTRY_BYTES = 96;
const UNIT_BYTES = tableBytesOf(SMALL);
const SLAB_BYTES = tableBytesOf(LARGE);
const UNITS = Math.floor(SLAB_BYTES / UNIT_BYTES);
const LARGEST_SLABS = Math.ceil(tableBytesOf(LARGEST) / SLAB_BYTES);
/** For the points of the largest table's window, or all those of a large table. */
const WORK_BYTES = 640 * 2 ** (LARGEST.width - 1);
const PAGE_BYTES = 65_536;

/** As many signatures as are taken at once. */
export const CAPACITY = 256;
/** The longest event, and messages that are not much longer. */
export const MAX_BYTES = 65_536;
const POINT_BYTES = 32;
/** Where each of them is prepared: R, S, k, and the address of its table. */
const SLOT_BYTES = 128;

/** From so many bytes on the call into the host costs less than it spares. */
const HASHED_BY_HOST = 384;

/** The PAE of every event begins so. */
const HEAD = preAuthHead(PAYLOAD_TYPE, 0).slice(0, -2);
const ZERO = 0x30;
const SPACE = 0x20;

/** A table of large windows takes 2.5 ms, and spares 8 µs a signature. */
const LARGE_USES = 512;
/** A key takes the place of others only when it is used twice as much as they are, and so often. */
const EVICTS_AFTER = 16;
/** Uses are halved each time so many signatures have been counted, so that old ones count less. */
const EPOCH = 65_536;
/** Where there was no room for a key, others that are used no more are refused at once, for so many signatures. */
const REFUSED_FOR = 4_096;
/** Tables of the largest windows take six slabs and pay late: the base point's for all keys together, a key's by itself. */
const LARGEST_AFTER = 4_096;
const LARGEST_USES = 16_384;
/** They are made where this part of all slabs is left for others. */
const LEFT_BY_LARGEST = 1 / 2;

/** What is known of a key: how much it is used, and its table. */
export class KeyUse {
  readonly point: Uint8Array;
  table: Table | undefined = undefined;
  /** Uses, fewer for each epoch that has passed. */
  heat = 0;
  epoch = 0;
  /** Of the batch at work, the places of the signatures by it. */
  readonly places: number[] = [];

  constructor(point: Uint8Array) {
    this.point = new Uint8Array(point);
  }
}

export interface Table {
  readonly windows: Windows;
  readonly address: number;
  /** Where it lies, wholly or with others. */
  readonly slabs: readonly Slab[];
  readonly owner: KeyUse;
  /** Whether nothing that it gave was checked yet. */
  isNew: boolean;
}

interface Slab {
  readonly address: number;
  /** By unit; all are the same table where it is a large one. */
  readonly units: (Table | undefined)[];
}

function makeSlab(address: number): Slab {
  return { address, units: new Array<Table | undefined>(UNITS).fill(undefined) };
}

function tableBytesOf({ width, count }: Windows): number {
  return count * 2 ** (width - 1) * ENTRY_BYTES;
}

/** The least bound under which there are tables at all: of the base point, and of one slab of keys. */
export const MIN_TABLE_BYTES = 2 ** 21;

export class Ed25519Tables {
  readonly exports: Kernel;
  /** All of the memory; another array when it has grown. */
  memory: Uint8Array;
  base: { readonly address: number; readonly windows: Windows };
  readonly #work: number;
  readonly #uses: number;
  readonly #maxSlabs: number;
  /** What a key's table takes is free when that is dropped, which happens in {@link use} alone: never between `load` and `verify`. */
  readonly #slabs: Slab[] = [];
  #reserved = 0;
  #hasTriedLargest = false;
  #end: number;
  readonly #input: number;
  #inputs: PrefixViews;
  readonly #slots: number;
  /** Whose bytes the input has. */
  #loaded: KeyUse | undefined = undefined;
  #hasHead = false;
  #counted = 0;
  readonly #refusals = new Map<Windows, { readonly until: number; readonly heat: number }>();

  /**
   * Tables in a memory of at most `tableBytes` bytes, of keys that were used `uses` times; `undefined` where that is less than
   * {@link MIN_TABLE_BYTES}, where there is no WebAssembly with SIMD, where the host refuses it (a content security policy), or where
   * there is no memory for it.
   */
  static tryCreate(tableBytes: number, uses: number): Ed25519Tables | undefined {
    const exports = tableBytes < MIN_TABLE_BYTES ? undefined : tryMakeKernel();
    if (exports === undefined) return undefined;
    const tables = new Ed25519Tables(exports, tableBytes, uses);
    return tables.#prepareBase(LARGE, 1) ? tables : undefined;
  }

  private constructor(exports: Kernel, tableBytes: number, uses: number) {
    this.#uses = uses;
    this.exports = exports;
    this.memory = new Uint8Array(exports.memory.buffer);
    this.#input = exports.input.value;
    this.#inputs = new PrefixViews(exports.memory.buffer, this.#input);
    this.#slots = exports.slots.value;
    this.#work = exports.heapBase();
    this.#end = this.#work + WORK_BYTES;
    this.#maxSlabs = Math.floor((tableBytes - PAGE_BYTES - this.#end) / SLAB_BYTES);
    this.base = { address: 0, windows: LARGE };
  }

  /** Counts uses of a key, and gives it the table that they are worth, if there is room. */
  use(key: KeyUse, count: number): void {
    this.#counted += count;
    this.#cool(key);
    key.heat += count;
    if (key.table === undefined) {
      if (key.heat >= this.#uses) this.#give(key, SMALL);
    } else if (key.table.windows === SMALL && key.heat >= LARGE_USES) {
      this.#give(key, LARGE);
    } else if (key.table.windows === LARGE && key.heat >= LARGEST_USES) {
      this.#giveLargest(key);
    }
    if (this.#counted >= LARGEST_AFTER && !this.#hasTriedLargest) this.#enlargeBase();
  }

  /**
   * Prepares a signature for the next {@link verify}. It passed the checks that need no arithmetic.
   *
   * @param index - Less than {@link CAPACITY}; all below it are prepared too.
   * @param bytes - At most {@link MAX_BYTES}; of an event, whose PAE is what is signed, or the message itself.
   */
  load(
    index: number,
    { address, owner }: Table,
    signature: Uint8Array,
    bytes: Uint8Array,
    isEvent: boolean,
  ): void {
    const { memory } = this;
    memory.set(signature, this.#slots + SLOT_BYTES * index);
    let at = this.#input + POINT_BYTES;
    if (this.#loaded !== owner) {
      memory.set(owner.point, at);
      this.#loaded = owner;
    }
    at += POINT_BYTES;
    if (isEvent) {
      if (!this.#hasHead) memory.set(HEAD, at);
      at += HEAD.length;
      for (let unit = unitOf(bytes.length); unit >= 1; unit /= 10) {
        memory[at++] = ZERO + (Math.floor(bytes.length / unit) % 10);
      }
      memory[at++] = SPACE;
    }
    this.#hasHead = isEvent;
    memory.set(bytes, at);
    const end = at + bytes.length;
    if (writeSha512 !== undefined && bytes.length >= HASHED_BY_HOST) {
      const slot = this.#slots + SLOT_BYTES * index;
      memory.copyWithin(this.#input, slot, slot + POINT_BYTES);
      writeSha512(memory, this.exports.hash.value, this.#inputs.of(end - this.#input));
      this.exports.takeHash(index, address);
    } else {
      this.exports.challenge(index, end - this.#input, address);
    }
  }

  /**
   * Whether [S]B − [k]A is R, 1 or 0 for each of the first `count` signatures that were prepared, by tables of these windows. What it
   * gives is overwritten by the next call.
   */
  verify(count: number, windows: Windows): Uint8Array {
    const { address, windows: base } = this.base;
    const { width, count: windowCount, levels } = windows;
    this.exports.verify(count, width, windowCount, levels, address, base.width, base.count);
    const { value } = this.exports.verdicts;
    return this.memory.subarray(value, value + count);
  }

  #give(key: KeyUse, windows: Windows): void {
    const refusal = this.#refusals.get(windows);
    if (refusal !== undefined && this.#counted < refusal.until && key.heat <= refusal.heat) return;
    const place = this.#findPlace(key, windows === LARGE ? UNITS : 1);
    if (place === undefined) {
      this.#refusals.set(windows, { until: this.#counted + REFUSED_FOR, heat: key.heat });
      return;
    }
    this.#refusals.clear();
    const address = place.slab.address + place.unit * UNIT_BYTES;
    const table = this.#make(key, windows, address, [place.slab]);
    if (windows === LARGE) place.slab.units.fill(table);
    else place.slab.units[place.unit] = table;
  }

  /** Room for one unit, or for a whole slab, which others may have to leave. */
  #findPlace(key: KeyUse, units: number): { readonly slab: Slab; readonly unit: number } | undefined {
    let empty: Slab | undefined;
    for (const slab of this.#slabs) {
      const used = slab.units.filter((table) => table !== undefined).length;
      if (used === 0) empty ??= slab;
      // One begun is filled before another is begun.
      else if (units === 1 && used < UNITS) return { slab, unit: slab.units.indexOf(undefined) };
    }
    empty ??= this.#addSlab();
    if (empty !== undefined) return { slab: empty, unit: 0 };
    if (key.heat < EVICTS_AFTER) return undefined;
    let coldest: { heat: number; slab: Slab; tables: Set<Table> } | undefined;
    for (const slab of this.#slabs) {
      const tables = new Set(slab.units.filter((table) => table !== undefined));
      const groups = units === 1 ? [...tables].map((table) => new Set([table])) : [tables];
      for (const group of groups) {
        const heat = [...group].reduce((sum, { owner }) => sum + this.#cool(owner), 0);
        if (coldest === undefined || heat < coldest.heat) coldest = { heat, slab, tables: group };
      }
    }
    if (coldest === undefined || 2 * coldest.heat > key.heat) return undefined;
    for (const table of coldest.tables) drop(table);
    return { slab: coldest.slab, unit: coldest.slab.units.indexOf(undefined) };
  }

  #cool(key: KeyUse): number {
    const epoch = Math.floor(this.#counted / EPOCH);
    key.heat = Math.floor(key.heat / 2 ** (epoch - key.epoch));
    key.epoch = epoch;
    return key.heat;
  }

  #addSlab(): Slab | undefined {
    const address = this.#reserve(1);
    if (address === undefined) return undefined;
    const slab = makeSlab(address);
    this.#slabs.push(slab);
    return slab;
  }

  /** So many slabs of memory, one behind the other. */
  #reserve(slabs: number): number | undefined {
    if (this.#reserved + slabs > this.#maxSlabs) return undefined;
    const address = this.#end;
    const end = address + slabs * SLAB_BYTES;
    const missing = end - this.memory.length;
    if (missing > 0) {
      try {
        this.exports.memory.grow(Math.ceil(missing / PAGE_BYTES));
      } catch {
        return undefined;
      }
      this.memory = new Uint8Array(this.exports.memory.buffer);
      this.#inputs = new PrefixViews(this.exports.memory.buffer, this.#input);
    }
    this.#end = end;
    this.#reserved += slabs;
    return address;
  }

  #prepareBase(windows: Windows, slabs: number): boolean {
    const address = this.#reserve(slabs);
    if (address === undefined) return false;
    this.#build(address, this.exports.basePoint.value, 0, windows);
    this.base = { address, windows };
    return true;
  }

  /** What the former table of the base point took is a slab like others then. */
  #enlargeBase(): void {
    this.#hasTriedLargest = true;
    const { address } = this.base;
    if (!this.#hasRoomForLargest() || !this.#prepareBase(LARGEST, LARGEST_SLABS)) return;
    this.#slabs.push(makeSlab(address));
  }

  #giveLargest(key: KeyUse): void {
    const address = this.#hasRoomForLargest() ? this.#reserve(LARGEST_SLABS) : undefined;
    if (address === undefined) return;
    const slabs = Array.from({ length: LARGEST_SLABS }, (_, i) => makeSlab(address + i * SLAB_BYTES));
    this.#slabs.push(...slabs);
    const table = this.#make(key, LARGEST, address, slabs);
    for (const { units } of slabs) units.fill(table);
  }

  #hasRoomForLargest(): boolean {
    return this.#reserved + LARGEST_SLABS <= this.#maxSlabs * (1 - LEFT_BY_LARGEST);
  }

  /** Builds a key's table instead of the one that it has. */
  #make(key: KeyUse, windows: Windows, address: number, slabs: readonly Slab[]): Table {
    if (key.table !== undefined) drop(key.table);
    // Where the bytes of the key stand for hashing, too.
    this.memory.set(key.point, this.#input + POINT_BYTES);
    this.#loaded = key;
    this.#build(address, this.#input + POINT_BYTES, 1, windows);
    const table: Table = { windows, address, slabs, owner: key, isNew: true };
    key.table = table;
    return table;
  }

  #build(address: number, point: number, isNegative: number, windows: Windows): void {
    const { width, levels, count } = windows;
    const { exports } = this;
    const distance = width * levels;
    const work = this.#work;
    const isPoint = exports.buildTable(address, point, isNegative, width, count, distance, work, WORK_BYTES);
    if (isPoint !== 1) throw new Error('a usable Ed25519 key is not a point of the curve');
  }
}

/** The greatest power of ten that is not greater, at least 1. */
function unitOf(length: number): number {
  let unit = 1;
  while (10 * unit <= length) unit *= 10;
  return unit;
}

function drop(table: Table): void {
  for (const { units } of table.slabs) {
    for (let i = 0; i < UNITS; i++) if (units[i] === table) units[i] = undefined;
  }
  table.owner.table = undefined;
}
