/** The writer of usual values and the definition agree on every value: the same text, or the same refusal. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { canonicalBytes, canonicalText, canonicalTextOfAny } from '../../src/base/json/canonicalize.js';
import { PlainWriter, NOT_PLAIN } from '../../src/base/json/plain-writer.js';
import { times } from '../slow.js';
import { canonicalValue } from './arbitrary.js';

const text = fc.oneof(
  fc.constantFrom(
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    '\ud800',
    'a\udc00',
    '\ud83d\ude00',
  ),
  fc.string({ unit: 'binary', maxLength: 6 }),
  fc
    .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 4 })
    .map((units) => String.fromCharCode(...units)),
);
const number = fc.oneof(
  fc.double(),
  fc.constantFrom(-0, NaN, Infinity, 2 ** 53, -(2 ** 53), 2 ** 53 - 1, 1e21, 1e20, 5e-324),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(Number),
);
const odd = fc.constantFrom<() => unknown>(
  () => undefined,
  () => 1n,
  () => Symbol('s'),
  () => () => 0,
  () => new Date(0),
  () => new Map(),
  () => Object.create({ a: 1 }) as unknown,
  () => Object.assign(Object.create(null) as object, { a: 1, b: [2] }),
  () => Object.defineProperty({ b: 1 }, 'a', { get: () => 1, enumerable: true }),
  () => Object.defineProperty({ b: 1 }, 'a', { value: 1, enumerable: false }),
  () => Object.defineProperty({}, 'a', { set: () => undefined, enumerable: true }),
  () => ({ a: 1, [Symbol('s')]: 1 }),
  () => Object.assign([1], { a: 1 }),
  () => Object.assign([1], { [Symbol('s')]: 1 }),
  () => [1, , 2], // eslint-disable-line no-sparse-arrays
  () => Object.freeze({ b: Object.freeze([1]), a: 2 }),
  () => new Proxy({ b: 1, a: [2] }, {}),
  () => Object.defineProperty([0], 0, { get: () => 1, enumerable: true }),
  () => Object.defineProperty([0], 0, { value: 1, enumerable: false }),
);
const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, withCrossShrink: true },
    fc.oneof({ weight: 5, arbitrary: fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)) }, number),
    { weight: 3, arbitrary: fc.array(tie('value'), { maxLength: 4 }) },
    { weight: 5, arbitrary: fc.dictionary(text, tie('value'), { maxKeys: 30 }) },
    { weight: 1, arbitrary: odd.map((make) => make()) },
  ),
}));

/** The text, or how it is refused. */
function outcomeOf(write: () => string): unknown {
  try {
    return write();
  } catch (error) {
    const { name, message, code } = error as Error & { code?: string };
    return { name, message, code };
  }
}

describe('PlainWriter', () => {
  it('gives what the definition gives, or leaves the value to it', () => {
    const seen = { written: 0, refused: 0 };
    fc.assert(
      fc.property(fc.oneof(value, canonicalValue), (any) => {
        const expected = outcomeOf(() => canonicalTextOfAny(any));
        seen[typeof expected === 'string' ? 'written' : 'refused'] += 1;
        expect(outcomeOf(() => canonicalText(any))).toEqual(expected);
        expect(outcomeOf(() => Buffer.from(canonicalBytes(any)).toString())).toEqual(expected);
      }),
      { numRuns: times(2_000, 1_000_000), seed: 12 },
    );
    expect(seen.written).toBeGreaterThan(100);
    expect(seen.refused).toBeGreaterThan(100);
  });

  it('writes what a text is to be replaced by, and asks where it stands', () => {
    const writer = new PlainWriter();
    const asked: unknown[] = [];
    const write = (): string | typeof NOT_PLAIN =>
      writer.value({ b: 'x', a: [{ c: 'y', d: 'z' }, 'w'] }, 0)
        ? Buffer.from(writer.bytes).toString()
        : NOT_PLAIN;
    const text = writer.use(write, (...args) => {
      asked.push(args);
      return args[0] === 'y' ? { z: 1, y: ['n'] } : undefined;
    });
    expect(text).toBe('{"a":[{"c":{"y":["n"],"z":1},"d":"z"},"w"],"b":"x"}');
    expect(asked).toEqual([
      ['y', 'c', 3],
      ['n', 'y', 5],
      ['z', 'd', 3],
      ['w', 'a', 2],
      ['x', 'b', 1],
    ]);
    expect(writer.use(write)).toBe('{"a":[{"c":"y","d":"z"},"w"],"b":"x"}');
  });

  it('takes names by their UTF-16 code units, however many there are', () => {
    const names = Array.from({ length: 60 }, (_, index) =>
      String.fromCodePoint(0xfff0 + index, 65 + (index % 7)),
    );
    const object = Object.fromEntries(names.map((name) => [name, 0]));
    for (const some of [object, Object.fromEntries(Object.entries(object).slice(9, 25))])
      expect(canonicalText(some)).toBe(canonicalTextOfAny(some));
  });

  it('is not disturbed by what a proxy does while it is read', () => {
    const reads = new Proxy(
      { a: 1 },
      { ownKeys: (target) => (canonicalText({ z: 26 }), Reflect.ownKeys(target)) },
    );
    expect(canonicalText({ before: 'b', reads, with: 'w' })).toBe(
      '{"before":"b","reads":{"a":1},"with":"w"}',
    );
  });

  it('writes after a value that could not be written', () => {
    expect(() => canonicalText({ a: [undefined] })).toThrow(TypeError);
    expect(canonicalText({ b: 1, a: 'x'.repeat(2_000_000) })).toHaveLength(2_000_000 + 14);
    expect(canonicalText({ b: 1, a: 2 })).toBe('{"a":2,"b":1}');
  });
});
