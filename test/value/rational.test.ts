/** Sums of rationals, against the definition: cross-multiplied, and reduced by Euclid. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import { addRationals, reduceRational, type Rational } from '../../src/base/value/rational.js';

function euclid(a: bigint, b: bigint): bigint {
  return b === 0n ? a : euclid(b, a % b);
}

function reduceByEuclid(n: bigint, d: bigint): Rational {
  const divisor = euclid(n < 0n ? -n : n, d);
  return { n: n / divisor, d: d / divisor };
}

/** Numbers with long runs of zeros at their end, as doubles have them, and others. */
const numerator = fc
  .tuple(fc.bigInt({ min: -(1n << 80n), max: 1n << 80n }), fc.integer({ min: 0, max: 1_200 }))
  .map(([n, shift]) => n << BigInt(shift));

const denominator = fc.oneof(
  fc.integer({ min: 0, max: 1_100 }).map((bits) => 1n << BigInt(bits)),
  fc.integer({ min: 0, max: 1_100 }).map((bits) => 3n << BigInt(bits)),
  fc.bigInt({ min: 1n, max: 1n << 700n }),
);

it('a rational is reduced, whatever its denominator', () => {
  fc.assert(
    fc.property(numerator, denominator, (n, d) => {
      expect(reduceRational(n, d)).toEqual(reduceByEuclid(n, d));
    }),
    { numRuns: 500 },
  );
});

it('sums are exact and reduced', () => {
  const rational = fc.tuple(numerator, denominator).map(([n, d]) => reduceByEuclid(n, d));
  fc.assert(
    fc.property(rational, rational, (a, b) => {
      expect(addRationals(a, b)).toEqual(reduceByEuclid(a.n * b.d + b.n * a.d, a.d * b.d));
    }),
    { numRuns: 500 },
  );
});
