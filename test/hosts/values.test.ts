/** Foreign names, numbers and times as values of events. */

import { expect, it } from 'vitest';
import fc from 'fast-check';
import { decodeSourceJson } from '../../src/base/json/source-json.js';
import { isPrincipalId } from '../../src/base/value/principal.js';
import { isToolName } from '../../src/base/value/tool.js';
import { isUnit } from '../../src/base/value/meter.js';
import { codeOf, principalOf, sourceIdOf, toolOf, unitOf } from '../../src/hosts/shared/names.js';
import { amountOf, jcsDigest, timeOf, timeOfText } from '../../src/hosts/shared/values.js';

it.each([
  ['1795291446.384348', 's', '2026-11-21T20:04:06.384348Z'],
  ['1795292352754', 'ms', '2026-11-21T20:19:12.754Z'],
  ['1700000000100000001', 'ns', '2023-11-14T22:13:20.100000001Z'],
  ['0', 's', '1970-01-01T00:00:00Z'],
  ['-1.5', 's', '1969-12-31T23:59:58.5Z'],
  ['1e3', 'ms', '1970-01-01T00:00:01Z'],
  ['0.0000000001', 's', '1970-01-01T00:00:00Z'],
] as const)('%s %s', (count, unit, time) => {
  expect(timeOf(count, unit)).toBe(time);
});

it.each(['1e999', '1e30', '9'.repeat(500)])('no time: %s', (count) => {
  expect(timeOf(count, 's')).toBeUndefined();
});

it.each([
  ['2026-02-06T14:12:33Z', '2026-02-06T14:12:33Z'],
  ['2026-02-06T14:12:33.100+01:30', '2026-02-06T12:42:33.1Z'],
  ['2026-02-06 14:12:33.123456789123-0500', '2026-02-06T19:12:33.123456789Z'],
  ['x', undefined],
  ['2026-02-30T00:00:00Z', undefined],
  ['2026-02-06T14:12:33', undefined],
  ['0000-01-01T00:00:00+01:00', undefined],
])('%s', (text, time) => {
  expect(timeOfText(text)).toBe(time);
});

it('amounts are what the digits say', () => {
  expect(amountOf('40.06385803222656')).toEqual({ t: 'dec', m: '4006385803222656', s: 14 });
  expect(amountOf('0.00009999999999999999')).toEqual({ t: 'dec', m: '9999999999999999', s: 20 });
  expect(amountOf('-1')).toBeUndefined();
  expect(amountOf('1e99')).toBeUndefined();
});

it('a digest is of the canonical form, or of nothing', () => {
  const digest = (text: string): unknown => {
    const decoded = decodeSourceJson(Buffer.from(text));
    return decoded.ok ? jcsDigest(decoded.value) : 'refused';
  };
  expect(digest('{ "b": 1.0, "a": [1e0] }')).toEqual(digest('{"a":[1],"b":1}'));
  expect(digest('{"__proto__":1}')).not.toEqual(digest('{}'));
  expect(digest('1700000000100000001')).toBeUndefined();
  expect(digest('0.10000000000000000001')).toBeUndefined();
});

it('any names are names of events', () => {
  const text = fc.string({ unit: 'binary', maxLength: 400 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(isPrincipalId(principalOf('agent', a, b))).toBe(true);
      expect(isToolName(toolOf(a))).toBe(true);
      expect(isUnit(unitOf(a))).toBe(true);
      expect(codeOf(a)).toMatch(/^[A-Z0-9_]{1,64}$/);
      expect(sourceIdOf(a).length).toBeLessThanOrEqual(512);
    }),
  );
});

it('different actors are different principals', () => {
  const text = fc.string({ maxLength: 300 });
  fc.assert(
    fc.property(text, text, (a, b) => {
      fc.pre(a !== b);
      expect(principalOf('agent', 'x', a)).not.toBe(principalOf('agent', 'x', b));
    }),
  );
  expect(principalOf('agent', 'a/b')).not.toBe(principalOf('agent', 'a', 'b'));
});
