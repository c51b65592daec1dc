/** The tree that an index keeps: the roots of all that proofs are made of, as one pass over the leaves gives them. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryEntries } from './memory-entries.js';
import { RecordEntries } from '../../src/log/cache/record-entries.js';
import { RecordReader } from '../../src/log/cache/record-reader.js';
import { Entries } from '../../src/log/cache/tables.js';
import { makeConsistencyProof, makeProof } from '../../src/proof/make-proof.js';
import { indexBasis } from '../../src/proof/proof-basis.js';
import { defaultBackend } from '../../src/format/signature/default-backend.js';
import { appendLeaf, hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';
import {
  RangeHasher,
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
} from '../../src/format/tree/proof.js';
import { startVerification } from '../../src/rules/verify/state.js';
import { times } from '../slow.js';
import { makeLines, noteOf, opener } from '../proof/support.js';
import { NAMES, SEGMENT, buildIndex, linesIn } from './support.js';

const SIZE = 66_000;
const LEAVES = Array.from({ length: SIZE }, (_, i) => leafHash(Buffer.from(String(i))));

function rootsOf(ranges: readonly LeafRange[]): string[] {
  const hasher = new RangeHasher(ranges);
  for (const leaf of LEAVES) {
    if (hasher.isComplete) break;
    hasher.push(leaf);
  }
  return hasher.roots();
}

test('of any size, however often it was written', async () => {
  const store = new MemoryEntries();
  const entries = new Entries(store, '', NAMES);
  const state = startVerification(undefined, defaultBackend);
  let records = new RecordEntries(entries, state);
  for (const [i, leaf] of LEAVES.entries()) {
    records.beforeLine(undefined);
    appendLeaf(state.tree, leaf);
    state.records += 1;
    state.chain.prev = hashToBase64url(leaf);
    const line = { bytes: Buffer.of(), length: 70_000, offset: i, number: i + 1, terminated: true };
    const result = { findings: [], folded: [], own: [], waiting: undefined, context: {}, signatures: [] };
    records.afterLine({ ...line, longLeafHash: leaf }, SEGMENT, {
      ...result,
      examined: undefined,
      verdict: 'invalid',
    });
    if (i % 997 > 0 && i < SIZE - 1) continue;
    await store.write(records.takeChanges());
    records = new RecordEntries(entries, state);
  }
  const reader = new RecordReader(entries, state, linesIn(Buffer.of()));
  const sizes = fc.oneof(
    fc.integer({ min: 1, max: SIZE }),
    fc.constantFrom(255, 256, 257, 65_535, 65_536, SIZE),
  );
  fc.assert(
    fc.property(sizes, fc.nat(), (size, pick) => {
      const ranges = [...inclusionRanges(pick % size, size)];
      const grown = consistencyRanges((pick % size) + 1, size);
      for (const each of [ranges, grown])
        expect(each.map((range) => reader.rootOf(range))).toEqual(rootsOf(each));
      expect(reader.rootOf({ start: 0, end: size })).toBe(rootsOf([{ start: 0, end: size }])[0]);
    }),
    { numRuns: times(20, 500) },
  );
});

test('every proof is the one that the ledger gives', async () => {
  const lines = await makeLines({ events: [3, 2, 2], attested: true });
  const open = opener(lines);
  const bytes = Buffer.concat(lines.flatMap((line) => [line, Buffer.from('\n')]));
  const { indexed } = await buildIndex(bytes, 3);
  const basis = indexBasis(indexed.records(linesIn(bytes)));
  for (const seq of [0, 1, 4, 6]) {
    expect(await makeProof(basis, String(seq))).toEqual(await makeProof(open, String(seq)));
    const checkpoint = noteOf(lines.slice(0, 7));
    const given = await makeProof(open, String(seq), { checkpoint });
    expect(await makeProof(basis, String(seq), { checkpoint })).toEqual(given);
  }
  for (const size of [0, 1, 4, 7]) {
    const old = noteOf(lines.slice(0, size));
    expect(await makeConsistencyProof(basis, old)).toEqual(await makeConsistencyProof(open, old));
  }
  const forked = noteOf([...lines.slice(0, 3), Buffer.from('other')]);
  const failure = (from: Parameters<typeof makeProof>[0]): Promise<unknown> =>
    makeConsistencyProof(from, forked).catch((error: unknown) => String(error));
  expect(await failure(basis)).toBe(await failure(open));
});
