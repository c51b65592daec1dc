/** A whole tree in memory: the roots that one pass over the leaves gives, and the proofs of every leaf. */

import { describe, expect, it } from 'vitest';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../src/format/tree/compact-range.js';
import { NodeStore } from '../../src/format/tree/node-store.js';
import { inclusionRanges, verifyInclusion } from '../../src/format/tree/proof.js';

describe('NodeStore', () => {
  const leaves = Array.from({ length: 70 }, (_, n) => leafHash(Buffer.from(`leaf ${n}`)));
  const store = new NodeStore();
  for (const leaf of leaves) store.push(leaf);

  it('gives the root of the tree over any number of the first leaves', () => {
    const range = emptyRange();
    for (const [i, leaf] of leaves.entries()) {
      appendLeaf(range, leaf);
      expect(store.rootOf({ start: 0, end: i + 1 })).toBe(rangeRoot(range));
    }
    expect(store.size).toBe(70);
  });

  it('gives the proof of every leaf in every tree', () => {
    for (let size = 1; size <= leaves.length; size += 1) {
      const root = store.rootOf({ start: 0, end: size });
      for (let index = 0; index < size; index += 1) {
        const proof = inclusionRanges(index, size).map((range) => store.rootOf(range));
        expect(verifyInclusion({ index, size, leafHash: leaves[index], root, proof })).toBe(true);
      }
    }
  });

  it.each([
    [0, 0],
    [3, 2],
    [-1, 1],
    [0, 71],
    [64, 128],
  ])('has no root of [%i, %i)', (start, end) => {
    expect(() => store.rootOf({ start, end })).toThrow(RangeError);
  });
});
