/** Sums in few scales against exact rationals: what is decided, and what is told, must be the same. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Finding } from '../../src/format/finding/finding.js';
import { exactValue, fractionOf, sumOf } from '../../src/rules/bounds/fraction.js';
import {
  DENOMINATOR_LIMIT,
  ZERO,
  addRationals,
  compareRationals,
  greatestCommonDivisor,
  reduceRational,
  subtractRationals,
  type Rational,
} from '../../src/base/value/rational.js';
import { BareRun, makeExecution, makeGrant, number } from './support.js';

/** What an amount may have: of ten without a common factor the common one is just within the limit. */
const denominator = fc.constantFrom(
  ...[1n, 3n, 41n, 100n, 10n ** 38n, 2n ** 1074n],
  ...Array.from({ length: 9 }, (_, n) => 10n ** 38n + BigInt(2 * n + 1)),
);
const amount = fc
  .tuple(fc.oneof(fc.bigInt(1n, 9n), fc.bigInt(1n, 10n ** 39n), fc.constant(2n ** 1024n)), denominator)
  .map(([n, d]) => reduceRational(n, d));

/** As many of the amounts as one window can hold. */
function fitting(amounts: readonly Rational[]): Rational[] {
  let common = 1n;
  return amounts.filter(({ d }) => {
    const next = (common / greatestCommonDivisor(common, d)) * d;
    if (next >= DENOMINATOR_LIMIT) return false;
    common = next;
    return true;
  });
}

const window = fc.array(amount, { minLength: 1, maxLength: 30, size: 'max' }).map(fitting);
const addAll = (amounts: readonly Rational[]): Rational => amounts.reduce(addRationals, ZERO);
const sumAll = (amounts: readonly Rational[]): Rational => amounts.map(fractionOf).reduce(sumOf, ZERO);

test('a sum has one exact value, with and without a known common denominator', () => {
  fc.assert(
    fc.property(window, (amounts) => {
      const exact = addAll(amounts);
      const common = amounts.reduce((all, { d }) => (all / greatestCommonDivisor(all, d)) * d, 1n);
      expect(exactValue(sumAll(amounts))).toEqual(exact);
      expect(exactValue(sumAll(amounts), common)).toEqual(exact);
      expect(exactValue(sumAll([...amounts].reverse()))).toEqual(exact);
    }),
    { numRuns: 300 },
  );
});

test('a limit is held against a sum exactly, also right beside it', () => {
  const finest: Rational = { n: 1n, d: 2n ** 1074n };
  fc.assert(
    fc.property(window, fc.constantFrom(-1n, 0n, 1n), fc.boolean(), (amounts, side, isTiny) => {
      const exact = addAll(amounts);
      // No limit of an event is nearer to a sum than this one, or than the whole number beside it.
      const step = isTiny ? { n: side, d: exact.d * finest.d } : { n: side, d: 1n };
      const limit = addRationals(exact, step);
      expect(compareRationals(sumAll(amounts), limit) > 0).toBe(compareRationals(exact, limit) > 0);
    }),
    { numRuns: 300 },
  );
});

test('distinguishes the fuller of two windows', () => {
  fc.assert(
    fc.property(window, window, (one, other) => {
      const exact = compareRationals(addAll(one), addAll(other));
      if (exact !== 0) expect(compareRationals(sumAll(one), sumAll(other))).toBe(exact);
    }),
    { numRuns: 300 },
  );
});

test('two windows that differ by as little as two can', () => {
  const [a, b] = [10n ** 399n + 1n, 10n ** 399n + 3n];
  const [one, other] = [reduceRational(a - 1n, a), reduceRational(b - 1n, b)];
  expect(subtractRationals(other, one).n).toBeLessThan(10n);
  expect(compareRationals(fractionOf(one), fractionOf(other))).toBe(-1);
  expect(exactValue(fractionOf(one))).toEqual(one);
});

test('a finding tells the exact sum of amounts without a common factor', () => {
  const run = new BareRun();
  const third = { t: 'rat', n: '1', d: String(10n ** 38n + 1n) } as const;
  const grant = makeGrant({ rates: { 'usd.per_min': third } });
  run.push(grant);
  const found = (d: bigint): Finding[] =>
    run
      .push(makeExecution(grant, { usd: { t: 'rat', n: '1', d: String(d) } }))
      .filter(({ code }) => code === 'RATE_LIMIT_EXCEEDED');
  expect(found(10n ** 38n + 1n)).toEqual([]);
  const [finding] = found(41n);
  // 1/41 over, and the sum of both.
  expect(finding).toMatchObject({
    expected: expect.stringContaining(`usd.per_min at most 1/${10n ** 38n + 1n} under sha-256:`) as string,
    actual: `${10n ** 38n + 42n}/${41n * (10n ** 38n + 1n)} within one window: 1/41 over`,
  });
  expect({ ...finding }).toEqual(finding);
});

test('a finding on a cap tells what was used before it, whenever it is read', () => {
  const run = new BareRun();
  const grant = makeGrant({ caps: { usd: 1 } });
  run.push(grant);
  const amount = { t: 'rat', n: '1', d: String(10n ** 38n + 1n) } as const;
  run.push(makeExecution(grant, { usd: 1 }));
  const [first] = run.push(makeExecution(grant, { usd: amount }));
  run.push(makeExecution(grant, { usd: 5 }, number(1)));
  expect(first).toMatchObject({
    code: 'METER_CAP_EXCEEDED',
    actual: `1 used before, 1/${10n ** 38n + 1n} by this event: 1/${10n ** 38n + 1n} over`,
  });
});
