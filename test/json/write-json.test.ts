/** JSON written piece by piece is the text that JSON.stringify gives. */

import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { type ByteSink } from '../../src/api/index.js';
import { writeJson } from '../../src/base/json/write-json.js';
import type { JsonValue } from '../../src/base/json/value.js';

/** Keeps pieces, and sees that none comes before the one before it was taken. */
class Pieces implements ByteSink {
  readonly list: string[] = [];
  #isTaking = false;

  write(piece: Uint8Array | string): Promise<void> {
    expect(this.#isTaking).toBe(false);
    this.list.push(String(piece));
    this.#isTaking = true;
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#isTaking = false;
        resolve();
      }),
    );
  }
}

async function written(value: unknown, indent?: number): Promise<string> {
  const pieces = new Pieces();
  await writeJson(pieces, value, indent);
  return pieces.list.join('');
}

/** The same, with something in the place of each array that can only be iterated. */
function withoutArrays(value: JsonValue): unknown {
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).map(([name, member]) => [name, withoutArrays(member)] as const);
  if (!Array.isArray(value)) return Object.fromEntries(entries);
  return { [Symbol.iterator]: () => entries.map(([, member]) => member).values() };
}

describe('writeJson', () => {
  test('gives what JSON.stringify gives, for arrays and whatever can be iterated', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue({ maxDepth: 5 }), fc.nat(10), async (value, indent) => {
        const expected = JSON.stringify(value, undefined, indent);
        expect(await written(value, indent)).toBe(expected);
        expect(await written(withoutArrays(value as JsonValue), indent)).toBe(expected);
      }),
      { numRuns: 500 },
    );
  });

  it('leaves members out that are undefined', async () => {
    const value = { a: undefined, b: [], c: { d: undefined, e: [{ f: undefined, g: ['\n'] }] } };
    for (const indent of [0, 2])
      expect(await written(value, indent)).toBe(JSON.stringify(value, null, indent));
  });

  it('writes a long list in pieces, which it does not hold', async () => {
    let made = 0;
    let most = 0;
    function* list(): Generator<string, void, void> {
      for (made = 0; made < 100_000; made += 1) yield `text ${made}`;
    }
    const sink: ByteSink = {
      write: (piece) => {
        most = Math.max(most, piece.length);
        return undefined;
      },
    };
    await writeJson(sink, { list: list() }, 2);
    expect(made).toBe(100_000);
    expect(most).toBeLessThan(70_000);
  });

  it('refuses an indent that JSON.stringify does not have', async () => {
    for (const indent of [-1, 11, 1.5]) await expect(written([], indent)).rejects.toThrow(RangeError);
  });
});
