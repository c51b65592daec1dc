/**
 * A proof of many leaves of an RFC 6962 tree: the roots of the largest subtrees without any of them, from left to right. It is the
 * smallest proof of these leaves.
 */

import { emptyRange, nodeHash, rangeRoot } from './compact-range.js';
import { largestPowerBelow, type LeafRange } from './proof.js';

export interface PlacedLeaf {
  readonly index: number;
  /** A binary string of 32 characters. */
  readonly leafHash: string;
}

/**
 * The subtrees whose roots are the proof, in its order.
 *
 * @param indices - Of the proven leaves: ascending, unique.
 * @throws RangeError for other indices, and for one outside the tree
 */
export function multiProofRanges(indices: readonly number[], size: number): LeafRange[] {
  assertIndices(indices, size);
  const ranges: LeafRange[] = [];
  const visit = (start: number, end: number, from: number, to: number): void => {
    if (from === to) {
      ranges.push({ start, end });
      return;
    }
    // All its leaves are proven.
    if (to - from === end - start) return;
    const middle = start + largestPowerBelow(end - start);
    const split = firstAtLeast(indices, middle, from, to);
    visit(start, middle, from, split);
    visit(middle, end, split, to);
  };
  if (size > 0) visit(0, size, 0, indices.length);
  return ranges;
}

/**
 * The root of the leaves and the proof; undefined if the proof has too few or too many hashes.
 *
 * @param leaves - Ascending by index, unique.
 * @throws RangeError as {@link multiProofRanges}
 */
export function multiProofRoot(
  leaves: readonly PlacedLeaf[],
  proof: readonly string[],
  size: number,
): string | undefined {
  const indices = leaves.map(({ index }) => index);
  assertIndices(indices, size);
  if (size === 0) return proof.length === 0 ? rangeRoot(emptyRange()) : undefined;
  let used = 0;
  const visit = (start: number, end: number, from: number, to: number): string | undefined => {
    if (from === to) {
      used += 1;
      return proof[used - 1];
    }
    if (end - start === 1) return leaves[from]?.leafHash;
    const middle = start + largestPowerBelow(end - start);
    const split = firstAtLeast(indices, middle, from, to);
    const left = visit(start, middle, from, split);
    const right = left === undefined ? undefined : visit(middle, end, split, to);
    return left === undefined || right === undefined ? undefined : nodeHash(left, right);
  };
  const root = visit(0, size, 0, leaves.length);
  return used === proof.length ? root : undefined;
}

/** The index of the first of `sorted[from, to)` that is at least `wanted`; `to` if there is none. */
function firstAtLeast(sorted: readonly number[], wanted: number, from: number, to: number): number {
  let low = from;
  let high = to;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}

function assertIndices(indices: readonly number[], size: number): void {
  if (!Number.isSafeInteger(size) || size < 0) throw new RangeError('a tree size must be an integer from 0');
  let last = -1;
  for (const index of indices) {
    if (!Number.isSafeInteger(index) || index <= last || index >= size)
      throw new RangeError('indices must ascend, and lie in the tree');
    last = index;
  }
}
