/** The compact range against the definition of RFC 6962 §2.1, written out, and against reference roots. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import {
  appendLeaf,
  emptyRange,
  leafHash,
  nodeHash,
  rangeRoot,
} from '../../src/format/tree/compact-range.js';

const reference = new URL('../../../shared/vectors/derived/rfc6962-reference-tree.json', import.meta.url);

function sha256(...parts: Uint8Array[]): Buffer {
  return createHash('sha256').update(Buffer.concat(parts)).digest();
}

/** MTH(D[n]) as RFC 6962 defines it. */
function merkleTreeHash(leaves: readonly Uint8Array[]): Buffer {
  if (leaves.length === 0) return sha256();
  if (leaves.length === 1) return sha256(Buffer.of(0), leaves[0]);
  let k = 1;
  while (k * 2 < leaves.length) k *= 2;
  return sha256(Buffer.of(1), merkleTreeHash(leaves.slice(0, k)), merkleTreeHash(leaves.slice(k)));
}

function rootOf(leaves: readonly Uint8Array[]): string {
  const range = emptyRange();
  for (const leaf of leaves) appendLeaf(range, leafHash(leaf));
  expect(range.size).toBe(leaves.length);
  return Buffer.from(rangeRoot(range), 'latin1').toString('hex');
}

describe('compact range', () => {
  it('has the root that the definition gives, at every size up to 70', () => {
    const leaves = Array.from({ length: 70 }, (_, i) => Buffer.from(`leaf ${i} ${'x'.repeat(i)}`));
    for (let size = 0; size <= leaves.length; size += 1) {
      expect(rootOf(leaves.slice(0, size))).toBe(merkleTreeHash(leaves.slice(0, size)).toString('hex'));
    }
  });

  it('keeps one hash for each bit of the size', () => {
    const range = emptyRange();
    for (let size = 1; size <= 1_000; size += 1) {
      appendLeaf(range, leafHash(Buffer.from(String(size))));
      expect(range.hashes.length).toBe(size.toString(2).replaceAll('0', '').length);
    }
  });

  it('hashes lines of any length, one after the other', () => {
    for (const length of [0, 1, 65_534, 65_535, 200_000, 3]) {
      const line = Buffer.alloc(length, 0x61);
      expect(Buffer.from(leafHash(line), 'latin1')).toEqual(sha256(Buffer.of(0), line));
    }
    const left = leafHash(Buffer.of(1));
    const right = leafHash(Buffer.of(2));
    const parts = [Buffer.of(1), Buffer.from(left, 'latin1'), Buffer.from(right, 'latin1')];
    expect(Buffer.from(nodeHash(left, right), 'latin1')).toEqual(sha256(...parts));
  });

  it.skipIf(!existsSync(reference))('has the roots of the reference tree', () => {
    const { leaf_inputs_hex: leaves, root_by_size_hex: roots } = JSON.parse(
      readFileSync(reference, 'utf8'),
    ) as {
      leaf_inputs_hex: string[];
      root_by_size_hex: string[];
    };
    const inputs = leaves.map((hex) => Buffer.from(hex, 'hex'));
    expect(roots.map((_, size) => rootOf(inputs.slice(0, size)))).toEqual(roots);
  });
});
