/** Splitting a stream into JSON texts: the same for any chunks, in bounded memory, and each fault at its place. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonTextSplitter, placeInText, type JsonText } from '../../src/base/json/split-texts.js';

interface Told extends Omit<JsonText, 'bytes'> {
  readonly text: string;
}

function split(input: string, sizes: readonly number[] = [], maxBytes = 1_000_000): Told[] {
  const bytes = Buffer.from(input);
  const splitter = new JsonTextSplitter({ maxBytes });
  const told: Told[] = [];
  const tell = ({ bytes: text, ...place }: JsonText): unknown =>
    told.push({ ...place, text: Buffer.from(text).toString('utf8') });
  let at = 0;
  for (let i = 0; at < bytes.length; i += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[i % sizes.length] ?? 1);
    // The chunk is overwritten, as that of a file is.
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    for (const text of splitter.push(chunk)) tell(text);
    chunk.fill(0x7b);
    at += size;
  }
  const last = splitter.finish();
  if (last !== undefined) tell(last);
  return told;
}

const texts = (input: string): string[] => split(input).map(({ text }) => text);
const faults = (input: string): unknown[] => split(input).map(({ fault }) => fault);

describe('texts', () => {
  it.each([
    ['one a line', '{"a":1}\n{"b":2}\n'],
    ['without a last newline', '{"a":1}\n{"b":2}'],
    ['one after the other', '{"a":1}{"b":2}'],
    ['in an array', '[{"a":1},{"b":2}]'],
    ['in an array over several lines', '[\n  {"a":1}\n  ,\n{"b":2} ]\n'],
    ['in two arrays', '[{"a":1}]\n[{"b":2}]'],
    ['beside an empty array', '[] {"a":1} [\t] {"b":2}'],
    ['with other line ends', '{"a":1}\r\n\r\n{"b":2}\r\n'],
  ])('values are told apart %s', (_how, input) => {
    expect(texts(input)).toEqual(['{"a":1}', '{"b":2}']);
    expect(faults(input)).toEqual([undefined, undefined]);
  });

  it('may hold brackets, quotes and commas in strings, and arrays', () => {
    const text = '{"a]}\\"[":["x\\\\",{},"},{"],\n "b":{}}';
    expect(texts(`[${text},${text}]`)).toEqual([text, text]);
    expect(texts('{"\\n":"\\u0041\\t"}{}')).toEqual(['{"\\n":"\\u0041\\t"}', '{}']);
  });

  it('may be no objects: whoever parses them says so', () => {
    expect(texts('null "x" 12\ntrue')).toEqual(['null', '"x"', '12', 'true']);
    expect(texts('[1,[2,3],"x"]')).toEqual(['1', '[2,3]', '"x"']);
  });

  it('know their places', () => {
    expect(split('\n {"a":\n1} [2]')).toMatchObject([
      { line: 2, column: 1, offset: 2 },
      { line: 3, column: 4, offset: 12, text: '2' },
    ]);
    const [text] = split(' {"a":\n\n1}').map((told) => ({ ...told, bytes: Buffer.from(told.text) }));
    expect(placeInText(text as JsonText, 1)).toEqual({ line: 1, column: 2 });
    expect(placeInText(text as JsonText, 7)).toEqual({ line: 3, column: 0 });
  });

  it('are the same for any chunks, and for any input', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      ' ',
      '\n',
      '1',
      'a',
      '{"a":1}',
      '"b"',
    );
    const input = fc.oneof(
      fc.array(piece, { maxLength: 40 }).map((parts) => parts.join('')),
      fc.json(),
    );
    fc.assert(
      fc.property(input, fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1 }), (text, sizes) => {
        expect(split(text, sizes)).toEqual(split(text));
      }),
    );
  });

  it('are all there of any values, in every layout', () => {
    const value = fc
      .object({ maxDepth: 2, maxKeys: 4 })
      .map((object) => JSON.parse(JSON.stringify(object)) as unknown);
    fc.assert(
      fc.property(fc.array(value, { maxLength: 4 }), fc.constantFrom(undefined, 2), (values, indent) => {
        const parse = (input: string): unknown[] => texts(input).map((text) => JSON.parse(text) as unknown);
        expect(parse(JSON.stringify(values, undefined, indent))).toEqual(values);
        expect(parse(values.map((each) => JSON.stringify(each, undefined, indent)).join('\n'))).toEqual(
          values,
        );
      }),
    );
  });
});

describe('faults', () => {
  it.each([
    ['the end within an object', '{"a":1} {"a":', ['{"a":1}', '{"a":'], [undefined, 'cut']],
    ['the end within a string', '{"a', ['{"a'], ['cut']],
    ['the end within an array', '[{"a":1}', ['{"a":1}', ''], [undefined, 'stray']],
    ['the end after a comma', '[1,', ['1', ''], [undefined, 'stray']],
    ['the end right after a number of an array', '[12', ['12'], ['cut']],
    ['no comma in an array', '[{} {}]', ['{}', '{'], [undefined, 'stray']],
    ['a comma before the end of an array', '[{},]', ['{}', ']'], [undefined, 'stray']],
    ['a comma between lines', '{},\n{}', ['{}', ','], [undefined, 'stray']],
    ['a bracket too many', '{}]{}', ['{}', ']'], [undefined, 'stray']],
  ])('%s is told where it stands', (_what, input, expected, told) => {
    expect(texts(input)).toEqual(expected);
    expect(faults(input)).toEqual(told);
  });

  it('end a text where it is broken, so that what follows is not taken for its own', () => {
    expect(texts('{"a":1 "b":2}\n{}')).toEqual(['{"a":1 "']);
    expect(texts('{"a":1\n{"b":2}\n{}')).toEqual(['{"a":1\n{']);
    expect(texts('{"a":"cut\n{"b":2}')).toEqual(['{"a":"cut\n']);
  });

  it('a text that is longer than allowed, told at once', () => {
    const [text, ...others] = split(`{"a":"${'x'.repeat(10_000)}`, [64], 100);
    expect(text).toMatchObject({ fault: 'long', line: 1 });
    expect(text?.text.length).toBeLessThan(200);
    expect(others).toEqual([]);
    expect(split(`{"a":"${'x'.repeat(10_000)}`, [], 100).map(({ text }) => text.length)).toEqual([101]);
    expect(split(`{"a":"${'x'.repeat(92)}"}`, [], 100)).toMatchObject([{ line: 1 }]);
    expect(split(`{"a":"${'x'.repeat(93)}"}`, [], 100)).toMatchObject([{ fault: 'long' }]);
  });

  it.each([0, -1, 1.5, Number.NaN])('a limit of %s is refused', (maxBytes) => {
    expect(() => new JsonTextSplitter({ maxBytes })).toThrow(RangeError);
  });
});
