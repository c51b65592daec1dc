/** JSON of other systems as it was written: numbers, order of keys, and what is refused. */

import { expect, it } from 'vitest';
import {
  decodeSourceJson,
  SourceNumber,
  SourceObject,
  type SourceValue,
} from '../../src/base/json/source-json.js';

const decode = (text: string): SourceValue => {
  const decoded = decodeSourceJson(Buffer.from(text));
  if (!decoded.ok) throw new Error(decoded.fault.code);
  return decoded.value;
};

it.each(['1.0', '40.06385803222656', '1e-05', '1700000000100000001', '-0', '1e999'])(
  'keeps %s as it is',
  (text) => {
    const value = decode(` ${text} `);
    expect(value).toBeInstanceOf(SourceNumber);
    expect((value as SourceNumber).text).toBe(text);
  },
);

it('keeps the order of keys that look like numbers, and __proto__ as a member', () => {
  const value = decode('{"b":1,"10":2,"9":3,"__proto__":{"x":4}}') as SourceObject;
  expect(value.keys()).toEqual(['b', '10', '9', '__proto__']);
  expect(value.get('__proto__')).toBeInstanceOf(SourceObject);
  expect(value.get('toString')).toBeUndefined();
  expect(value.without('b', '9').keys()).toEqual(['10', '__proto__']);
});

it.each([
  ['DUPLICATE_KEY', '{"a":1,"a":1}'],
  ['DUPLICATE_KEY', '{"a":{"b":1,"\\u0062":2}}'],
  ['LONE_SURROGATE', '"\\ud800"'],
  ['NOT_JSON', '{"a":1'],
  ['NOT_JSON', 'NaN'],
  ['NESTING_TOO_DEEP', '['.repeat(65)],
])('refuses with %s', (code, text) => {
  const decoded = decodeSourceJson(Buffer.from(text));
  expect(decoded.ok ? undefined : decoded.fault.code).toBe(code);
});

it('takes lone surrogates where they are asked for', () => {
  const decoded = decodeSourceJson(Buffer.from('"\\ud800"'), { loneSurrogates: true });
  expect(decoded.ok && decoded.value).toBe('\ud800');
});

it('refuses what is not UTF-8', () => {
  const decoded = decodeSourceJson(Uint8Array.of(0x22, 0xff, 0x22));
  expect(decoded.ok ? undefined : decoded.fault.code).toBe('INVALID_UTF8');
});
