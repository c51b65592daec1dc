/** Members are picked out of a text as JSON.parse of the whole would have them, for any chunks, in bounded memory. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { assemble, JsonPicker, type Picks } from '../../../src/gate/llm/json-picker.js';
import { times } from '../../slow.js';

const PICKS: Picks = {
  values: ['usage', 'model', 'output.*.type'],
  sizes: ['choices', 'output'],
  counts: ['data.*'],
};

function pick(text: string | Uint8Array, sizes: readonly number[] = [], picks = PICKS) {
  const bytes = Buffer.from(text);
  const picker = new JsonPicker(picks);
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[n % sizes.length] ?? 1);
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    picker.push(chunk);
    chunk.fill(0x5d);
    at += size;
  }
  return {
    values: picker.values,
    choices: picker.sizeOf('choices'),
    output: picker.sizeOf('output'),
    data: picker.countOf('data.*'),
    isWhole: picker.isWhole,
    isCut: picker.isCut,
  };
}

describe('picking', () => {
  it('takes values, sizes and counts at their paths alone', () => {
    const output = [{ type: 'a', content: [{ type: 'b' }] }, 'type', { type: { x: 1 } }];
    const text = JSON.stringify({
      model: 'm',
      usage: { a: 1, usage: 2 },
      other: { usage: 3, model: 'x', data: [1] },
      output,
      data: [1, [2, 3], { data: [] }],
      choices: [{ text: '"]}\\' }],
    });
    expect(pick(text)).toEqual({
      values: [
        { path: 'model', value: 'm' },
        { path: 'usage', value: { a: 1, usage: 2 } },
        { path: 'output.*.type', value: 'a' },
        { path: 'output.*.type', value: { x: 1 } },
      ],
      choices: JSON.stringify([{ text: '"]}\\' }]).length,
      output: JSON.stringify(output).length,
      data: 3,
      isWhole: true,
      isCut: false,
    });
  });

  it.each([
    ['{"usage":null,"model":5}', [null, 5]],
    ['{"usage": -1.5e+3 }', [-1500]],
    ['{"usage":true,"usage":{}}', [true, {}]],
    ['{"us\\u0061ge":1}', []],
    ['{"output.*.type":1,"output":{"*":{"type":2},"type":3}}', []],
    ['{"":{"usage":1}}', []],
    ['{"usage":[{"a":"\\"}"}]}', [[{ a: '"}' }]]],
  ])('reads %s', (text, values) => {
    expect(pick(text).values.map(({ value }) => value)).toEqual(values);
    expect(pick(text, [1])).toEqual(pick(text));
    expect(pick(text).isWhole).toBe(true);
  });

  it.each([
    '',
    '{',
    '{"usage":{}',
    '[]',
    '5',
    '"x"',
    '{}}',
    '{}{}',
    '{"a":[}]',
    '{"usage":(}',
    '{"a":1}x',
    'null',
    '<html>',
  ])('knows that %s is no object', (text) => {
    expect(pick(text).isWhole).toBe(false);
    expect(pick(text, [1]).isWhole).toBe(false);
  });

  it('leaves out what is too long or no JSON, and says so', () => {
    expect(pick(`{"usage":"${'x'.repeat(65_535)}","model":"m"}`)).toMatchObject({
      values: [{ path: 'model', value: 'm' }],
      isCut: true,
      isWhole: true,
    });
    expect(pick('{"usage":01}')).toMatchObject({ values: [], isCut: true });
    const many = `{"output":[${'{"type":1},'.repeat(5_000)}1]}`;
    expect(pick(many)).toMatchObject({ isCut: true, isWhole: true });
    expect(pick(many).values).toHaveLength(4_096);
  });

  it('bounds nesting', () => {
    expect(pick(`{"a":${'['.repeat(1_000_000)}`).isWhole).toBe(false);
    expect(pick(`{"a":${'['.repeat(900)}${']'.repeat(900)}}`).isWhole).toBe(true);
  });

  it('finds what JSON.parse finds', () => {
    const key = fc.constantFrom('usage', 'model', 'output', 'data', 'choices', 'type', 'x', 'a"\\', '\u00e9');
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 4 },
        fc.oneof(
          fc.string({ unit: 'binary' }),
          fc.double({ noNaN: true, noDefaultInfinity: true }),
          fc.boolean(),
          fc.constant(null),
        ),
        fc.array(tie('value'), { maxLength: 4 }),
        fc.dictionary(key, tie('value'), { maxKeys: 5 }),
      ),
    }));
    const object = fc.dictionary(key, value, { maxKeys: 6 });
    fc.assert(
      fc.property(
        object,
        fc.constantFrom<string | number>('', 1, '\t'),
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 4 }),
        (whole, space, sizes) => {
          const text = JSON.stringify(whole, null, space);
          const parsed = JSON.parse(text) as Record<string, unknown>;
          const found = pick(text, sizes);
          const valuesAt = (path: string): unknown[] =>
            found.values.filter((each) => each.path === path).map((each) => each.value);
          for (const name of ['usage', 'model'])
            expect(valuesAt(name)).toEqual(Object.hasOwn(parsed, name) ? [parsed[name]] : []);
          const listOf = (name: string): unknown[] =>
            Array.isArray(parsed[name]) ? (parsed[name] as unknown[]) : [];
          const types = listOf('output').flatMap((each) =>
            typeof each === 'object' && each !== null && !Array.isArray(each) && Object.hasOwn(each, 'type')
              ? [(each as Record<string, unknown>)['type']]
              : [],
          );
          expect(valuesAt('output.*.type')).toEqual(types);
          expect(found.data).toBe(listOf('data').length);
          expect([found.isWhole, found.isCut]).toEqual([true, false]);
          if (space === '' && Object.hasOwn(parsed, 'choices'))
            expect(found.choices).toBe(Buffer.byteLength(JSON.stringify(parsed['choices'])));
        },
      ),
      { numRuns: times(100, 10_000) },
    );
  });

  it('makes an object of what was picked', () => {
    const text = '{"a":{"b":1,"c":[{"d":2},3,{"d":{"e":4}}]},"f":null,"a":{"b":5}}';
    const values = ['a.b', 'a.c.*.d', 'f'];
    expect(assemble(pick(text, [], { values }).values)).toEqual({
      a: { b: 5, c: [{ d: 2 }, { d: { e: 4 } }] },
      f: null,
    });
  });

  it('keeps little of a long text', () => {
    const picker = new JsonPicker(PICKS);
    picker.push(Buffer.from('{"choices":[{"text":"'));
    const chunk = Buffer.alloc(1024 * 1024, 0x78);
    const before = process.memoryUsage().arrayBuffers;
    for (let n = 0; n < 100; n += 1) picker.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
    picker.push(Buffer.from('"}],"usage":{"a":1}}'));
    expect(picker.values).toEqual([{ path: 'usage', value: { a: 1 } }]);
    expect(picker.sizeOf('choices')).toBe(100 * chunk.length + 13);
  });
});
