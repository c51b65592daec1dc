/**
 * Merkle proofs (RFC 6962 §2.1.1, §2.1.2): the subtrees of a proof, their roots from one pass over the leaves in logarithmic memory, and
 * verification (RFC 9162 §2.1.3.2, §2.1.4.2). Hashes are binary strings of 32 characters; sizes and indices are at most 2^53 − 1.
 */

import { appendLeaf, emptyRange, nodeHash, rangeRoot, type CompactRange } from './compact-range.js';

/** The leaves [start, end) of a tree. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

interface InclusionClaim {
  readonly index: number;
  readonly size: number;
  readonly leafHash: string;
  readonly root: string;
  /** From the leaf's sibling up. */
  readonly proof: readonly string[];
}

interface ConsistencyClaim {
  readonly size1: number;
  readonly root1: string;
  readonly size2: number;
  readonly root2: string;
  readonly proof: readonly string[];
}

/** Only the low bits of a character above 0xff would be hashed. */
const HASH = /^[\0-\xff]{32}$/;

/**
 * The subtrees whose roots are the inclusion proof of a leaf, in the proof's order: PATH(m, D[n]) of RFC 6962 §2.1.1.
 *
 * @throws RangeError unless 0 ≤ `index` < `size` ≤ 2^53 − 1
 */
export function inclusionRanges(index: number, size: number): LeafRange[] {
  assertSize(size);
  if (!Number.isSafeInteger(index) || index < 0 || index >= size)
    throw new RangeError('index must be an integer from 0 to size - 1');
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
 * The subtrees whose roots are the proof that the tree of `size2` leaves extends that of `size1`, in the proof's order: PROOF(m, D[n])
 * of RFC 6962 §2.1.2. Empty for equal sizes and for an empty first tree.
 *
 * @throws RangeError unless 0 ≤ `size1` ≤ `size2` ≤ 2^53 − 1
 */
export function consistencyRanges(size1: number, size2: number): LeafRange[] {
  assertSize(size2);
  if (!Number.isSafeInteger(size1) || size1 < 0 || size1 > size2)
    throw new RangeError('size1 must be an integer from 0 to size2');
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
  // The verifier has the old tree's root.
  if (start > 0) ranges.push({ start, end });
  return ranges.reverse();
}

/** Computes the roots of non-overlapping ranges from the leaf hashes of the tree in order. */
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

  /** Whether no more leaves are needed. */
  get isComplete(): boolean {
    return this.#next === this.#inOrder.length;
  }

  /** The roots, in the order of the given ranges. @throws RangeError if the leaves ended before the last range */
  roots(): string[] {
    if (!this.isComplete) throw new RangeError(`the tree has only ${this.#index} leaves`);
    return this.#ranges.map((range) => this.#roots.get(range) as string);
  }
}

/** Whether the leaf is at `index` of the tree with this size and root. False for malformed numbers and hashes. */
export function verifyInclusion({ root, ...path }: InclusionClaim): boolean {
  return isHash(root) && inclusionRoot(path) === root;
}

/** The root of a leaf at `index` in a tree of this size, by its proof. Undefined for a wrong length and for malformed numbers and hashes. */
export function inclusionRoot({
  index,
  size,
  leafHash,
  proof,
}: Omit<InclusionClaim, 'root'>): string | undefined {
  if (!isSize(size) || !isSize(index) || index >= size) return undefined;
  if (![leafHash, ...proof].every(isHash)) return undefined;
  return climb(index, size - 1, leafHash, proof);
}

/** The root above node `fn` of a level whose last is `sn`. @param onLeft - Called with each sibling to the left */
function climb(
  fn: number,
  sn: number,
  hash: string,
  siblings: readonly string[],
  onLeft?: (sibling: string) => void,
): string | undefined {
  for (const sibling of siblings) {
    if (sn === 0) return undefined;
    if (isOdd(fn) || fn === sn) {
      onLeft?.(sibling);
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
 * Whether the second tree extends the first. Any tree extends the empty one, with an empty proof and the empty tree's root. False for
 * malformed numbers and hashes.
 */
export function verifyConsistency({ size1, root1, size2, root2, proof }: ConsistencyClaim): boolean {
  if (!isSize(size1) || !isSize(size2) || size1 > size2) return false;
  if (![root1, root2, ...proof].every(isHash)) return false;
  if (size1 === 0) return proof.length === 0 && root1 === rangeRoot(emptyRange());
  if (size1 === size2) return proof.length === 0 && root1 === root2;
  let fn = size1 - 1;
  let sn = size2 - 1;
  while (isOdd(fn)) [fn, sn] = [half(fn), half(sn)];
  // The proof omits a first tree that is one perfect subtree of the second.
  const path = fn === 0 ? [root1, ...proof] : proof;
  const [first, ...rest] = path;
  if (first === undefined) return false;
  let old = first;
  const hash = climb(fn, sn, first, rest, (sibling) => {
    old = nodeHash(sibling, old);
  });
  return old === root1 && hash === root2;
}

/** The largest power of two below `n`, n ≥ 2. Exact beyond 32 bits. */
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
