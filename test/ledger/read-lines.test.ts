/** Every line of every file is given once, with its place; and what was opened is closed, however the reading ends. */

import { describe, expect, test } from 'vitest';
import type { LedgerSource, Segment } from '../../src/rules/source/ledger-source.js';
import { readLines, type LedgerLine } from '../../src/rules/source/read-lines.js';

/** A source of files that come in chunks, and what was closed of it. */
function makeSource(files: Record<string, readonly string[]>): { source: LedgerSource; closed: string[] } {
  const closed: string[] = [];
  async function* chunksOf(file: string, chunks: readonly string[]): AsyncGenerator<Uint8Array> {
    try {
      for (const chunk of chunks) yield await Promise.resolve(Buffer.from(chunk));
    } finally {
      closed.push(file);
    }
  }
  async function* segments(): AsyncGenerator<Segment> {
    try {
      for (const [file, chunks] of Object.entries(files)) {
        yield await Promise.resolve({ file, firstSeq: undefined, chunks: chunksOf(file, chunks) });
      }
    } finally {
      closed.push('all');
    }
  }
  return { source: { paths: ['-'], size: undefined, segments: segments() }, closed };
}

const shown = ({ line, segment, ordinal, takesPlace }: LedgerLine): unknown[] => [
  segment.file,
  line.number,
  Buffer.from(line.bytes).toString(),
  ordinal,
  takesPlace,
];

describe('lines of a ledger', () => {
  test('carry file, number in it, and place in the ledger; blank and torn ones take no place', async () => {
    const { source } = makeSource({ one: ['a', 'b\n\nc\nx', 'y'], two: ['\nd\n'], three: [] });
    const lines = [];
    for await (const line of readLines(source)) lines.push(shown(line));
    expect(lines).toEqual([
      ['one', 1, 'ab', 0, true],
      ['one', 2, '', 1, false],
      ['one', 3, 'c', 1, true],
      ['one', 4, 'xy', 2, false],
      ['two', 1, '', 2, false],
      ['two', 2, 'd', 2, true],
    ]);
  });

  test('are at hand as far as their chunk was read', async () => {
    const reader = readLines(makeSource({ one: ['a\nb\n', 'c\n'] }).source);
    expect(reader.tryNext()).toBeUndefined();
    expect((await reader.next()).value?.ordinal).toBe(0);
    expect(reader.tryNext()?.ordinal).toBe(1);
    expect(reader.tryNext()).toBeUndefined();
    expect((await reader.next()).value?.ordinal).toBe(2);
    expect(await reader.next()).toEqual({ done: true, value: undefined });
  });

  test('a chunk is told of when its lines were used up', async () => {
    const { source } = makeSource({ one: ['a\nb\n', 'c'], two: ['d\n'] });
    const seen: unknown[] = [];
    const onChunk = (bytes: number): number => seen.push(bytes);
    for await (const { line } of readLines(source, { onChunk }))
      seen.push(Buffer.from(line.bytes).toString());
    expect(seen).toEqual(['a', 'b', 4, 5, 'c', 'd', 7]);
  });

  test('a reading that ends early closes what it opened', async () => {
    const { source, closed } = makeSource({ one: ['a\n', 'b\n'], two: ['c\n'] });
    for await (const line of readLines(source)) if (line.takesPlace) break;
    expect(closed).toEqual(['one', 'all']);
  });

  test('so does one that is aborted, with the reason', async () => {
    const { source, closed } = makeSource({ one: ['a\n', 'b\n'] });
    const controller = new AbortController();
    const reason = new Error('enough');
    const lines: number[] = [];
    const read = async (): Promise<void> => {
      for await (const { ordinal } of readLines(source, { signal: controller.signal })) {
        lines.push(ordinal);
        controller.abort(reason);
      }
    };
    await expect(read()).rejects.toBe(reason);
    expect(lines).toEqual([0]);
    expect(closed).toEqual(['one', 'all']);
  });
});
