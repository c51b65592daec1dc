/** Permissive ingestion: what a text from outside becomes, and what the hygiene report says of it. */

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import { MAX_INGEST_ISSUES, ingestJson } from '../../src/base/json/ingest.js';
import type { NumberMode } from '../../src/base/json/ingest.js';
import { CANONICAL_PROFILE_ID } from '../../src/base/json/profile.js';
import { canonicalValue } from './arbitrary.js';
import { bytesOf, nestedArrays } from './canonical-cases.js';

function ingest(text: string | Uint8Array, numbers?: NumberMode): ReturnType<typeof ingestJson> {
  const bytes = Buffer.from(text as string);
  return numbers === undefined ? ingestJson(bytes) : ingestJson(bytes, { numbers });
}

function outcome(text: string, numbers?: NumberMode): string {
  const { value, report } = ingest(text, numbers);
  return [report.status, ...report.warnings, ...(value === undefined ? [] : [canonicalText(value)])].join(
    ' ',
  );
}

const int = (v: string): string => `{"t":"int","v":"${v}"}`;
const dec = (m: string, s: number): string => `{"m":"${m}","s":${s},"t":"dec"}`;
const nines = (count: number): string => '9'.repeat(count);

describe('numbers', () => {
  test.each<[text: string, exact: string, double: string, quantity: string]>([
    ['0', 'Ok 0', 'Ok 0', int('0')],
    ['12', 'Ok 12', 'Ok 12', int('12')],
    ['-7', 'Ok -7', 'Ok -7', int('-7')],
    ['4.50', 'Ok 4.5', 'Ok 4.5', dec('45', 1)],
    ['1.0', 'Ok 1', 'Ok 1', int('1')],
    ['0.000', 'Ok 0', 'Ok 0', int('0')],
    ['1E2', 'Ok 100', 'Ok 100', int('100')],
    ['1e3', 'Ok 1000', 'Ok 1000', int('1000')],
    ['120e-1', 'Ok 12', 'Ok 12', int('12')],
    ['-12.340e1', 'Ok -123.4', 'Ok -123.4', dec('-1234', 1)],
    ['0.1', 'Ok 0.1', 'Ok 0.1', dec('1', 1)],
    [
      '0.10000000000000001',
      'Invalid NUMBER_INEXACT',
      'Lossy NUMBER_INEXACT 0.1',
      dec('10000000000000001', 17),
    ],
    [
      '333333333.33333329',
      'Invalid NUMBER_INEXACT',
      'Lossy NUMBER_INEXACT 333333333.3333333',
      dec('33333333333333329', 8),
    ],
    ['1E30', 'Ok 1e+30', 'Ok 1e+30', int(`1${'0'.repeat(30)}`)],
    ['1e21', 'Ok 1e+21', 'Ok 1e+21', int(`1${'0'.repeat(21)}`)],
    ['1e20', 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', int(`1${'0'.repeat(20)}`)],
    ['9007199254740991', 'Ok 9007199254740991', 'Ok 9007199254740991', int('9007199254740991')],
    ['9007199254740992', 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', int('9007199254740992')],
    ['-9007199254740993', 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', int('-9007199254740993')],
    ['9007199254740993.5', 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', dec('90071992547409935', 1)],
    [
      '9007199254740990.7',
      'Invalid NUMBER_INEXACT',
      'Lossy NUMBER_INEXACT 9007199254740991',
      dec('90071992547409907', 1),
    ],
    [
      '1000000000000000000000',
      'Invalid UNSAFE_INTEGER',
      'Invalid UNSAFE_INTEGER',
      int('1000000000000000000000'),
    ],
    [
      '1.0000000000000000001e21',
      'Invalid NUMBER_INEXACT',
      'Lossy NUMBER_INEXACT 1e+21',
      int('1000000000000000000100'),
    ],
    [nines(39), 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', int(nines(39))],
    [`${nines(38)}.0e1`, 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 1e+39', int(`${nines(38)}0`)],
    [nines(40), 'Invalid UNSAFE_INTEGER', 'Invalid UNSAFE_INTEGER', 'Invalid NUMBER_INEXACT'],
    ['1e38', 'Ok 1e+38', 'Ok 1e+38', int(`1${'0'.repeat(38)}`)],
    ['1e39', 'Ok 1e+39', 'Ok 1e+39', 'Invalid NUMBER_INEXACT'],
    [`${nines(21)}.${nines(18)}`, 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 1e+21', dec(nines(39), 18)],
    [
      `${nines(22)}.${nines(18)}`,
      'Invalid NUMBER_INEXACT',
      'Lossy NUMBER_INEXACT 1e+22',
      'Invalid NUMBER_INEXACT',
    ],
    ['1e-18', 'Ok 1e-18', 'Ok 1e-18', dec('1', 18)],
    ['0.0000000000000000010', 'Ok 1e-18', 'Ok 1e-18', dec('1', 18)],
    ['1e-38', 'Ok 1e-38', 'Ok 1e-38', dec('1', 38)],
    ['-0.00000000000000000000000000000000000012', 'Ok -1.2e-37', 'Ok -1.2e-37', dec('-12', 38)],
    ['1e-39', 'Ok 1e-39', 'Ok 1e-39', 'Invalid NUMBER_INEXACT'],
    [`9.${nines(38)}`, 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 10', dec(nines(39), 38)],
    [`99.${nines(38)}`, 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 100', 'Invalid NUMBER_INEXACT'],
    ['1e309', 'Invalid NON_FINITE_NUMBER', 'Invalid NON_FINITE_NUMBER', 'Invalid NUMBER_INEXACT'],
    ['-1e999999999', 'Invalid NON_FINITE_NUMBER', 'Invalid NON_FINITE_NUMBER', 'Invalid NUMBER_INEXACT'],
    [`1e${nines(400)}`, 'Invalid NON_FINITE_NUMBER', 'Invalid NON_FINITE_NUMBER', 'Invalid NUMBER_INEXACT'],
    ['1e-999999999', 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 0', 'Invalid NUMBER_INEXACT'],
    [`1e-${nines(400)}`, 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 0', 'Invalid NUMBER_INEXACT'],
    ['0e999999999', 'Ok 0', 'Ok 0', int('0')],
    [`0.00e-${nines(400)}`, 'Ok 0', 'Ok 0', int('0')],
    ['5e-324', 'Ok 5e-324', 'Ok 5e-324', 'Invalid NUMBER_INEXACT'],
    ['4.9e-324', 'Invalid NUMBER_INEXACT', 'Lossy NUMBER_INEXACT 5e-324', 'Invalid NUMBER_INEXACT'],
  ])('%s is read in each mode as it is documented', (text, exact, double, quantity) => {
    expect(outcome(text, 'exact')).toBe(exact);
    expect(outcome(text)).toBe(exact);
    expect(outcome(text, 'double')).toBe(double);
    expect(outcome(text, 'quantity')).toBe(
      quantity.startsWith('{') ? `Lossy NUMBER_COERCED ${quantity}` : quantity,
    );
  });

  test.each(['-0', '-0.0', '-0e5', '-0.000E-7'])('%s is a zero with a sign', (text) => {
    expect(outcome(text)).toBe('Invalid NEGATIVE_ZERO');
    expect(outcome(text, 'double')).toBe('Invalid NEGATIVE_ZERO');
    expect(outcome(text, 'quantity')).toBe(`Lossy NEGATIVE_ZERO NUMBER_COERCED ${int('0')}`);
  });

  test('a quantity that would be nested too deeply is refused', () => {
    const text = (depth: number): string => nestedArrays(depth).replace('[]', '[1]');
    expect(ingest(text(63), 'quantity').report.status).toBe('Lossy');
    expect(ingest(text(64), 'quantity').report.warnings).toContain('NESTING_TOO_DEEP');
    expect(ingest(text(64), 'quantity').value).toBeUndefined();
    expect(ingest(text(64)).report.status).toBe('Ok');
  });
});

describe('values', () => {
  test('numbers are read whatever their spelling', () => {
    expect(outcome(' {"b" : [ true , null ] ,\n"\\u0061":"\\/\\u00e9\\ud83d\\ude00\\t" }\r\n')).toBe(
      'Ok {"a":"/é😀\\t","b":[true,null]}',
    );
  });

  test('have own members, __proto__ among them', () => {
    const { value } = ingest('{"__proto__":{"polluted":1},"2":0,"1":0,"":[]}');
    expect(Object.keys(value as object).sort()).toEqual(['', '1', '2', '__proto__']);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  });

  test('are not normalised', () => {
    expect(outcome('["é","e\u0301","\ufeff"," x "]')).toBe('Ok ["é","e\u0301","\ufeff"," x "]');
  });
});

describe('the report', () => {
  test('has the shape of the wire', () => {
    expect(ingest('{}').report).toEqual({
      status: 'Ok',
      warnings: [],
      metrics: {},
      profile_id: CANONICAL_PROFILE_ID,
    });
    expect(CANONICAL_PROFILE_ID).toBe('northroot-jcs-v1');
  });

  test('counts every occurrence and takes the worst status', () => {
    const { value, report, issues } = ingest(
      '{"b":1,"a":"\\ud800\\udc00\\udc00","a":[-0,1e999,-0],"\\u0061":0.10000000000000001}',
    );
    expect(value).toBeUndefined();
    expect(report).toEqual({
      status: 'Invalid',
      warnings: ['DUPLICATE_KEYS', 'LONE_SURROGATE', 'NEGATIVE_ZERO', 'NON_FINITE_NUMBER', 'NUMBER_INEXACT'],
      metrics: {
        DUPLICATE_KEYS: 2,
        LONE_SURROGATE: 1,
        NEGATIVE_ZERO: 2,
        NON_FINITE_NUMBER: 1,
        NUMBER_INEXACT: 1,
      },
      profile_id: CANONICAL_PROFILE_ID,
    });
    expect(issues).toEqual([
      { code: 'LONE_SURROGATE', offset: 24, pointer: '/a' },
      { code: 'DUPLICATE_KEYS', offset: 32, pointer: '/a' },
      { code: 'NEGATIVE_ZERO', offset: 37, pointer: '/a/0' },
      { code: 'NON_FINITE_NUMBER', offset: 40, pointer: '/a/1' },
      { code: 'NEGATIVE_ZERO', offset: 46, pointer: '/a/2' },
      { code: 'DUPLICATE_KEYS', offset: 50, pointer: '/a' },
      { code: 'NUMBER_INEXACT', offset: 59, pointer: '/a' },
    ]);
  });

  test('says Ambiguous of duplicate keys, at any depth, and gives no value', () => {
    expect(outcome('[{"x":{"a":1,"b":2,"a":1}}]')).toBe('Ambiguous DUPLICATE_KEYS');
    expect(outcome('{"a":1,"\\u0061":1}', 'quantity')).toBe('Ambiguous DUPLICATE_KEYS NUMBER_COERCED');
  });

  test.each<[string, string | Uint8Array, Record<string, number>]>([
    [
      'each malformed sequence',
      bytesOf('["', 0xff, '","', 0xed, 0xa0, 0x80, 'é', 0xc3, '"]'),
      { INVALID_UTF8: 3 },
    ],
    ['bytes only', bytesOf(0x80, 0x80, 0xff, 0xff), { INVALID_UTF8: 3 }],
    ['a mark before a good text', '\ufeff{"a":"\ufeff"}', { BYTE_ORDER_MARK: 1 }],
    ['a mark before a bad one', '\ufeff[1', { BYTE_ORDER_MARK: 1, NOT_JSON: 1 }],
    ['two marks', '\ufeff\ufeff1', { BYTE_ORDER_MARK: 1, NOT_JSON: 1 }],
    ['no text', '', { NOT_JSON: 1 }],
    ['white space', ' \n', { NOT_JSON: 1 }],
    ['a constant of JavaScript', '[NaN]', { NOT_JSON: 1 }],
    [
      'a single surrogate each',
      '["\\ud800","\\ud800\\ud800x","\\udc00\\ud800\\udc00"]',
      { LONE_SURROGATE: 4 },
    ],
    ['deep nesting', nestedArrays(65), { NESTING_TOO_DEEP: 1 }],
  ])('counts %s', (_, text, metrics) => {
    const { value, report, issues } = ingest(text);
    expect(value).toBeUndefined();
    expect(report).toMatchObject({ status: 'Invalid', warnings: Object.keys(metrics), metrics });
    expect(issues).toHaveLength(Object.values(metrics).reduce((sum, count) => sum + count));
  });

  test('names the first places of each code and counts the rest', () => {
    const { report, issues } = ingest(`[${'1,'.repeat(250)}x]`, 'quantity');
    expect(report.metrics).toEqual({ NOT_JSON: 1, NUMBER_COERCED: 250 });
    expect(issues).toHaveLength(MAX_INGEST_ISSUES + 1);
    expect(issues[99]).toEqual({ code: 'NUMBER_COERCED', offset: 199, pointer: '/99' });
    expect(issues[100]).toEqual({ code: 'NOT_JSON', offset: 501, pointer: '/250' });
  });
});

describe('a text in which there is nothing to find', () => {
  // Where a function says what becomes of numbers, a text that has one is read the slow way.
  const slowly = (bytes: Uint8Array): unknown => ingestJson(bytes, { numbers: () => 'exact' });
  const piece = fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom('{"a":', '[', ']', '}', ',', ',"a":', ',"b":', '"a"', '1', ' ') },
    fc.constantFrom(
      '\\u0061',
      '"\\u0061":1',
      '"\\ud800"',
      '"\\ud83d\\ude00"',
      '"\\n"',
      '"\\',
      '"é"',
      'é',
      '\ufeff',
      '"',
    ),
    fc.constantFrom(
      'true',
      'null',
      'e',
      '-',
      '-0',
      '01',
      '1.0',
      '1.5',
      '1e5',
      '1e+21',
      '1E400',
      '-12',
      '"\t"',
    ),
    fc.constantFrom('999999999999999', '9007199254740991', '9007199254740993', '0.1', '0.10000000000000001'),
    fc.constantFrom(
      '"__proto__":1',
      '"constructor":{"a":1,"a":2}',
      '"\\u0062":2',
      '{"":0}',
      '"a:b"',
      '"a\\":"',
    ),
  );
  const soup = fc.array(piece, { maxLength: 12 }).map((pieces) => bytesOf(`[7,${pieces.join('')}]`));
  const value = fc
    .tuple(canonicalValue, fc.constantFrom(undefined, 1))
    .map(([some, indent]) => bytesOf(JSON.stringify([some, 7, { a: some }], undefined, indent)));
  const changed = fc
    .tuple(value, fc.nat(), fc.constantFrom(0x22, 0x2c, 0x3a, 0x5c, 0x7d, 0x00, 0xff, 0xc3))
    .map(([bytes, at, byte]) => {
      const copy = Uint8Array.from(bytes);
      copy[at % copy.length] = byte;
      return copy;
    });

  test('is read as any other', () => {
    fc.assert(
      fc.property(fc.oneof(soup, value, changed), (bytes) => {
        expect(ingestJson(bytes)).toEqual(slowly(bytes));
      }),
      { numRuns: 3_000 },
    );
  });

  test.each([
    ['a key that comes twice, escaped', '[7,{"a":1,"\\u0061":2}]'],
    ['a key that comes twice, deep within', '[7,[{"x":{"b":1,"a":[],"b":1}}]]'],
    ['as many colons in texts as members are lost', '[7,{"a":1,"a":":"},"::"]'],
    ['an escaped quote before a key', '[7,{"a\\"":1,"a\\"":2}]'],
    ['an integer that is no double', '[7,9007199254740993]'],
    ['an integer of sixteen digits that is one', '[7,1234567890123456]'],
    ['a power of ten', '[1e22,1e+22]'],
    ['a negative zero', '[7,-0]'],
    ['a byte order mark', '\ufeff[7]'],
    ['a byte order mark within', '[7,\ufeff8]'],
    ['64 levels', `[7,${nestedArrays(63)}]`],
    ['65 levels', `[7,${nestedArrays(64)}]`],
    ['a member named __proto__', '[7,{"__proto__":{"a":1}}]'],
  ])('or else is found out: %s', (_what, text) => {
    expect(ingest(text)).toEqual(slowly(bytesOf(text)));
  });

  test('keeps members in the order of the text, and a prototype that is a member', () => {
    const { value } = ingest('{"b":1,"a":2,"__proto__":{"c":3}}');
    expect(Object.entries(value as object)).toEqual([
      ['b', 1],
      ['a', 2],
      ['__proto__', { c: 3 }],
    ]);
  });
});

test('wrong arguments are refused', () => {
  expect(() => ingestJson('{}' as unknown as Uint8Array)).toThrow(TypeError);
  expect(() => ingestJson(Buffer.from('1'), { numbers: 'rough' as NumberMode })).toThrow(TypeError);
});

// What is quadratic takes hours for texts so long.
test('hostile texts are read in linear time', () => {
  const n = 1_000_000;
  for (const [text, code] of [
    [`${'9'.repeat(n)}e-${'9'.repeat(n)}`, 'NUMBER_INEXACT'],
    [`0.${'0'.repeat(n)}1e-${n}`, 'NUMBER_INEXACT'],
    [`1${'0'.repeat(n)}.${'0'.repeat(n)}`, 'NUMBER_INEXACT'],
    [`[${'1e999999999,'.repeat(n / 10)}0]`, 'NUMBER_INEXACT'],
    ['[{"a":'.repeat(n), 'NESTING_TOO_DEEP'],
    [`{${'"a":0,'.repeat(n / 10)}"a":0}`, 'DUPLICATE_KEYS'],
  ] as const) {
    expect(ingest(text, 'quantity').report.warnings).toContain(code);
    expect(['Ambiguous', 'Invalid']).toContain(ingest(text).report.status);
  }
  expect(ingest(Buffer.alloc(n, 0xff)).report.metrics).toEqual({ INVALID_UTF8: n });
});

test('a frozen or extended Object.prototype does not reach into values', () => {
  Object.defineProperty(Object.prototype, 'owner', { value: 'root', writable: false, configurable: true });
  try {
    const { value } = ingest('{"owner":"me","toString":1}');
    expect(Object.entries(value as object)).toEqual([
      ['owner', 'me'],
      ['toString', 1],
    ]);
  } finally {
    delete (Object.prototype as { owner?: unknown }).owner;
  }
});
