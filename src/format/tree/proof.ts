/**
 * Merkle proofs (RFC 6962 §2.1.1, §2.1.2): which subtrees a proof is made of, their roots from one pass over the leaves in
 * memory that grows with the logarithm of the tree, and the verification of proofs (RFC 9162 §2.1.3.2, §2.1.4.2).
 *
 * Hashes are binary strings of 32 characters, as everywhere in this folder. Sizes and indices are at most 2^53 − 1.
 */

import { appendLeaf, emptyRange, nodeHash, rangeRoot, type CompactRange } from './compact-range.js';

/** The leaves [start, end) of a tree. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** An inclusion proof with what it is to be held against. */
export interface InclusionClaim {
  readonly index: number;
  readonly size: number;
  readonly leafHash: string;
  readonly root: string;
  /** From the leaf's sibling up. */
  readonly proof: readonly string[];
}

/** A consistency proof with what it is to be held against. */
export interface ConsistencyClaim {
  readonly size1: number;
  readonly root1: string;
  readonly size2: number;
  readonly root2: string;
  readonly proof: readonly string[];
}

/** Of a character above 0xff only the low bits would be hashed. */
const HASH = /^[\0-\xff]{32}$/;

/**
 * The subtrees whose roots make up the inclusion proof of a leaf, in the proof's order: PATH(m, D[n]) of RFC 6962 §2.1.1.
 *
 * @throws RangeError unless 0 ≤ `index` < `size` ≤ 2^53 − 1
 */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  assertSize(size);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size) {
    throw new RangeError('index must be an integer from 0 to size - 1');
  }
  const ranges: LeafRange[] = [];
  let start = 0;
  let end = size;
  while (end - start > 1) {
    const middle = start + largestPowerBelow(end - start);
    if (index < middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  return ranges.reverse();
}

/**
 * The subtrees whose roots make up the proof that the tree of `size2` leaves extends that of `size1`, in the proof's order:
 * PROOF(m, D[n]) of RFC 6962 §2.1.2. It is empty when the sizes are equal, and for an empty first tree.
 *
 * @throws RangeError unless 0 ≤ `size1` ≤ `size2` ≤ 2^53 − 1
 */
export function consistencyRanges(size1: number, size2: number): LeafRange[] {
  assertSize(size2);
  if (!Number.isSafeInteger(size1) || size1 < 0 || size1 > size2) {
    throw new RangeError('size1 must be an integer from 0 to size2');
  }
  const ranges: LeafRange[] = [];
  if (size1 === 0) return ranges;
  let start = 0;
  let end = size2;
  while (size1 < end) {
    const middle = start + largestPowerBelow(end - start);
    if (size1 <= middle) {
      ranges.push({ start: middle, end });
      end = middle;
    } else {
      ranges.push({ start, end: middle });
      start = middle;
    }
  }
  // The old tree's own root is known to whoever holds it.
  if (start > 0) ranges.push({ start, end });
  return ranges.reverse();
}

/** Collects the roots of ranges that do not overlap, from the leaf hashes of the tree in order. */
export class RangeHasher {
  readonly #ranges: readonly LeafRange[];
  readonly #inOrder: readonly LeafRange[];
  readonly #roots = new Map<LeafRange, string>();
  #next = 0;
  #index = 0;
  #current: CompactRange = emptyRange();

  constructor(ranges: readonly LeafRange[]) {
    this.#ranges = ranges;
    this.#inOrder = [...ranges].sort((a, b) => a.start - b.start);
  }

  /** The next leaf of the tree. */
  push(leafHash: string): void {
    const range = this.#inOrder[this.#next];
    const index = this.#index;
    this.#index += 1;
    if (range === undefined || index < range.start) return;
    appendLeaf(this.#current, leafHash);
    if (index + 1 < range.end) return;
    this.#roots.set(range, rangeRoot(this.#current));
    this.#current = emptyRange();
    this.#next += 1;
  }

  /** Whether no further leaf is needed. */
  get isComplete(): boolean {
    return this.#next === this.#inOrder.length;
  }

  /**
   * The roots, in the order in which the ranges were given.
   *
   * @throws RangeError when the leaves ended before the last range
   */
  roots(): string[] {
    if (!this.isComplete) throw new RangeError(`the tree has only ${this.#index} leaves`);
    return this.#ranges.map((range) => this.#roots.get(range) as string);
  }
}

/** Whether the leaf stands at `index` of the tree with this size and root. False for numbers and hashes of the wrong form too. */
export function verifyInclusion({ root, ...path }: InclusionClaim): boolean {
  return isHash(root) && inclusionRoot(path) === root;
}

/**
 * The root of the tree of this size in which the leaf stands at `index`, by its proof. Undefined for a proof of another length than
 * that place has, and for numbers and hashes of the wrong form.
 */
export function inclusionRoot({
  index,
  size,
  leafHash,
  proof,
}: Omit<InclusionClaim, 'root'>): string | undefined {
  if (!isSize(size) || !isSize(index) || index >= size) return undefined;
  if (![leafHash, ...proof].every(isHash)) return undefined;
  let fn = index;
  let sn = size - 1;
  let hash = leafHash;
  for (const sibling of proof) {
    if (sn === 0) return undefined;
    if (isOdd(fn) || fn === sn) {
      hash = nodeHash(sibling, hash);
      while (!isOdd(fn) && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 ? hash : undefined;
}

/**
 * Whether the second tree extends the first one. An empty first tree is extended by any, with an empty proof and the empty
 * tree's root. False for numbers and hashes of the wrong form too.
 */
export function verifyConsistency({ size1, root1, size2, root2, proof }: ConsistencyClaim): boolean {
  if (!isSize(size1) || !isSize(size2) || size1 > size2) return false;
  if (![root1, root2, ...proof].every(isHash)) return false;
  if (size1 === 0) return proof.length === 0 && root1 === rangeRoot(emptyRange());
  if (size1 === size2) return proof.length === 0 && root1 === root2;
  let fn = size1 - 1;
  let sn = size2 - 1;
  while (isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
  // A first tree that is one perfect subtree of the second is a node that the proof leaves out.
  const path = fn === 0 ? [root1, ...proof] : proof;
  const [first, ...rest] = path;
  if (first === undefined) return false;
  let old = first;
  let hash = first;
  for (const sibling of rest) {
    if (sn === 0) return false;
    if (isOdd(fn) || fn === sn) {
      old = nodeHash(sibling, old);
      hash = nodeHash(sibling, hash);
      while (!isOdd(fn) && fn !== 0) [fn, sn] = [half(fn), half(sn)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [fn, sn] = [half(fn), half(sn)];
  }
  return sn === 0 && old === root1 && hash === root2;
}

/** The largest power of two that is smaller than `n`, for n ≥ 2. Exact beyond 32 bits. */
export function largestPowerBelow(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

function isHash(text: string): boolean {
  return HASH.test(text);
}

function isSize(n: number): boolean {
  return Number.isSafeInteger(n) && n >= 0;
}

function assertSize(size: number): void {
  if (!isSize(size)) throw new RangeError('a tree size must be an integer from 0 to 2^53 - 1');
}

function isOdd(n: number): boolean {
  return n % 2 === 1;
}

function half(n: number): number {
  return Math.floor(n / 2);
}
