/**
 * Scans and hashes the lines of a block: in WebAssembly, into whose memory the block is copied once, or in JavaScript for small blocks
 * and where WebAssembly is not available. Both give the same.
 */

import { tryDecodeBase64 } from '../../base/bytes/encoding.js';
import { MAX_KEPT_LENGTH, PrefixViews } from '../../base/bytes/prefix-views.js';
import { sha256Latin1 } from '../../base/bytes/sha256.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import { leafHash } from '../../format/tree/compact-range.js';
import { SCAN_WASM } from '../scan/generated/scan-wasm.js';
import { hasTrueIdentity, isIdentity, PayloadViews, PREFIX } from '../scan/identity.js';
import { relate } from '../scan/relate.js';
import { isHopeless, ROW_WIDTH, scanRecord } from '../scan/scan.js';
import { webAssembly } from '../../base/platform/web-assembly.js';

export interface LineScanner {
  /**
   * Begins a block.
   *
   * @param bytes - MUST NOT change until the next block.
   * @returns Where each line ends: its `\n`, or the end of the bytes. A new array.
   */
  begin(bytes: Uint8Array): Int32Array;
  /** The RFC 6962 leaf hash of the line `[start, end)`, a binary string. */
  leafHash(start: number, end: number): string;
  /**
   * Whether the line `[start, end)` is a scannable record whose ids are right: row `at` then has its offsets.
   *
   * @param at - At most one after the last row that was filled.
   */
  scan(start: number, end: number, at: number): boolean;
  /** The rows so far; valid until the next block. */
  readonly rows: Int32Array;
  /**
   * Relates the rows to each other (`relate.ts`), after all lines were scanned.
   *
   * @param rowAt - The row of each line, or -1.
   * @param leaves - The leaf hashes of all lines, 32 bytes each.
   */
  relate(rowAt: Int32Array, leaves: Uint8Array): void;
  /**
   * The Merkle nodes over lines of the block, see `BlockFacts.nodes`; empty where not computed. Ends the block: lines and rows MUST NOT be
   * requested after it.
   *
   * @param leaves - The leaf hashes of all its lines, 32 bytes each.
   * @param ordinal - That of the first line, modulo 2^30.
   */
  hashNodes(leaves: Uint8Array, ordinal: number): Uint8Array;
}

/** The smallest block for which compiling the WebAssembly pays, and copying once it is compiled. */
const WORTHWHILE_BYTES = 96 * 1024;
const COMPILED_BYTES = 8 * 1024;
const NEWLINE = 0x0a;

let plain: LineScanner | undefined;
/** `null` where it is not available. */
let fast: LineScanner | undefined | null;

/** The scanner for blocks of up to so many bytes. */
export function scannerFor(length: number): LineScanner {
  if (length >= WORTHWHILE_BYTES && fast === undefined) fast = makeWasmScanner() ?? null;
  if (length >= COMPILED_BYTES && fast) return fast;
  return (plain ??= makePlainScanner());
}

/** A scanner in JavaScript. */
export function makePlainScanner(): LineScanner {
  return new PlainScanner();
}

/** A scanner in WebAssembly; undefined without SIMD, or where the host forbids it (a content security policy). */
export function makeWasmScanner(): LineScanner | undefined {
  const engine = webAssembly();
  const code = tryDecodeBase64(SCAN_WASM);
  if (engine === undefined || code === undefined) return undefined;
  try {
    return new WasmScanner(new engine.Instance(new engine.Module(code), {}).exports as Exports);
  } catch {
    return undefined;
  }
}

class PlainScanner implements LineScanner {
  /** Used again for the next block. */
  rows = new Int32Array(64 * ROW_WIDTH);
  #bytes: Uint8Array = new Uint8Array();

  begin(bytes: Uint8Array): Int32Array {
    this.#bytes = bytes;
    return findLineEnds(bytes);
  }

  leafHash(start: number, end: number): string {
    return leafHash(this.#bytes.subarray(start, end));
  }

  scan(start: number, end: number, at: number): boolean {
    if ((at + 1) * ROW_WIDTH > this.rows.length) {
      const larger = new Int32Array(this.rows.length * 2);
      larger.set(this.rows);
      this.rows = larger;
    }
    const { rows } = this;
    return scanRecord(this.#bytes, start, end, rows, at) && hasTrueIdentity(this.#bytes, rows, at);
  }

  relate(rowAt: Int32Array, leaves: Uint8Array): void {
    relate(this.#bytes, this.rows, new Uint8Array(this.rows.buffer), rowAt, leaves, rowAt.length);
  }

  hashNodes(): Uint8Array {
    return new Uint8Array();
  }
}

/** See `assembly/scan.ts`. */
interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number };
  heapBase(): number;
  findEnds(block: number, length: number, to: number, most: number): number;
  scan(block: number, start: number, end: number, row: number): number;
  copyPayload(block: number, row: number, to: number): number;
  copyLine(block: number, start: number, end: number, to: number): void;
  relateRows(block: number, rows: number, rowAt: number, leaves: number, lines: number): void;
  hashNodes(leaves: number, count: number, ordinal: number, nodes: number): void;
}

const PAGE_BYTES = 65_536;
const HASH_BYTES = 32;
/** How many bytes behind the block are readable zeros. */
const PADDING = 128;
/** Longer lines are hashed in place: their views with a leaf's prefix would not be kept. */
const MAX_COPIED_BYTES = MAX_KEPT_LENGTH - 1;
/** A scannable record is longer. */
const LEAST_RECORD_BYTES = 256;
const INT_BYTES = 4;
const ROW_BYTES = INT_BYTES * ROW_WIDTH;

/**
 * Its memory has room for a byte and a line, for {@link PREFIX} and a payload, for the block, and for the rows. All of it is used again
 * for the next block, and the block's room for hashing nodes: results that live longer are copies.
 */
class WasmScanner implements LineScanner {
  rows = new Int32Array();
  readonly #exports: Exports;
  readonly #leaf: number;
  readonly #prefix: number;
  readonly #block: number;
  #bytes: Uint8Array = new Uint8Array();
  #memory: Uint8Array = new Uint8Array();
  #leaves: PrefixViews;
  #payloads: PayloadViews;
  #rowsAt = 0;
  /** The arguments of {@link relate}. */
  #linesAt = 0;
  #capacity = 0;

  constructor(exports: Exports) {
    this.#exports = exports;
    // The byte before a line is the leaf prefix of RFC 6962 §2.1, a zero.
    this.#leaf = exports.heapBase();
    this.#prefix = aligned(this.#leaf + 1 + MAX_COPIED_BYTES);
    // The byte before the first line is overwritten.
    this.#block = aligned(this.#prefix + PREFIX.length + MAX_LINE_BYTES + PADDING);
    this.#leaves = new PrefixViews(exports.memory.buffer, this.#leaf);
    this.#payloads = new PayloadViews(exports.memory.buffer, this.#prefix);
    this.#reserve(this.#block);
    this.#memory.set(PREFIX, this.#prefix);
  }

  begin(bytes: Uint8Array): Int32Array {
    const { length } = bytes;
    this.#bytes = bytes;
    this.#capacity = Math.floor(length / LEAST_RECORD_BYTES) + 1;
    this.#rowsAt = aligned(this.#block + length + PADDING);
    this.#reserve(this.#rowsAt + this.#capacity * ROW_BYTES);
    this.#memory.set(bytes, this.#block);
    this.#memory.fill(0, this.#block + length, this.#rowsAt);
    const most = this.#capacity * ROW_WIDTH;
    const count = this.#exports.findEnds(this.#block, length, this.#rowsAt, most);
    const { memory } = this.#exports;
    // A copy: the rows overwrite it.
    const ends =
      count === -1 ? findLineEnds(bytes) : new Int32Array(memory.buffer, this.#rowsAt, count).slice();
    this.#linesAt = this.#rowsAt + this.#capacity * ROW_BYTES;
    this.#reserve(this.#linesAt + ends.length * (INT_BYTES + HASH_BYTES));
    this.rows = new Int32Array(memory.buffer, this.#rowsAt, most);
    return ends;
  }

  leafHash(start: number, end: number): string {
    if (end - start <= MAX_COPIED_BYTES) {
      this.#exports.copyLine(this.#block, start, end, this.#leaf + 1);
      return sha256Latin1(this.#leaves.of(1 + end - start));
    }
    // The byte before it, the `\n` of another line, becomes the prefix.
    const from = this.#block + start - 1;
    this.#memory[from] = 0;
    return sha256Latin1(this.#memory.subarray(from, this.#block + end));
  }

  scan(start: number, end: number, at: number): boolean {
    if (at >= this.#capacity) return false;
    const { rows } = this;
    const row = this.#rowsAt + at * ROW_BYTES;
    if (this.#exports.scan(this.#block, start, end, row) !== 1) {
      // It declines unknown event types and texts that are not plain ASCII.
      if (isHopeless(this.#bytes, start, end, rows, at)) return false;
      return scanRecord(this.#bytes, start, end, rows, at) && hasTrueIdentity(this.#bytes, rows, at);
    }
    const length = this.#exports.copyPayload(this.#block, row, this.#prefix + PREFIX.length);
    return isIdentity(this.#bytes, rows, at * ROW_WIDTH, this.#payloads, length);
  }

  relate(rowAt: Int32Array, leaves: Uint8Array): void {
    const exports = this.#exports;
    const lines = rowAt.length;
    const leavesAt = this.#linesAt + lines * INT_BYTES;
    new Int32Array(exports.memory.buffer, this.#linesAt, lines).set(rowAt);
    this.#memory.set(leaves, leavesAt);
    exports.relateRows(this.#block, this.#rowsAt, this.#linesAt, leavesAt, lines);
  }

  hashNodes(leaves: Uint8Array, ordinal: number): Uint8Array {
    const { length } = leaves;
    // In the room of the block, which is no longer needed.
    this.#reserve(this.#block + 2 * length);
    this.#memory.set(leaves, this.#block);
    this.#exports.hashNodes(this.#block, length / HASH_BYTES, ordinal, this.#block + length);
    // A copy: the next block overwrites it.
    return Uint8Array.from(this.#memory.subarray(this.#block + length, this.#block + 2 * length));
  }

  #reserve(bytes: number): void {
    const { memory } = this.#exports;
    const missing = bytes - memory.buffer.byteLength;
    if (missing > 0) memory.grow(Math.ceil(missing / PAGE_BYTES));
    if (this.#memory.length === memory.buffer.byteLength) return;
    this.#memory = new Uint8Array(memory.buffer);
    this.#leaves = new PrefixViews(memory.buffer, this.#leaf);
    this.#payloads = new PayloadViews(memory.buffer, this.#prefix);
  }
}

function aligned(address: number): number {
  return (address + 63) & ~63;
}

function findLineEnds(bytes: Uint8Array): Int32Array {
  let ends = new Int32Array(1024);
  let count = 0;
  for (let start = 0; start < bytes.length; count += 1) {
    const newline = bytes.indexOf(NEWLINE, start);
    const end = newline === -1 ? bytes.length : newline;
    if (count === ends.length) {
      const larger = new Int32Array(count * 2);
      larger.set(ends);
      ends = larger;
    }
    ends[count] = end;
    start = end + 1;
  }
  return ends.slice(0, count);
}
