/** Arbitrary JSON values that have a canonical text, rich in what such texts get wrong. */

import fc from 'fast-check';
import type { JsonObject, JsonValue } from '../../src/base/json/value.js';

const awkward = fc.constantFrom(
  ...['', '__proto__', 'toJSON', 'constructor', '1', '10', '2', 'a', 'a ', 'a"', 'é', 'e\u0301', '/', '~1'],
  ...['\u0000', '\b', '\t', '\n', '\f', '\r', '\u001f', ' ', '\\', '\x7f', '\u2028', '\u202e', '\ufeff'],
  ...['\ud7ff', '\ue000', '\uffff', '\u{10000}', '😀', '\u{10ffff}'],
);

const text = fc.oneof(
  fc.array(awkward, { maxLength: 3 }).map((parts) => parts.join('')),
  fc.string({ unit: 'binary', maxLength: 8 }),
  fc.string({ maxLength: 12 }),
);

function isCanonicalNumber(value: number): boolean {
  if (Object.is(value, -0)) return false;
  return !Number.isInteger(value) || Number.isSafeInteger(value) || Math.abs(value) >= 1e21;
}

const number = fc.oneof(
  fc.integer(),
  fc.maxSafeInteger(),
  fc.integer({ min: -9, max: 9 }),
  fc.double({ noDefaultInfinity: true, noNaN: true }).filter(isCanonicalNumber),
  fc
    .tuple(fc.integer({ min: -999, max: 999 }), fc.integer({ min: -30, max: 30 }))
    .map(([m, e]) => Number(`${m}e${e}`))
    .filter(isCanonicalNumber),
);

const { value } = fc.letrec<{ value: JsonValue; object: JsonObject; leaf: JsonValue }>((tie) => ({
  leaf: fc.oneof(fc.constantFrom(null, true, false), number, text),
  object: fc
    .uniqueArray(fc.tuple(text, tie('value')), { maxLength: 5, selector: ([key]) => key })
    .map((members) => objectOf(members)),
  value: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('value'), { maxLength: 4 }),
    tie('object'),
    tie('object'),
  ),
}));

/** JSON values without what SPEC §1 refuses; objects are as `JSON.parse` makes them. */
export const canonicalValue: fc.Arbitrary<JsonValue> = value;

/** An object with these members, `__proto__` being one like any other. */
export function objectOf(members: readonly (readonly [string, JsonValue])[]): JsonObject {
  const object: JsonObject = {};
  for (const [key, member] of members) {
    Object.defineProperty(object, key, {
      value: member,
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
  return object;
}
