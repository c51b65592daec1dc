/** The guard before canonicalisation: what is no plain JSON has no canonical bytes. */

import { describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { canonicalBytes, canonicalText } from '../../src/base/json/canonicalize.js';
import { decodeUtf8 } from '../../src/base/bytes/text.js';

function nested(depth: number): unknown {
  let value: unknown = 0;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

describe('writes', () => {
  test('keys in UTF-16 order, whatever they are', () => {
    const value = JSON.parse(
      '{"\ue000":1,"😀":2,"__proto__":{"b":1,"a":2},"10":3,"9":4,"":5,"toJSON":6}',
    ) as unknown;
    expect(canonicalText(value)).toBe(
      '{"":5,"10":3,"9":4,"__proto__":{"a":2,"b":1},"toJSON":6,"😀":2,"\ue000":1}',
    );
  });

  test('objects without a prototype', () => {
    const value = Object.assign(Object.create(null) as object, { b: [true, null], a: 'é' });
    expect(Buffer.from(canonicalBytes(value)).toString()).toBe('{"a":"é","b":[true,null]}');
  });

  test('numbers as ES6 does', () => {
    expect(canonicalText([0, 1e21, 1e-7, 4.5, 333333333.3333333, -5e-324, 2 ** 53 - 1])).toBe(
      '[0,1e+21,1e-7,4.5,333333333.3333333,-5e-324,9007199254740991]',
    );
  });

  test('the same object in two places', () => {
    const shared = { a: 1 };
    expect(canonicalText([shared, shared, [shared]])).toBe('[{"a":1},{"a":1},[{"a":1}]]');
  });

  test('64 levels', () => {
    expect(JSON.parse(decodeUtf8(canonicalBytes(nested(64))))).toEqual(nested(64));
  });
});

describe('refuses JSON that has no canonical text', () => {
  test.each<[string, unknown, string]>([
    ['LONE_SURROGATE', 'a\ud800', '""'],
    ['LONE_SURROGATE', { a: ['\udc00x'] }, '/a/0'],
    ['LONE_SURROGATE', { x: { '\ud800': 1 } }, '/x/\ufffd'],
    ['NEGATIVE_ZERO', [0, -0], '/1'],
    ['NON_FINITE_NUMBER', { a: Number.NaN }, '/a'],
    ['NON_FINITE_NUMBER', Number.POSITIVE_INFINITY, ''],
    ['UNSAFE_INTEGER', { 'a/b~': 2 ** 53 }, '/a~1b~0'],
    ['UNSAFE_INTEGER', [-(2 ** 53)], '/0'],
    ['UNSAFE_INTEGER', 1e20, ''],
    ['NESTING_TOO_DEEP', nested(65), '/a/0/a/0'],
  ])('%s %#', (code, value, pointer) => {
    for (const write of [canonicalText, canonicalBytes]) {
      let error: unknown;
      try {
        write(value);
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(NorthrootError);
      expect(error).toMatchObject({ code });
      if (pointer.startsWith('/')) expect((error as Error).message).toContain(pointer);
    }
  });
});

describe('refuses what is no plain JSON', () => {
  const cycle: unknown[] = [];
  cycle.push({ a: cycle });
  class Point {
    x = 1;
  }
  class List extends Array<number> {}
  const mustNotRun = (): never => {
    throw new Error('code of the value was called');
  };

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['a member that is undefined', { a: undefined }],
    ['an element that is undefined', [undefined]],
    ['a function', mustNotRun],
    ['a method', { toJSON: mustNotRun }],
    ['a symbol', Symbol('s')],
    ['a symbol as a key', { [Symbol('s')]: 1 }],
    ['a bigint', 1n],
    ['a Date', new Date(0)],
    ['a Map', new Map()],
    ['bytes', new Uint8Array(2)],
    ['a boxed string', Object('s')],
    ['an instance of a class', new Point()],
    ['an array of a class', List.from([1])],
    ['an object with a prototype of its own', Object.create({ a: 1 })],
    ['an inherited toJSON', Object.create({ toJSON: mustNotRun })],
    ['a sparse array', [1, , 2]], // eslint-disable-line no-sparse-arrays
    ['a long sparse array', new Array(2 ** 32 - 1)],
    ['an array with a further member', Object.assign([1], { a: 1 })],
    [
      'a getter',
      {
        get a() {
          return mustNotRun();
        },
      },
    ],
    [
      'a setter',
      {
        set a(_: number) {
          mustNotRun();
        },
      },
    ],
    ['a getter in an array', Object.defineProperty([0], 0, { get: mustNotRun, enumerable: true })],
    ['a hidden member', Object.defineProperty({}, 'a', { value: 1, enumerable: false })],
    ['a cycle', cycle],
  ])('refuses %s', (_, value) => {
    expect(() => canonicalText(value)).toThrow(TypeError);
    expect(() => canonicalBytes({ deep: [value] })).toThrow(TypeError);
  });

  test('toJSON of a changed Array.prototype', () => {
    Object.defineProperty(Array.prototype, 'toJSON', { value: mustNotRun, configurable: true });
    try {
      expect(() => canonicalText([])).toThrow(TypeError);
    } finally {
      delete (Array.prototype as { toJSON?: unknown }).toJSON;
    }
  });

  test('toJSON of a changed Object.prototype is not called', () => {
    Object.defineProperty(Object.prototype, 'toJSON', { value: mustNotRun, configurable: true });
    try {
      expect(canonicalText({ a: 1 })).toBe('{"a":1}');
    } finally {
      delete (Object.prototype as { toJSON?: unknown }).toJSON;
    }
  });

  test('a place that reads differently the second time is read once', () => {
    let reads = 0;
    const value = new Proxy(
      { a: 1 },
      {
        getOwnPropertyDescriptor: (target, key) => ({
          ...Reflect.getOwnPropertyDescriptor(target, key)!,
          value: reads++,
        }),
      },
    );
    expect(canonicalText(value)).toBe('{"a":0}');
    expect(reads).toBe(1);
  });
});
