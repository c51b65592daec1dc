/** Deterministic CBOR: written as RFC 8949 §4.2.1 says, and nothing else read. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeCbor, encodeCbor, parseCbor } from '../../src/base/cbor/codec.js';
import { MAX_CBOR_DEPTH, MAX_CBOR_ITEMS, MAX_CBOR_MAP_ENTRIES, scanCbor } from '../../src/base/cbor/scan.js';
import { TaggedCbor, type CborKey, type CborValue } from '../../src/base/cbor/value.js';

const TAGS = new Set([18]);

/** An encoder of its own, from the RFC's text. */
function reference(value: CborValue): Buffer {
  if (value === null) return Buffer.of(0xf6);
  if (typeof value === 'boolean') return Buffer.of(value ? 0xf5 : 0xf4);
  if (typeof value === 'number') return value < 0 ? head(1, -1 - value) : head(0, value);
  if (typeof value === 'string')
    return Buffer.concat([head(3, Buffer.byteLength(value)), Buffer.from(value)]);
  if (value instanceof Uint8Array) return Buffer.concat([head(2, value.length), value]);
  if (value instanceof TaggedCbor) return Buffer.concat([head(6, value.tag), reference(value.value)]);
  if (value instanceof Map) {
    const entries = [...(value as ReadonlyMap<CborKey, CborValue>)].map(
      ([key, each]) => [reference(key), reference(each)] as const,
    );
    entries.sort(([a], [b]) => Buffer.compare(a, b));
    return Buffer.concat([head(5, entries.length), ...entries.flat()]);
  }
  const items = value as readonly CborValue[];
  return Buffer.concat([head(4, items.length), ...items.map(reference)]);
}

function head(major: number, argument: number): Buffer {
  const first = major << 5;
  if (argument < 24) return Buffer.of(first | argument);
  const bytes = Buffer.alloc(9);
  bytes.writeBigUInt64BE(BigInt(argument), 1);
  const [width, info] =
    argument < 0x100 ? [1, 24] : argument < 0x1_0000 ? [2, 25] : argument < 2 ** 32 ? [4, 26] : [8, 27];
  bytes[8 - width] = first | info;
  return bytes.subarray(8 - width);
}

const INTEGERS = [0, 23, 24, 255, 256, 65_535, 65_536, 2 ** 32 - 1, 2 ** 32, Number.MAX_SAFE_INTEGER];
const integers = fc.oneof(
  fc.maxSafeInteger(),
  fc.integer({ min: -300, max: 300 }),
  fc.constantFrom(
    ...INTEGERS.flatMap((n) => [n, n === 0 ? -1 : -n, Math.max(-1 - n, Number.MIN_SAFE_INTEGER)]),
  ),
);
const texts = fc
  .oneof(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'binary', maxLength: 300 }))
  .filter((text) => !/\p{Cs}/u.test(text));
const { value: values } = fc.letrec<{ value: CborValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    integers,
    texts,
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 300 }),
    fc.array(tie('value'), { maxLength: 30 }),
    fc
      .array(fc.tuple(fc.oneof(integers, texts), tie('value')), { maxLength: 30 })
      .map((entries) => new Map(entries)),
    tie('value').map((value) => new TaggedCbor(18, value)),
  ),
}));

describe('encodeCbor', () => {
  it('writes what an encoder of the RFC writes, and decodeCbor reads it again', () => {
    fc.assert(
      fc.property(values, (value) => {
        const bytes = encodeCbor(value);
        expect(Buffer.from(bytes).equals(reference(value))).toBe(true);
        expect(decodeCbor(bytes, TAGS)).toEqual({ ok: true, value });
      }),
      { numRuns: 300 },
    );
  });

  it.each([1.5, NaN, Infinity, 2 ** 53, '\ud800', undefined, new Date(0), { a: 1 }, new Map([[1.5, 0]]), 1n])(
    'refuses %o',
    (value) => {
      expect(() => encodeCbor(value as CborValue)).toThrow(TypeError);
    },
  );
});

describe('decodeCbor', () => {
  const nested = (depth: number): string => `${'81'.repeat(depth)}00`;

  it.each([
    ['nothing', ''],
    ['an integer of 2^64 - 1', '1bffffffffffffffff'],
    ['an integer of 2^53', '1b0020000000000000'],
    ['a negative integer of -2^53', '3b001fffffffffffff'],
    ['bytes of a length of 2^64 - 1', '5bffffffffffffffff'],
    ['a text of a length of 2^64 - 1', '7bffffffffffffffff'],
    ['an array of a length of 2^64 - 1', '9bffffffffffffffff'],
    ['a map of a length of 2^64 - 1', 'bbffffffffffffffff'],
    ['an array of a length of 2^53 - 1', '9b001fffffffffffff'],
    ['a map of a length of 2^53 - 1', 'bb001fffffffffffff'],
    ['an array of more than there is', '9a7fffffff00'],
    ['a map of more than there is', 'ba7fffffff0000'],
    ['bytes of more than there are', '5a7fffffff00'],
    ['an indefinite array', '9f01ff'],
    ['an indefinite map', 'bf0101ff'],
    ['indefinite bytes', '5f4100ff'],
    ['an indefinite text', '7f6161ff'],
    ['a break', 'ff'],
    ['a duplicate key', 'a201010102'],
    ['a duplicate text key', 'a2616101616102'],
    ['keys in another order', 'a202000100'],
    ['a longer key before a shorter one', 'a262616100616200'],
    ['a key that is an array', 'a18000'],
    ['a key that is bytes', 'a1410000'],
    ['a key that is null', 'a1f600'],
    ['a head that is too long', '1801'],
    ['a length that is too long', '580100'],
    ['a head of two bytes that is too long', '1900ff'],
    ['a head of four bytes that is too long', '1a0000ffff'],
    ['a head of eight bytes that is too long', '1b00000000ffffffff'],
    ['a reserved head', '1c'],
    ['NaN', 'f97e00'],
    ['NaN of eight bytes', 'fb7ff8000000000000'],
    ['a float', 'fa47c35000'],
    ['undefined', 'f7'],
    ['a simple value', 'e0'],
    ['a simple value of two bytes', 'f820'],
    ['a text that is not UTF-8', '6180'],
    ['an overlong text', '62c080'],
    ['a surrogate in a text', '63eda080'],
    ['a byte after the item', '0000'],
    ['an item that ends early', '8201'],
    ['a tag that is not allowed', 'c11a00000000'],
    ['a shared value that holds itself', 'd81c81d81d00'],
    ['a tag without a value', 'd2'],
    ['the self-describing tag', 'd9d9f700'],
    ['nesting that is too deep', nested(MAX_CBOR_DEPTH + 1)],
    ['nesting that would exhaust the stack', nested(1_000_000)],
  ])('refuses %s', (_, hex) => {
    expect(decodeCbor(Buffer.from(hex, 'hex'), TAGS)).toHaveProperty('fault.code', 'CBOR_MALFORMED');
  });

  it('says where', () => {
    expect(decodeCbor(Buffer.from('83010281f97e00', 'hex'))).toHaveProperty('fault.offset', 4);
  });

  it('reads the deepest nesting', () => {
    expect(decodeCbor(Buffer.from(nested(MAX_CBOR_DEPTH), 'hex'))).toHaveProperty('ok', true);
  });

  it('refuses more items than it takes, before it makes any', () => {
    const bytes = Buffer.alloc(MAX_CBOR_ITEMS + 6);
    Buffer.from('9a00400000', 'hex').copy(bytes);
    const before = process.memoryUsage().heapUsed;
    const decoded = decodeCbor(bytes.subarray(0, MAX_CBOR_ITEMS + 5));
    expect(decoded).toHaveProperty('fault.expected', `at most ${MAX_CBOR_ITEMS} items`);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(20_000_000);
  });

  it('refuses more maps and entries than it takes', () => {
    const maps = Buffer.concat([Buffer.from('9a00010001', 'hex'), Buffer.alloc(0x1_0001, 0xa0)]);
    const entries = Array.from({ length: MAX_CBOR_MAP_ENTRIES }, (_, i) =>
      Buffer.concat([head(0, i), Buffer.of(0)]),
    );
    const map = Buffer.concat([head(5, MAX_CBOR_MAP_ENTRIES), ...entries]);
    const less = Buffer.concat([head(5, MAX_CBOR_MAP_ENTRIES - 1), ...entries.slice(1)]);
    for (const bytes of [maps, map]) {
      expect(decodeCbor(bytes)).toHaveProperty(
        'fault.expected',
        `at most ${MAX_CBOR_MAP_ENTRIES} maps and entries of maps`,
      );
    }
    expect(scanCbor(less, TAGS)).toBeUndefined();
  });

  it('reads no other bytes than it would write', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 12 }), values.chain(changed)), (bytes) => {
        const decoded = decodeCbor(bytes, TAGS);
        if (decoded.ok) expect(Buffer.from(encodeCbor(decoded.value)).equals(bytes)).toBe(true);
      }),
      { numRuns: 1_000 },
    );
  });

  it('gives bytes that are the same on every host', () => {
    const value = parseCbor(Buffer.from('43010203', 'hex'));
    expect(Object.getPrototypeOf(value)).toBe(Uint8Array.prototype);
  });
});

/** An encoding with one byte changed. */
function changed(value: CborValue): fc.Arbitrary<Uint8Array> {
  const bytes = reference(value);
  return fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)).map(([at, byte]) => {
    const copy = Uint8Array.from(bytes);
    copy[at] = byte;
    return copy;
  });
}

it('parseCbor throws with the code CBOR_MALFORMED', () => {
  expect(() => parseCbor(Buffer.of(0xff))).toThrow(
    expect.objectContaining({ code: 'CBOR_MALFORMED' }) as Error,
  );
});
