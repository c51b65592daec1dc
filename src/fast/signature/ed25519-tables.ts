/**
 * The tables of Ed25519 keys in the memory of one WebAssembly instance (`assembly/ed25519.ts` defines them): which keys have one, and how
 * large. Their memory is bounded: the least used keys lose their tables.
 *
 * Memory is allocated in *units*, the size of a table of 4-bit windows, and *slabs* of 64 units, a table of 8-bit windows; one of 6-bit
 * windows takes 22 units of a slab.
 */

import { writeSha512 } from '#platform';
import { PrefixViews } from '../../base/bytes/prefix-views.js';
import { encodeBase64 } from '../../base/bytes/encoding.js';
import { type Kernel, tryMakeKernel } from '../../format/key/ed25519-kernel.js';
import { PAYLOAD_TYPE, preAuthHead } from '../../format/signature/dsse.js';

/**
 * The shape of a table: bits of a window, windows of a scalar that share one of the table (the sum is doubled between them), and windows
 * of the table. Together they are at least 253 bits. With 11 bits the last can have no carry.
 */
export interface Windows {
  readonly width: 4 | 6 | 8 | 11;
  readonly levels: 1 | 8;
  readonly count: number;
}

export const SMALL: Windows = { width: 4, levels: 8, count: 8 };
export const MEDIUM: Windows = { width: 6, levels: 1, count: 43 };
export const LARGE: Windows = { width: 8, levels: 1, count: 32 };
export const LARGEST: Windows = { width: 11, levels: 1, count: 23 };

const ENTRY_BYTES = 96;
const UNIT_BYTES = tableBytesOf(SMALL);
const SLAB_BYTES = tableBytesOf(LARGE);
const UNITS = Math.floor(SLAB_BYTES / UNIT_BYTES);
const LARGEST_SLABS = Math.ceil(tableBytesOf(LARGEST) / SLAB_BYTES);
/** Room for the points of the largest table's window, or all points of a large table. */
const WORK_BYTES = 640 * 2 ** (LARGEST.width - 1);
const PAGE_BYTES = 65_536;

export const CAPACITY = 256;
/** The longest event or message. */
export const MAX_BYTES = 65_536;
const POINT_BYTES = 32;
/** The input for each: R, S, k, and the address of its table. */
const SLOT_BYTES = 128;

/** From this size on, hashing by the host is faster, the call included. */
const HASHED_BY_HOST = 384;

/** The beginning of every event's PAE. */
const HEAD = preAuthHead(PAYLOAD_TYPE, 0).slice(0, -2);
const ZERO = 0x30;
const SPACE = 0x20;

/** A table of medium windows takes 0.8 ms to build and saves 9 µs per signature, one of large windows 2.5 ms for 2 µs more. */
const MEDIUM_USES = 96;
const LARGE_USES = 1_024;
/** A key replaces others only after so many uses, and twice as many as theirs. */
const EVICTS_AFTER = 16;
/** Uses are halved after so many signatures, so that old ones count less. */
const EPOCH = 65_536;
/** After a key found no room, keys with no more uses are declined for so many signatures. */
const REFUSED_FOR = 4_096;
/** From so many slabs on, tables that nobody uses are replaced before memory grows. */
const GROWS_TO = 12;
/** Tables of the largest windows take six slabs and pay late: the base point's over all keys, a key's alone. */
const LARGEST_AFTER = 4_096;
const LARGEST_USES = 16_384;
/** They are built only if this share of all slabs remains for others. */
const LEFT_BY_LARGEST = 1 / 2;

export class KeyUse {
  readonly point: Uint8Array;
  table: Table | undefined = undefined;
  /** Uses, halved for each epoch since. */
  heat = 0;
  /** Uses by those who shared the tables before, while it kept its table: a key that comes back is used again. */
  past = 0;
  epoch = 0;

  constructor(point: Uint8Array) {
    this.point = new Uint8Array(point);
  }
}

export interface Table {
  readonly windows: Windows;
  readonly address: number;
  /** Its slab, wholly or with others. */
  readonly slabs: readonly Slab[];
  readonly owner: KeyUse;
  /** Whether no verdict of it was checked yet. */
  isNew: boolean;
}

interface Slab {
  readonly address: number;
  /** By unit; a large table fills all. */
  readonly units: (Table | undefined)[];
}

function makeSlab(address: number): Slab {
  return { address, units: new Array<Table | undefined>(UNITS).fill(undefined) };
}

/** Units of a slab. */
interface Place {
  readonly slab: Slab;
  readonly unit: number;
}

/** Tables of a slab that others may replace, and the uses of their keys. */
interface Droppable {
  readonly heat: number;
  readonly slab: Slab;
  readonly tables: ReadonlySet<Table>;
}

/** The first of so many free units, one after the other. */
function freeUnit(slab: Slab, count: number): number | undefined {
  let free = 0;
  for (let unit = 0; unit < UNITS; unit++) {
    free = slab.units[unit] === undefined ? free + 1 : 0;
    if (free === count) return unit + 1 - count;
  }
  return undefined;
}

function unitsOf(windows: Windows): number {
  return Math.ceil(tableBytesOf(windows) / UNIT_BYTES);
}

function tableBytesOf({ width, count }: Windows): number {
  return count * 2 ** (width - 1) * ENTRY_BYTES;
}

/** The smallest useful bound: the base point's table and one slab of keys. */
const MIN_TABLE_BYTES = 2 ** 21;
/** From so many keys on, those without a table are forgotten. */
const MAX_KEYS = 4_096;

/** The last tables that were made, while anybody has them: what verifies many ledgers, one after the other, builds them once. */
let last: WeakRef<Ed25519Tables> | undefined;

export class Ed25519Tables {
  readonly exports: Kernel;
  /** All of the memory; a new array after it has grown. */
  memory: Uint8Array;
  base: { readonly address: number; readonly windows: Windows };
  readonly #work: number;
  readonly #uses: number;
  readonly #maxSlabs: number;
  /** Tables are dropped only in {@link use}: never between `load` and `verify`. */
  readonly #slabs: Slab[] = [];
  #reserved = 0;
  #hasTriedLargest = false;
  #end: number;
  readonly #input: number;
  #inputs: PrefixViews;
  readonly #slots: number;
  /** The key whose bytes are in the input. */
  #loaded: KeyUse | undefined = undefined;
  #hasHead = false;
  #counted = 0;
  readonly #refusals = new Map<Windows, { readonly until: number; readonly heat: number }>();
  readonly #tableBytes: number;
  /** By the key's bytes, base64. */
  #keys = new Map<string, KeyUse>();
  #maxKeys = MAX_KEYS;
  #hasFailed = false;

  /**
   * Those that were made last with the same options, if they are still in memory: then all their keys make room as if unused.
   * Whoever shares them uses them only between calls of its own, never across an `await`.
   */
  static tryShare(tableBytes: number, uses: number): Ed25519Tables | undefined {
    const tables = last?.deref();
    if (tables === undefined || tables.hasFailed) return undefined;
    if (tables.#tableBytes !== tableBytes || tables.#uses !== uses) return undefined;
    for (const key of tables.#keys.values()) {
      key.past += key.heat;
      key.heat = 0;
    }
    tables.#refusals.clear();
    return tables;
  }

  /** Whether a verdict by these was wrong. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** A verdict was wrong: nobody uses these any more. */
  fail(): void {
    this.#hasFailed = true;
  }

  /**
   * Tables in at most `tableBytes` bytes, for keys that were used `uses` times; undefined for less than {@link MIN_TABLE_BYTES}, without
   * WebAssembly and SIMD, where the host forbids it (a content security policy), or without memory.
   */
  static tryCreate(tableBytes: number, uses: number): Ed25519Tables | undefined {
    const exports = tableBytes < MIN_TABLE_BYTES ? undefined : tryMakeKernel();
    if (exports === undefined) return undefined;
    const tables = new Ed25519Tables(exports, tableBytes, uses);
    if (!tables.#prepareBase(LARGE, 1)) return undefined;
    last = new WeakRef(tables);
    return tables;
  }

  private constructor(exports: Kernel, tableBytes: number, uses: number) {
    this.#uses = uses;
    this.#tableBytes = tableBytes;
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

  keyOf(point: Uint8Array): KeyUse {
    const name = encodeBase64(point);
    let use = this.#keys.get(name);
    if (use !== undefined) return use;
    if (this.#keys.size >= this.#maxKeys) {
      this.#keys = new Map([...this.#keys].filter(([, { table }]) => table !== undefined));
      this.#maxKeys = Math.max(MAX_KEYS, 2 * this.#keys.size);
    }
    use = new KeyUse(point);
    this.#keys.set(name, use);
    return use;
  }

  /**
   * Counts uses of a key, and builds the table that they pay for, if there is room.
   *
   * @param expected - How many uses are to come, as far as is known
   */
  use(key: KeyUse, count: number, expected = 0): void {
    this.#counted += count;
    this.#cool(key);
    key.heat += count;
    const uses = Math.max(key.heat + key.past, expected);
    if (key.table === undefined) {
      if (key.heat >= this.#uses && uses >= MEDIUM_USES) this.#give(key, MEDIUM);
      if (key.heat >= this.#uses && key.table === undefined) this.#give(key, SMALL);
    } else if (uses >= LARGE_USES && (key.table.windows === SMALL || key.table.windows === MEDIUM)) {
      this.#give(key, LARGE);
    } else if (key.table.windows === SMALL && uses >= MEDIUM_USES) {
      this.#give(key, MEDIUM);
    } else if (key.table.windows === LARGE && uses >= LARGEST_USES) {
      this.#giveLargest(key);
    }
    if (this.#counted >= LARGEST_AFTER && !this.#hasTriedLargest) this.#enlargeBase();
  }

  /**
   * Prepares a signature for the next {@link verify}. It MUST have passed the pre-checks.
   *
   * @param index - Below {@link CAPACITY}. All indexes below it MUST be prepared too.
   * @param bytes - At most {@link MAX_BYTES}: an event, whose PAE is signed, or the message.
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
      for (let unit = unitOf(bytes.length); unit >= 1; unit /= 10)
        memory[at++] = ZERO + (Math.floor(bytes.length / unit) % 10);
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
   * Whether [S]B − [k]A is R, 1 or 0 for each of the first `count` prepared signatures, by tables of these windows. The next call
   * overwrites the result.
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
    const units = unitsOf(windows);
    const place = this.#findPlace(key, units);
    if (place === undefined) {
      this.#refusals.set(windows, { until: this.#counted + REFUSED_FOR, heat: key.heat });
      return;
    }
    this.#refusals.clear();
    const address = place.slab.address + place.unit * UNIT_BYTES;
    const table = this.#make(key, windows, address, [place.slab]);
    place.slab.units.fill(table, place.unit, place.unit + units);
  }

  /** Allocates units of one slab; others may be dropped for them. */
  #findPlace(key: KeyUse, units: number): Place | undefined {
    // Keys that are many leave medium tables to few.
    const mayGrow = units === 1 || units === UNITS || this.#reserved <= this.#maxSlabs / 2;
    let empty: Slab | undefined;
    for (const slab of mayGrow ? this.#slabs : []) {
      const unit = freeUnit(slab, units);
      if (unit === undefined) continue;
      if (slab.units.every((table) => table === undefined)) empty ??= slab;
      // A slab is filled before another is begun.
      else return { slab, unit };
    }
    // The host's collector looks at the whole heap the more often, the more memory there is beside it.
    const idle = empty === undefined && this.#reserved >= GROWS_TO ? this.#findColdest(units) : undefined;
    if (idle?.heat === 0) return replace(idle, units);
    if (mayGrow) empty ??= this.#addSlab();
    if (empty !== undefined) return { slab: empty, unit: 0 };
    if (key.heat < EVICTS_AFTER) return undefined;
    const coldest = this.#findColdest(units);
    return coldest === undefined || 2 * coldest.heat > key.heat ? undefined : replace(coldest, units);
  }

  /** The tables of least heat that could make room for so many units. */
  #findColdest(units: number): Droppable | undefined {
    let coldest: Droppable | undefined;
    for (const slab of this.#slabs) {
      const tables = new Set(slab.units.filter((table) => table !== undefined));
      const isOneEnough = ({ windows }: Table): boolean => unitsOf(windows) >= units;
      const groups = [...tables].filter(isOneEnough).map((table) => new Set([table]));
      if (units === UNITS) groups.push(tables);
      for (const group of groups) {
        const heat = [...group].reduce((sum, { owner }) => sum + this.#cool(owner), 0);
        if (coldest === undefined || heat < coldest.heat) coldest = { heat, slab, tables: group };
      }
    }
    return coldest;
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

  /** Its former table becomes a free slab. */
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

  /** Builds a key's table, which replaces the one that it has. */
  #make(key: KeyUse, windows: Windows, address: number, slabs: readonly Slab[]): Table {
    if (key.table !== undefined) drop(key.table);
    // The input for hashing, too.
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

/** The greatest power of ten up to a number, at least 1. */
function unitOf(length: number): number {
  let unit = 1;
  while (10 * unit <= length) unit *= 10;
  return unit;
}

function drop(table: Table): void {
  for (const { units } of table.slabs)
    for (let i = 0; i < UNITS; i++) if (units[i] === table) units[i] = undefined;
  table.owner.table = undefined;
}

/** Drops tables for one of so many units. */
function replace({ slab, tables }: Droppable, units: number): Place | undefined {
  for (const table of tables) {
    drop(table);
    table.owner.past = 0;
  }
  const unit = freeUnit(slab, units);
  return unit === undefined ? undefined : { slab, unit };
}
