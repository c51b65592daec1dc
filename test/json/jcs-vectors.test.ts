/** RFC 8785's own vectors: the six pairs of texts, and the file of ES6 number texts (its appendix B, much extended). */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import { diagnoseCanonical } from '../../src/base/json/diagnose.js';
import { ingestJson } from '../../src/base/json/ingest.js';
import { scanCanonical } from '../../src/base/json/scan.js';
import { hasVectors, listVectors, readVector } from './vectors.js';

const PAIRS = 'jcs-testdata/testdata';
const NUMBERS = 'derived/es6-number-file-sha256.json';
const README = `${PAIRS}/README.md`;

describe.skipIf(!hasVectors(PAIRS))('pairs', () => {
  const names = listVectors(`${PAIRS}/input`);

  test('there are six pairs of input and output', () => {
    expect(names).toHaveLength(6);
  });

  test.each(names)('the input of %s has the canonical text beside it', (name) => {
    const input = readVector(`${PAIRS}/input/${name}`);
    const output = readVector(`${PAIRS}/output/${name}`);
    const hex = readVector(`${PAIRS}/outhex/${name.replace('.json', '.txt')}`)
      .toString()
      .replace(/\s/g, '');

    const { value, report } = ingestJson(input, { numbers: 'double' });
    // 333333333.33333329 has more digits than its double.
    expect(report.status).toBe(name === 'values.json' ? 'Lossy' : 'Ok');
    expect(Buffer.from(canonicalBytes(value)).toString('hex')).toBe(hex);
    expect(output.toString('hex')).toBe(hex);
    expect(scanCanonical(output, 0, output.length)).toBe(-1);
    expect(Buffer.from(canonicalBytes(JSON.parse(output.toString()))).equals(output)).toBe(true);
  });
});

describe.skipIf(!hasVectors(NUMBERS) || !hasVectors(README))('ES6 numbers', () => {
  test('100,000 lines of the number file, each text canonical where SPEC §1 lets it be', () => {
    const { sha256_of_first_lines: hashes } = JSON.parse(readVector(NUMBERS).toString()) as {
      sha256_of_first_lines: Record<string, string>;
    };
    const file = createHash('sha256');
    const bits = new BigUint64Array(1);
    const double = new Float64Array(bits.buffer);
    const counts = { canonical: 0, unsafe: 0 };
    const checked: number[] = [];
    let lines = 0;
    for (const next of es6Bits(readVector(README).toString())) {
      bits[0] = next;
      const value = double[0];
      const text = String(value);
      file.update(`${next.toString(16)},${text}\n`);
      const bytes = Buffer.from(text);
      if (Number.isInteger(value) && !Number.isSafeInteger(value) && !text.includes('e')) {
        expect(diagnoseCanonical(bytes)?.code).toBe('NUMBER_NOT_CANONICAL');
        expect(scanCanonical(bytes, 0, bytes.length)).toBeGreaterThanOrEqual(0);
        counts.unsafe++;
      } else {
        if (scanCanonical(bytes, 0, bytes.length) !== -1) expect.fail(`${text} is refused`);
        counts.canonical++;
      }
      lines++;
      if (hashes[lines] !== undefined) {
        expect(file.copy().digest('hex')).toBe(hashes[lines]);
        checked.push(lines);
      }
      if (lines === 100_000) break;
    }
    expect(checked).toEqual([1_000, 10_000, 100_000]);
    expect(counts.canonical).toBeGreaterThan(90_000);
    expect(counts.unsafe).toBeGreaterThan(50);
  });
});

/** The bits of the doubles of the number file, by the algorithm of its readme, which also lists the fixed ones. */
function* es6Bits(readme: string): Generator<bigint> {
  for (const [literal] of readme.matchAll(/0x[0-9a-f]{16}(?=n,)/g)) yield BigInt(literal);
  for (let i = 0n; i < 2000n; i++) yield 0x0010000000000000n + i;
  for (let block = new Uint8Array(32); ;) {
    block = new Uint8Array(createHash('sha256').update(block).digest());
    const doubles = new Float64Array(block.buffer);
    for (const [index, bits] of new BigUint64Array(block.buffer).entries()) {
      if (doubles[index] !== 0 && Number.isFinite(doubles[index])) yield bits;
    }
  }
}
