/** `scanCanonical` and `diagnoseCanonical` on chosen texts: one question, two ways to ask it. */

import { describe, expect, test } from 'vitest';
import { diagnoseCanonical } from '../../src/base/json/diagnose.js';
import { MAX_DEPTH, MemberMarks, scanCanonical } from '../../src/base/json/scan.js';
import { CANONICAL_CASES, nestedArrays } from './canonical-cases.js';

function isCanonical(text: string | Uint8Array): boolean {
  const bytes = Buffer.from(text as string);
  const accepted = scanCanonical(bytes, 0, bytes.length) === -1;
  expect(diagnoseCanonical(bytes) === undefined).toBe(accepted);
  return accepted;
}

function codeOf(text: string): string | undefined {
  return diagnoseCanonical(Buffer.from(text))?.code;
}

describe('chosen texts', () => {
  test.each(CANONICAL_CASES.map(([text, refusal]) => [excerpt(text), text, refusal] as const))(
    '%s',
    (_, text, refusal) => {
      const bytes = Buffer.from(text as string);
      const scanned = scanCanonical(bytes, 0, bytes.length);
      const issue = diagnoseCanonical(bytes);
      if (refusal === undefined) {
        expect(issue).toBeUndefined();
        expect(scanned).toBe(-1);
        return;
      }
      const [code, offset, pointer] = refusal;
      expect(issue).toMatchObject({ code, offset, pointer });
      expect(issue!.actual.length).toBeLessThanOrEqual(40);
      expect(scanned).toBeGreaterThanOrEqual(0);
      expect(scanned).toBeLessThanOrEqual(bytes.length);
    },
  );
});

describe('control characters', () => {
  const SHORT: Record<number, string> = { 8: '\\b', 9: '\\t', 10: '\\n', 12: '\\f', 13: '\\r' };

  test.each(Array.from({ length: 32 }, (_, unit) => unit))('U+%i has one spelling', (unit) => {
    const hex = unit.toString(16).padStart(4, '0');
    const long = `\\u${hex}`;
    const canonical = SHORT[unit] ?? long;
    const spellings = [
      canonical,
      long,
      `\\u${hex.toUpperCase()}`,
      `\\u${hex.replace('0', 'O')}`,
      String.fromCharCode(unit),
    ];
    for (const spelling of spellings) {
      expect(isCanonical(`"${spelling}"`), spelling).toBe(spelling === canonical);
      expect(isCanonical(`{"${spelling}":0}`), spelling).toBe(spelling === canonical);
    }
    if (long !== canonical) expect(codeOf(`"${long}"`)).toBe('NOT_CANONICAL');
    expect(codeOf(`"${String.fromCharCode(unit)}"`)).toBe('NOT_JSON');
    expect(diagnoseCanonical(Buffer.from(`"${long.toUpperCase().replace('U', 'u')}"`))?.expected).toBe(
      long.toUpperCase().replace('U', 'u') === canonical ? undefined : canonical,
    );
  });

  test('no other byte may follow a backslash', () => {
    for (let byte = 0; byte < 128; byte++) {
      const canonical = '"\\bfnrt'.includes(String.fromCharCode(byte));
      expect(isCanonical(`"\\${String.fromCharCode(byte)}"`), String(byte)).toBe(canonical);
    }
  });
});

test('UTF-8 is judged as a strict decoder judges it', () => {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const edges = [0x22, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xe0, 0xff];
  const all = Array.from({ length: 128 }, (_, i) => i + 128);
  let accepted = 0;
  const check = (...sequence: number[]): void => {
    const bytes = Buffer.from([0x22, ...sequence, 0x22]);
    let isText = sequence.every((byte) => byte !== 0x22);
    if (isText) {
      try {
        decoder.decode(bytes);
      } catch {
        isText = false;
      }
    }
    if ((scanCanonical(bytes, 0, bytes.length) === -1) !== isText)
      expect.fail(`scan: ${bytes.toString('hex')}`);
    if ((diagnoseCanonical(bytes) === undefined) !== isText)
      expect.fail(`diagnosis: ${bytes.toString('hex')}`);
    if (isText) accepted++;
  };
  for (const first of all) {
    check(first);
    for (const second of [...all, 0x41]) check(first, second);
    if (first < 0xe0) continue;
    for (const second of edges) {
      for (const third of edges) {
        check(first, second, third);
        if (first >= 0xf0) for (const fourth of edges) check(first, second, third, fourth);
      }
    }
  }
  expect(accepted).toBeGreaterThan(2000);
});

describe('ranges', () => {
  const text = '{"a":[1,"é",{"b":null}],"c":-1.5e+300}';
  const bytes = Buffer.from(text);

  test('nothing outside the range is looked at', () => {
    const inside = Buffer.concat([Buffer.from('{"x":'), bytes, Buffer.from(',"y":1}')]);
    expect(scanCanonical(inside, 5, 5 + bytes.length)).toBe(-1);
    expect(diagnoseCanonical(inside, 5, 5 + bytes.length)).toBeUndefined();
    expect(scanCanonical(inside, 5, 5 + bytes.length + 1)).toBe(5 + bytes.length);
    expect(diagnoseCanonical(inside, 5, 5 + bytes.length + 1)).toMatchObject({
      code: 'NOT_JSON',
      offset: 5 + bytes.length,
    });
  });

  test('a text that is cut anywhere is refused, although the rest follows', () => {
    for (const whole of [
      bytes,
      ...['null', 'true', 'false', '"\\u001f"', '"\\n"'].map((scalar) => Buffer.from(scalar)),
    ]) {
      for (let end = 0; end < whole.length; end++) {
        const offset = scanCanonical(whole, 0, end);
        expect(offset).toBeGreaterThanOrEqual(0);
        expect(offset).toBeLessThanOrEqual(end);
        expect(diagnoseCanonical(whole, 0, end)).toMatchObject({
          code: expect.stringMatching(/NOT_JSON|INVALID_UTF8/) as string,
        });
      }
    }
  });

  test('what is no range is refused', () => {
    for (const [start, end] of [
      [-1, 2],
      [2, 1],
      [0, bytes.length + 1],
      [Number.NaN, 2],
      [0, Number.NaN],
    ] as const) {
      expect(() => scanCanonical(bytes, start, end)).toThrow(RangeError);
      expect(() => diagnoseCanonical(bytes, start, end)).toThrow(RangeError);
    }
    for (const wrong of ['{}', [123, 125], null, undefined] as unknown as Uint8Array[]) {
      expect(() => scanCanonical(wrong, 0, 0)).toThrow(TypeError);
      expect(() => diagnoseCanonical(wrong, 0, 0)).toThrow(TypeError);
    }
  });
});

test('what a terminal would act on is not in an excerpt', () => {
  const texts = [
    '"\x1b[2J',
    '\u202eabc',
    '[\x9b]',
    '"\u2066\\x"',
    '{}\x00\x07',
    'x\u2028y',
    'a'.repeat(100),
    '😀'.repeat(50),
  ];
  for (const text of texts) {
    const issue = diagnoseCanonical(Buffer.from(text))!;
    expect(issue.actual).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
    expect(issue.actual.length).toBeLessThanOrEqual(40);
    expect(issue.actual).not.toMatch(/\p{Surrogate}/u);
  }
  expect(diagnoseCanonical(Buffer.from([0x22, 0xff, 0x1b, 0x22]))!.actual).toBe('\\xff\\u{1b}"');
});

test('a number is answered with its canonical text, where it has one of the same value', () => {
  const expected = (text: string): string => diagnoseCanonical(Buffer.from(text))!.expected;
  for (const [text, canonical] of [
    ['1.0', '1'],
    ['1e30', '1e+30'],
    ['0.0000001', '1e-7'],
    ['4.50', '4.5'],
  ] as const) {
    expect(expected(text)).toBe(canonical);
  }
  for (const text of ['-0', '9007199254740993', '1000000000000000000000', '1e20', '1e400']) {
    expect(expected(text)).not.toBe(String(Number(text)));
  }
});

describe('marks', () => {
  const marked = (text: string, marks = new MemberMarks()): [number, string, string][] => {
    const prefix = '…';
    const bytes = Buffer.from(prefix + text);
    const start = Buffer.byteLength(prefix);
    expect(scanCanonical(bytes, start, bytes.length, marks)).toBe(-1);
    return Array.from({ length: marks.count }, (_, row) => {
      const [depth, keyStart, keyEnd, valueStart, valueEnd] = marks.rows.subarray(row * 5, row * 5 + 5);
      return [depth, bytes.toString('utf8', keyStart, keyEnd), bytes.toString('utf8', valueStart, valueEnd)];
    });
  };

  test('are the members at depth 1 and 2', () => {
    expect(marked('{"a":{"b":{"c":1},"d":[{"e":2}]},"f":[{"g":3},[{}]],"h":"x","i":{}}')).toEqual([
      [1, '"a"', '{"b":{"c":1},"d":[{"e":2}]}'],
      [2, '"b"', '{"c":1}'],
      [2, '"d"', '[{"e":2}]'],
      [1, '"f"', '[{"g":3},[{}]]'],
      [1, '"h"', '"x"'],
      [1, '"i"', '{}'],
    ]);
  });

  test('count an array as a level', () => {
    expect(marked('[{"a":{"b":1}},2]')).toEqual([[2, '"a"', '{"b":1}']]);
    expect(marked('[[{"a":1}]]')).toEqual([]);
    expect(marked('1')).toEqual([]);
  });

  test('hold escaped keys and grow as needed', () => {
    const members = Array.from({ length: 5000 }, (_, i) => `"${String(i).padStart(4, '0')}\\n":{"é":${i}}`);
    const marks = new MemberMarks();
    const rows = marked(`{${members.join(',')}}`, marks);
    expect(rows).toHaveLength(10_000);
    for (const [index, row] of rows.entries()) {
      const i = Math.floor(index / 2);
      const outer = [1, `"${String(i).padStart(4, '0')}\\n"`, `{"é":${i}}`];
      expect(row).toEqual(index % 2 === 0 ? outer : [2, '"é"', String(i)]);
    }
    expect(marked('{"a":1}', marks)).toEqual([[1, '"a"', '1']]);
  });

  test('are none after a text that is refused', () => {
    const marks = new MemberMarks();
    marked('{"a":1}', marks);
    const bytes = Buffer.from('{"a":1,"b":2');
    expect(scanCanonical(bytes, 0, bytes.length, marks)).toBe(bytes.length);
    expect(marks.count).toBe(0);
  });
});

test('a refused text leaves nothing behind for the next', () => {
  const deep = Buffer.from('{"z":'.repeat(64));
  expect(scanCanonical(deep, 0, deep.length)).toBe(deep.length);
  expect(isCanonical('{"a":{"a":{"a":1}}}')).toBe(true);
});

// What is quadratic takes hours for texts so long.
test('hostile texts are read in linear time', () => {
  const n = 400_000;
  const wideObject = `{${Array.from({ length: 50_000 }, (_, i) => `"é${String(i).padStart(6, '0')}":0`).join(',')}}`;
  const texts: [string, string | undefined][] = [
    ['['.repeat(n), 'NESTING_TOO_DEEP'],
    ['1'.repeat(n), 'NUMBER_NOT_CANONICAL'],
    [`0.${'0'.repeat(n)}1`, 'NUMBER_NOT_CANONICAL'],
    [`"${'\\u0041'.repeat(n / 4)}"`, 'NOT_CANONICAL'],
    [`"${'\\ud800'.repeat(n / 4)}"`, 'LONE_SURROGATE'],
    [`${' '.repeat(n)}x`, 'NOT_JSON'],
    [`[${'{"a":1,"a":2},'.repeat(n / 20)}0]`, 'DUPLICATE_KEY'],
    [`{"${'k'.repeat(n)}":1,"${'k'.repeat(n)}l":2}`, undefined],
    [wideObject, undefined],
  ];
  for (const [text, code] of texts) {
    expect(codeOf(text)).toBe(code);
    expect(isCanonical(text)).toBe(code === undefined);
  }
  expect(isCanonical(nestedArrays(MAX_DEPTH + 1))).toBe(false);
});

function excerpt(text: string | Uint8Array): string {
  const shown = typeof text === 'string' ? JSON.stringify(text) : Buffer.from(text).toString('latin1');
  return shown.length > 60 ? `${shown.slice(0, 60)}…` : shown;
}
