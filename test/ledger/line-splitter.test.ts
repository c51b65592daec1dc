/** Lines and their offsets are those of a naive split, however the bytes come; and memory is bounded, whatever they are. */

import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LineSplitter, MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { hashToBase64url, leafHash } from '../../src/format/tree/compact-range.js';

interface Line {
  readonly text: string;
  readonly length: number;
  readonly offset: number;
  readonly number: number;
  readonly terminated: boolean;
  /** Of a line that is too long. */
  readonly leaf: string | undefined;
}

/** The obvious way. */
function splitNaively(bytes: Buffer): Line[] {
  const lines: Line[] = [];
  for (let offset = 0; offset < bytes.length;) {
    const newline = bytes.indexOf('\n', offset);
    const end = newline === -1 ? bytes.length : newline;
    const line = bytes.subarray(offset, end);
    lines.push({
      text: line.toString('latin1').slice(0, MAX_LINE_BYTES),
      length: line.length,
      offset,
      number: lines.length + 1,
      terminated: newline !== -1,
      leaf:
        line.length > MAX_LINE_BYTES
          ? createHash('sha256').update(Buffer.of(0)).update(line).digest('base64url')
          : undefined,
    });
    offset = end + 1;
  }
  return lines;
}

function split(bytes: Buffer, sizes: readonly number[]): Line[] {
  const splitter = new LineSplitter();
  const lines: Line[] = [];
  const take = ({
    bytes: view,
    longLeafHash,
    ...line
  }: NonNullable<ReturnType<LineSplitter['finish']>>): void => {
    const leaf = longLeafHash === undefined ? undefined : hashToBase64url(longLeafHash);
    lines.push({ ...line, text: Buffer.from(view).toString('latin1'), leaf });
  };
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const chunk = Buffer.from(bytes.subarray(at, at + sizes[index % sizes.length]));
    for (const line of splitter.push(chunk)) take(line);
    // A reader may use its buffer again as soon as a chunk is through.
    at += chunk.length;
    chunk.fill(0x0a);
  }
  const torn = splitter.finish();
  if (torn !== undefined) take(torn);
  return lines;
}

const sizes = (max: number): fc.Arbitrary<number[]> =>
  fc.array(fc.integer({ min: 1, max }), { minLength: 1, maxLength: 10 });

describe('lines', () => {
  test('short ones, in any chunks', () => {
    const text = fc.string({ unit: fc.constantFrom('\n', 'a', '\r', '\u0000', 'é'), maxLength: 200 });
    fc.assert(
      fc.property(text, sizes(20), (content, chunks) => {
        const bytes = Buffer.from(content);
        expect(split(bytes, chunks)).toEqual(splitNaively(bytes));
      }),
      { numRuns: 500 },
    );
  });

  test('long ones, around the greatest length', () => {
    const length = fc.oneof(
      fc.nat(100),
      fc.integer({ min: MAX_LINE_BYTES - 2, max: MAX_LINE_BYTES + 2 }),
      fc.nat(200_000),
    );
    fc.assert(
      fc.property(
        fc.array(length, { maxLength: 5 }),
        fc.boolean(),
        sizes(100_000),
        (lengths, isTorn, chunks) => {
          const text = lengths
            .map((each, index) => String.fromCharCode(0x61 + index).repeat(each))
            .join('\n');
          const bytes = Buffer.from(isTorn ? text : `${text}\n`);
          expect(split(bytes, chunks)).toEqual(splitNaively(bytes));
        },
      ),
      { numRuns: 60 },
    );
  });

  test.each([
    ['nothing', '', 0],
    ['a newline', '\n', 1],
    ['two newlines', '\n\n', 2],
    ['no newline', 'a', 1],
  ])('%s gives as many lines as it has', (_, text, count) => {
    const bytes = Buffer.from(text);
    expect(split(bytes, [1])).toHaveLength(count);
    expect(split(bytes, [1])).toEqual(splitNaively(bytes));
  });

  test('the hash of a line that is too long is its leaf hash', () => {
    const bytes = Buffer.alloc(MAX_LINE_BYTES + 1, 0x61);
    const [line] = split(Buffer.concat([bytes, Buffer.from('\n')]), [1_000]);
    expect(line?.leaf).toBe(hashToBase64url(leafHash(bytes)));
  });

  test('are views: nothing is copied of a line that lies in one chunk', () => {
    const chunk = Buffer.from('one\ntwo\n');
    const views = [...new LineSplitter().push(chunk)].map(({ bytes }) => bytes);
    for (const view of views) expect(view.buffer).toBe(chunk.buffer);
  });
});

test('a line of 200 MB is too long, and takes no memory to say so', async () => {
  const size = 200;
  const megabyte = Buffer.alloc(1024 * 1024, 0x61);
  let peak = 0;
  const before = process.memoryUsage();
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (let count = 0; count < size; count += 1) {
      yield await Promise.resolve(megabyte);
      const { heapUsed, external } = process.memoryUsage();
      peak = Math.max(peak, heapUsed + external - before.heapUsed - before.external);
    }
    yield Buffer.from('\n{}\n');
  }
  const report = await verifyLedger(endless());
  expect(report.findings[0]).toMatchObject({
    code: 'LINE_TOO_LONG',
    at: { line: 1, byte_offset: 0, byte_length: size * megabyte.length },
  });
  expect(report.ledger.bytes).toBe(size * megabyte.length + 4);
  expect(peak).toBeLessThan(32 * 1024 * 1024);
});
