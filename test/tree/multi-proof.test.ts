/** Proofs of many leaves at once, against the proofs of each. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { multiProofRanges, multiProofRoot } from '../../src/format/tree/multi-proof.js';
import { inclusionRanges, RangeHasher } from '../../src/format/tree/proof.js';

const hashes = Array.from({ length: 70 }, (_, i) => leafHash(Buffer.from(`leaf ${i}`)));

function rootOf(size: number): string {
  const tree = emptyRange();
  for (const hash of hashes.slice(0, size)) appendLeaf(tree, hash);
  return rangeRoot(tree);
}

function proofOf(indices: readonly number[], size: number): string[] {
  const hasher = new RangeHasher(multiProofRanges(indices, size));
  for (const hash of hashes.slice(0, size)) hasher.push(hash);
  return hasher.roots();
}

const leavesOf = (indices: readonly number[]) => indices.map((index) => ({ index, leafHash: hashes[index] }));

const selections = fc
  .nat({ max: hashes.length })
  .chain((size) =>
    fc.tuple(fc.constant(size), fc.subarray(Array.from({ length: size }, (_, index) => index))),
  );

describe('a proof of many leaves', () => {
  it('gives the root of the tree with them', () => {
    fc.assert(
      fc.property(selections, ([size, indices]) => {
        expect(multiProofRoot(leavesOf(indices), proofOf(indices, size), size)).toBe(rootOf(size));
      }),
    );
  });

  it('has the hashes that the proofs of each have and the leaves do not give', () => {
    fc.assert(
      fc.property(selections, ([size, indices]) => {
        const has = (start: number, end: number): boolean => indices.some((i) => i >= start && i < end);
        const each = indices.flatMap((index) => inclusionRanges(index, size));
        const needed = each.filter(({ start, end }) => !has(start, end));
        const names = new Set(needed.map(({ start, end }) => `${start} ${end}`));
        const made = multiProofRanges(indices, size).map(({ start, end }) => `${start} ${end}`);
        expect(new Set(made)).toEqual(indices.length === 0 && size > 0 ? new Set([`0 ${size}`]) : names);
        expect(made.length).toBe(new Set(made).size);
      }),
    );
  });

  it('gives another root with a hash, a leaf or a place changed, and none with hashes too few or too many', () => {
    fc.assert(
      fc.property(selections, fc.nat(), ([size, indices], pick) => {
        fc.pre(indices.length > 0);
        const proof = proofOf(indices, size);
        const leaves = leavesOf(indices);
        const other = leafHash(Buffer.from('another'));
        const at = pick % leaves.length;
        const swapped = leaves.map((leaf, i) => (i === at ? { ...leaf, leafHash: other } : leaf));
        expect(multiProofRoot(swapped, proof, size)).not.toBe(rootOf(size));
        expect(multiProofRoot(leaves, [...proof, other], size)).toBeUndefined();
        if (proof.length === 0) return;
        const changed = proof.map((hash, i) => (i === pick % proof.length ? other : hash));
        expect(multiProofRoot(leaves, changed, size)).not.toBe(rootOf(size));
        expect(multiProofRoot(leaves, proof.slice(1), size)).toBeUndefined();
      }),
    );
  });

  it('is of a tree of any size, however large it is said to be', () => {
    const size = Number.MAX_SAFE_INTEGER;
    expect(multiProofRanges([0], size).length).toBe(53);
    expect(multiProofRoot(leavesOf([0]), [], size)).toBeUndefined();
  });

  it.each([[[1, 0]], [[0, 0]], [[5]], [[-1]], [[0.5]]])(
    'is not of the indices %j of a tree of 5',
    (indices) => {
      expect(() => multiProofRanges(indices, 5)).toThrow(RangeError);
      expect(() => multiProofRoot(leavesOf(indices), [], 5)).toThrow(RangeError);
    },
  );
});
