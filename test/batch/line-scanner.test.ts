/** The two scanners of blocks say the same of every block; of single lines `ledger/scanned-line` holds them against each other. */

import { afterEach, expect, test, vi } from 'vitest';
import {
  makePlainScanner,
  makeWasmScanner,
  scannerFor,
  type LineScanner,
} from '../../src/fast/blocks/line-scanner.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { ROW_WIDTH } from '../../src/fast/scan/scan.js';
import { nodeHash } from '../../src/format/tree/compact-range.js';
import { fixtureBytes } from '../fixtures/cases.js';
import { fixtureLines, makeRandom } from '../ledger/scan-kit.js';

const PIPELINE = Buffer.from(fixtureBytes('ledgers/pipeline-1000.jsonl'));

/** All that a scanner says of a block. */
function saidBy(scanner: LineScanner, block: Uint8Array): object {
  const ends = scanner.begin(block);
  const hashes: string[] = [];
  const usual: number[] = [];
  const rowAt = new Int32Array(ends.length).fill(-1);
  for (const [i, end] of ends.entries()) {
    const start = i === 0 ? 0 : ends[i - 1] + 1;
    hashes.push(scanner.leafHash(start, end));
    if (!scanner.scan(start, end, usual.length)) continue;
    rowAt[i] = usual.length;
    usual.push(i);
  }
  const scanned = scanner.rows.slice(0, usual.length * ROW_WIDTH);
  scanner.relate(rowAt, Buffer.from(hashes.join(''), 'latin1'));
  return { ends, hashes, usual, scanned, related: scanner.rows.slice(0, usual.length * ROW_WIDTH) };
}

const wasm = makeWasmScanner();

test('of the fixtures, one block after the other', () => {
  const plain = makePlainScanner();
  const blocks = [
    PIPELINE,
    PIPELINE.subarray(100, 5_000),
    PIPELINE.subarray(0, 300_000),
    ...fixtureLines().map((line, i) => (i % 2 === 0 ? line : Buffer.concat([line, line]))),
    Buffer.from(fixtureLines().join('\n')),
  ];
  let usual = 0;
  for (const block of blocks) {
    const said = saidBy(wasm as LineScanner, block) as { usual: number[] };
    expect(said).toEqual(saidBy(plain, block));
    usual += said.usual.length;
  }
  expect(usual).toBeGreaterThan(1_500);
});

test('where the lines of a block end is still so when others were looked at', () => {
  for (const scanner of [makePlainScanner(), wasm as LineScanner]) {
    const given = [PIPELINE.subarray(0, 200_000), PIPELINE.subarray(777, 150_000), PIPELINE].map((block) => {
      const ends = scanner.begin(block);
      for (const [i, end] of ends.entries()) scanner.scan(i === 0 ? 0 : ends[i - 1] + 1, end, 0);
      return { block, ends };
    });
    for (const { block, ends } of given) {
      const newlines = [...block.keys()].filter((at) => block[at] === 0x0a);
      expect([...ends]).toEqual(block.at(-1) === 0x0a ? newlines : [...newlines, block.length]);
    }
  }
});

test('wherever lines end', () => {
  const random = makeRandom(7);
  const texts = [
    '',
    '\n',
    'a',
    'a\n',
    '\na',
    '\n\n',
    '\n'.repeat(5_000),
    `${'x'.repeat(MAX_LINE_BYTES + 1)}\ny`,
  ];
  for (let length = 0; length < 400; length += 1)
    texts.push(Array.from({ length }, () => (random() < 0.2 ? '\n' : '\u000b')).join(''));
  for (const text of texts) {
    const block = Buffer.from(text);
    expect(saidBy(wasm as LineScanner, block), text).toEqual(saidBy(makePlainScanner(), block));
  }
});

test('what was there before is not seen', () => {
  const block = PIPELINE.subarray(0, 200_000);
  const scanner = wasm as LineScanner;
  const first = saidBy(scanner, block);
  for (const length of [0, 1, 15, 16, 17, 2_000, 150_000]) {
    expect(scanner.begin(block.subarray(0, length)).at(-1) ?? 0).toBeLessThanOrEqual(length);
    expect(saidBy(scanner, block)).toEqual(first);
  }
});

test('nodes of the tree are those of RFC 6962, wherever the block begins', () => {
  const random = makeRandom(11);
  const scanner = wasm as LineScanner;
  let nodes = 0;
  for (const ordinal of [0, 1, 2, 3, 5, 8, 100, 2 ** 30 - 3]) {
    for (const count of [0, 1, 2, 3, 4, 7, 8, 9, 31, 32, 33, 500]) {
      const leaves = Buffer.from(Array.from({ length: 32 * count }, () => Math.floor(random() * 256)));
      scanner.begin(PIPELINE.subarray(0, 10_000));
      const hashed = Buffer.from(scanner.hashNodes(leaves, ordinal));
      expect(hashed.length).toBe(leaves.length);
      const hashOf = (from: number, size: number): string => {
        if (size === 1) return leaves.subarray(32 * from, 32 * (from + 1)).toString('latin1');
        return hashed.subarray(32 * (from + size / 2), 32 * (from + size / 2 + 1)).toString('latin1');
      };
      for (let size = 2; size <= count; size *= 2) {
        for (let from = 0; from + size <= count; from += 1) {
          if ((ordinal + from) % size !== 0) continue;
          const expected = nodeHash(hashOf(from, size / 2), hashOf(from + size / 2, size / 2));
          expect(hashOf(from, size)).toBe(expected);
          nodes += 1;
        }
      }
    }
  }
  expect(nodes).toBeGreaterThan(4_000);
  const kept = scanner.hashNodes(Buffer.alloc(32 * 8, 1), 0);
  const before = Buffer.from(kept).toString('hex');
  scanner.begin(PIPELINE);
  expect(Buffer.from(kept).toString('hex')).toBe(before);
  expect(makePlainScanner().hashNodes(Buffer.alloc(64), 0)).toHaveLength(0);
});

afterEach(() => vi.unstubAllGlobals());

test('small blocks, and hosts without WebAssembly, are for JavaScript', () => {
  expect(scannerFor(1_000)).not.toBe(scannerFor(1_000_000));
  expect(scannerFor(1_000_000)).toBe(scannerFor(2_000_000));
  vi.stubGlobal('WebAssembly', undefined);
  expect(makeWasmScanner()).toBeUndefined();
  vi.stubGlobal('WebAssembly', {
    Module: class {
      constructor() {
        throw new Error('refused');
      }
    },
  });
  expect(makeWasmScanner()).toBeUndefined();
});
