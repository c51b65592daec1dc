/** Merkle proofs against the definitions of RFC 6962 §2.1, written out, and against the vectors of transparency-dev/merkle. */

import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { leafHash } from '../../src/format/tree/compact-range.js';
import {
  RangeHasher,
  consistencyRanges,
  inclusionRanges,
  verifyConsistency,
  verifyInclusion,
  type LeafRange,
} from '../../src/format/tree/proof.js';

const vectors = fileURLToPath(new URL('../../../shared/vectors/', import.meta.url));
const merkle = join(vectors, 'merkle-rfc6962/testdata');
const reference = join(vectors, 'derived/rfc6962-reference-tree.json');

const MAX_SIZE = 70;

function sha256(...parts: (Uint8Array | string)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(typeof part === 'string' ? Buffer.from(part, 'latin1') : part);
  return hash.digest('binary');
}

const roots = new Map<string, string>();

/** MTH of RFC 6962 §2.1 over leaves [start, end) of one fixed list. */
function mth(start: number, end: number): string {
  const key = `${start} ${end}`;
  const known = roots.get(key);
  if (known !== undefined) return known;
  const size = end - start;
  let root: string;
  if (size === 0) root = sha256();
  else if (size === 1) root = sha256(Buffer.of(0), Buffer.from(`leaf ${start}`));
  else root = sha256(Buffer.of(1), mth(start, start + split(size)), mth(start + split(size), end));
  roots.set(key, root);
  return root;
}

function split(size: number): number {
  let k = 1;
  while (k * 2 < size) k *= 2;
  return k;
}

/** PATH(m, D[n]) of RFC 6962 §2.1.1. */
function path(m: number, start: number, end: number): string[] {
  const size = end - start;
  if (size === 1) return [];
  const k = split(size);
  if (m < k) return [...path(m, start, start + k), mth(start + k, end)];
  return [...path(m - k, start + k, end), mth(start, start + k)];
}

/** SUBPROOF(m, D[n], b) of RFC 6962 §2.1.2. */
function subproof(m: number, start: number, end: number, isWhole: boolean): string[] {
  const size = end - start;
  if (m === size) return isWhole ? [] : [mth(start, end)];
  const k = split(size);
  if (m <= k) return [...subproof(m, start, start + k, isWhole), mth(start + k, end)];
  return [...subproof(m - k, start + k, end, false), mth(start, start + k)];
}

const leaves = Array.from({ length: MAX_SIZE }, (_, i) => leafHash(Buffer.from(`leaf ${i}`)));

function hashRanges(ranges: readonly LeafRange[], size: number): string[] {
  const hasher = new RangeHasher(ranges);
  for (const leaf of leaves.slice(0, size)) hasher.push(leaf);
  return hasher.roots();
}

/** `proof` with each hash changed, dropped, doubled, two swapped, and one added at each end. */
function spoilt(proof: readonly string[]): string[][] {
  const other = 'x'.repeat(32);
  const variants = [
    [...proof, other],
    [other, ...proof],
    [...proof, proof.at(-1) ?? other],
  ];
  for (const [i, hash] of proof.entries()) {
    const flipped = String.fromCharCode(hash.charCodeAt(0) ^ 1) + hash.slice(1);
    variants.push(proof.with(i, flipped), proof.toSpliced(i, 1), proof.toSpliced(i, 0, hash));
    variants.push(proof.with(i, hash.slice(1)), proof.with(i, `${hash}\0`));
    // Of this one only the low bits are those of the right hash.
    variants.push(proof.with(i, String.fromCharCode(hash.charCodeAt(0) + 256) + hash.slice(1)));
    const next = proof[i + 1];
    if (next !== undefined) variants.push(proof.with(i, next).with(i + 1, hash));
  }
  return variants;
}

describe('inclusion', () => {
  it('proofs of every leaf of every tree are those of the definition, and verify', () => {
    for (let size = 1; size <= MAX_SIZE; size += 1) {
      const root = mth(0, size);
      for (let index = 0; index < size; index += 1) {
        const proof = hashRanges(inclusionRanges(index, size), size);
        expect(proof).toEqual(path(index, 0, size));
        expect(verifyInclusion({ index, size, leafHash: leaves[index], root, proof })).toBe(true);
      }
    }
  });

  it('proofs with a changed, dropped or added hash, another leaf or another root do not verify', () => {
    for (let size = 1; size <= 40; size += 1) {
      const root = mth(0, size);
      for (let index = 0; index < size; index += 1) {
        const claim = { index, size, leafHash: leaves[index], root, proof: path(index, 0, size) };
        for (const proof of spoilt(claim.proof)) expect(verifyInclusion({ ...claim, proof })).toBe(false);
        expect(verifyInclusion({ ...claim, leafHash: leaves[(index + 1) % MAX_SIZE] })).toBe(false);
        expect(verifyInclusion({ ...claim, root: mth(0, size + 1) })).toBe(false);
      }
    }
  });

  it('proofs verify for no other index, and for no other size that would lead another way', () => {
    for (let size = 1; size <= 33; size += 1) {
      for (let index = 0; index < size; index += 1) {
        const claim = {
          index,
          size,
          leafHash: leaves[index],
          root: mth(0, size),
          proof: path(index, 0, size),
        };
        for (let other = 0; other < size + 2; other += 1) {
          if (other !== index) expect(verifyInclusion({ ...claim, index: other })).toBe(false);
        }
        for (let other = 0; other <= 40; other += 1) {
          // A proof says nothing of the size but through its shape: the checkpoint binds size and root.
          const isSameWay =
            other > index && JSON.stringify(shape(index, other)) === JSON.stringify(shape(index, size));
          expect(verifyInclusion({ ...claim, size: other })).toBe(isSameWay);
        }
      }
    }
  });

  it('refuses numbers that are none', () => {
    const claim = { index: 0, size: 1, leafHash: leaves[0], root: leaves[0], proof: [] };
    expect(verifyInclusion(claim)).toBe(true);
    for (const wrong of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
      expect(verifyInclusion({ ...claim, index: wrong })).toBe(false);
      expect(verifyInclusion({ ...claim, size: wrong })).toBe(false);
      expect(() => inclusionRanges(wrong, 1)).toThrow(RangeError);
      expect(() => inclusionRanges(0, wrong)).toThrow(RangeError);
    }
    expect(verifyInclusion({ ...claim, size: 0 })).toBe(false);
    expect(() => inclusionRanges(1, 1)).toThrow(RangeError);
  });

  it('is found in trees of any size', () => {
    const size = 2 ** 53 - 1;
    for (const index of [0, 2 ** 31, 2 ** 32 + 1, 2 ** 52 - 1, size - 1]) {
      const ranges = inclusionRanges(index, size);
      expect(ranges.length).toBeLessThanOrEqual(53);
      const covered = ranges.reduce((sum, { start, end }) => sum + (end - start), 0);
      expect(covered).toBe(size - 1);
    }
  });
});

/** On which side of the way from a leaf to the root its siblings lie. */
function shape(index: number, size: number): boolean[] {
  return inclusionRanges(index, size).map(({ start }) => start > index);
}

describe('consistency', () => {
  it('proofs of every pair of trees are those of the definition, and verify', () => {
    for (let size2 = 0; size2 <= MAX_SIZE; size2 += 1) {
      for (let size1 = 0; size1 <= size2; size1 += 1) {
        const proof = hashRanges(consistencyRanges(size1, size2), size2);
        expect(proof).toEqual(size1 === 0 ? [] : subproof(size1, 0, size2, true));
        const claim = { size1, root1: mth(0, size1), size2, root2: mth(0, size2), proof };
        expect(verifyConsistency(claim)).toBe(true);
      }
    }
  });

  it('proofs with a changed, dropped or added hash, or another root do not verify', () => {
    for (let size2 = 1; size2 <= 33; size2 += 1) {
      for (let size1 = 1; size1 <= size2; size1 += 1) {
        const proof = subproof(size1, 0, size2, true);
        const claim = { size1, root1: mth(0, size1), size2, root2: mth(0, size2), proof };
        for (const other of spoilt(proof)) {
          expect(verifyConsistency({ ...claim, proof: other })).toBe(false);
        }
        expect(verifyConsistency({ ...claim, root1: mth(1, size1 + 1) })).toBe(false);
        expect(verifyConsistency({ ...claim, root2: mth(1, size2 + 1) })).toBe(false);
        if (size1 < size2) {
          const swapped = { size1, root1: claim.root2, size2, root2: claim.root1, proof };
          expect(verifyConsistency(swapped)).toBe(false);
        }
      }
    }
  });

  it('proofs from another size do not verify', () => {
    for (let size2 = 1; size2 <= 33; size2 += 1) {
      for (let size1 = 1; size1 <= size2; size1 += 1) {
        const proof = subproof(size1, 0, size2, true);
        const claim = { size1, root1: mth(0, size1), size2, root2: mth(0, size2), proof };
        for (let other = 0; other <= size2 + 1; other += 1) {
          if (other !== size1) expect(verifyConsistency({ ...claim, size1: other })).toBe(false);
        }
      }
    }
  });

  it('takes an empty tree only with its own root and no proof', () => {
    const claim = { size1: 0, root1: mth(0, 0), size2: 5, root2: mth(0, 5), proof: [] };
    expect(verifyConsistency(claim)).toBe(true);
    expect(verifyConsistency({ ...claim, root1: mth(0, 1) })).toBe(false);
    expect(verifyConsistency({ ...claim, proof: [mth(0, 1)] })).toBe(false);
    expect(verifyConsistency({ ...claim, size2: 0, root2: mth(0, 0) })).toBe(true);
  });

  it('refuses numbers that are none', () => {
    for (const wrong of [-1, 0.5, NaN, 2 ** 53]) {
      const claim = { size1: 1, root1: mth(0, 1), size2: 1, root2: mth(0, 1), proof: [] };
      expect(verifyConsistency({ ...claim, size1: wrong })).toBe(false);
      expect(verifyConsistency({ ...claim, size2: wrong })).toBe(false);
      expect(() => consistencyRanges(wrong, 1)).toThrow(RangeError);
      expect(() => consistencyRanges(0, wrong)).toThrow(RangeError);
    }
    expect(() => consistencyRanges(2, 1)).toThrow(RangeError);
  });
});

describe('range hasher', () => {
  it('says when the leaves were too few', () => {
    const hasher = new RangeHasher([{ start: 1, end: 3 }]);
    hasher.push(leaves[0]);
    hasher.push(leaves[1]);
    expect(hasher.isComplete).toBe(false);
    expect(() => hasher.roots()).toThrow(RangeError);
    hasher.push(leaves[2]);
    expect(hasher.isComplete).toBe(true);
    hasher.push(leaves[3]);
    expect(hasher.roots()).toEqual([mth(1, 3)]);
  });
});

interface InclusionVector {
  readonly leafIdx: number;
  readonly treeSize: number;
  readonly root: string;
  readonly leafHash: string;
  readonly proof: readonly string[] | null;
  readonly wantErr: boolean;
}

interface ConsistencyVector {
  readonly size1: number;
  readonly size2: number;
  readonly root1: string;
  readonly root2: string;
  readonly proof: readonly string[] | null;
  readonly wantErr: boolean;
}

function readVectors<T>(folder: string): [string, T][] {
  if (!existsSync(join(merkle, folder))) return [];
  const names = readdirSync(join(merkle, folder), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => name.endsWith('.json'))
    .map((name) => [name, JSON.parse(readFileSync(join(merkle, folder, name), 'utf8')) as T]);
}

const binary = (base64: string | null): string => Buffer.from(base64 ?? '', 'base64').toString('latin1');

/** One vector of equal trees has words for its two equal roots. */
function rootsOf({ size1, size2, root1, root2 }: ConsistencyVector): { root1: string; root2: string } {
  const [first, second] = [binary(root1), binary(root2)];
  if (size1 === 0 || size1 !== size2 || first !== second) return { root1: first, root2: second };
  return { root1: sha256(first), root2: sha256(second) };
}

describe.skipIf(!existsSync(merkle))('vectors of transparency-dev/merkle', () => {
  it('are all there', () => {
    expect(readVectors('inclusion')).toHaveLength(98);
    expect(readVectors('consistency')).toHaveLength(98);
  });

  it.each(readVectors<InclusionVector>('inclusion'))('inclusion %s', (_name, vector) => {
    const verified = verifyInclusion({
      index: vector.leafIdx,
      size: vector.treeSize,
      leafHash: binary(vector.leafHash),
      root: binary(vector.root),
      proof: (vector.proof ?? []).map(binary),
    });
    expect(verified).toBe(!vector.wantErr);
  });

  it.each(readVectors<ConsistencyVector>('consistency'))('consistency %s', (_name, vector) => {
    const verified = verifyConsistency({
      size1: vector.size1,
      ...rootsOf(vector),
      size2: vector.size2,
      proof: (vector.proof ?? []).map(binary),
    });
    expect(verified).toBe(!vector.wantErr);
  });
});

describe.skipIf(!existsSync(reference))('the reference tree', () => {
  it('has proofs of each leaf and of each older size', () => {
    const { leaf_inputs_hex: inputs, root_by_size_hex: rootsHex } = JSON.parse(
      readFileSync(reference, 'utf8'),
    ) as { leaf_inputs_hex: string[]; root_by_size_hex: string[] };
    const hashes = inputs.map((hex) => leafHash(Buffer.from(hex, 'hex')));
    const rootOf = (size: number): string => Buffer.from(rootsHex[size], 'hex').toString('latin1');
    const prove = (ranges: readonly LeafRange[], size: number): string[] => {
      const hasher = new RangeHasher(ranges);
      for (const hash of hashes.slice(0, size)) hasher.push(hash);
      return hasher.roots();
    };
    for (let size = 1; size <= hashes.length; size += 1) {
      for (let index = 0; index < size; index += 1) {
        const proof = prove(inclusionRanges(index, size), size);
        const claim = { index, size, leafHash: hashes[index], root: rootOf(size), proof };
        expect(verifyInclusion(claim)).toBe(true);
      }
      for (let size1 = 0; size1 <= size; size1 += 1) {
        const proof = prove(consistencyRanges(size1, size), size);
        const claim = { size1, root1: rootOf(size1), size2: size, root2: rootOf(size), proof };
        expect(verifyConsistency(claim)).toBe(true);
      }
    }
  });
});
