/**
 * Sums of amounts over time, as whole multiples of 1/d, where d is one of few scales. Amounts may have denominators without a common
 * factor, and adding them as fractions would need a common divisor, and longer numbers, at each step.
 *
 * In the finest scale an amount is rounded down to a multiple of 2^−2720 or less. Decisions are still exact: the amounts of one window have
 * a common denominator below 10^400 (SPEC §2), so two different sums, or a sum and a limit, differ by far more than the rounding, and
 * {@link exactValue} finds the exact sum. Sums do not depend on the order of amounts.
 */

import { DENOMINATOR_LIMIT, reduceRational, type Rational } from '../../base/value/rational.js';

/** n/d, where d > 0 is a scale; not always reduced. */
export type Fraction = Rational;

/** A scale up to this is the least common multiple of the denominators; most sums are then exact as doubles. */
const COARSE = 1n << 40n;
/** The odd part of the least common multiple of 1 to 40, without fives: thirds, sevenths and so on are exact in every scale. */
const ODD = 27n * 7n * 11n * 13n * 17n * 19n * 23n * 29n * 31n * 37n;
const DECIMAL = (1n << 40n) * 5n ** 38n * ODD;
/** Holds every double, the least of which is 2^−1074. */
const BINARY = (1n << 1074n) * 5n ** 38n * ODD;
const FINEST = (1n << 2720n) * 5n ** 38n * ODD;

/** An amount in the smallest scale that fits; in the finest it is rounded down. */
export function fractionOf({ n, d }: Rational): Fraction {
  if (d === 1n) return { n, d };
  if (DECIMAL % d === 0n) return d <= COARSE ? { n, d } : { n: n * (DECIMAL / d), d: DECIMAL };
  if (BINARY % d === 0n) return { n: n * (BINARY / d), d: BINARY };
  return { n: (n * FINEST) / d, d: FINEST };
}

/** A common scale of two others. */
export function commonScale(a: bigint, b: bigint): bigint {
  if (a === b || b === 1n) return a;
  if (a === 1n) return b;
  if (a > COARSE || b > COARSE) return a > b ? a : b;
  const common = (a / smallDivisor(Number(a), Number(b))) * b;
  return common > COARSE ? DECIMAL : common;
}

function smallDivisor(a: number, b: number): bigint {
  let [left, right] = [a, b];
  while (right !== 0) [left, right] = [right, left % right];
  return BigInt(left);
}

/** a + b. */
export function sumOf(a: Fraction, b: Fraction): Fraction {
  if (b.n === 0n) return a;
  if (a.n === 0n) return b;
  if (a.d === b.d) return { n: a.n + b.n, d: a.d };
  const d = commonScale(a.d, b.d);
  return { n: inScale(a, d) + inScale(b, d), d };
}

let last = { n: 0n, d: 1n, scale: 1n, multiple: 0n };

/**
 * The numerator of a fraction in a scale, a multiple of its own. The number is cached: the limits of a chain add the same amount in
 * sequence.
 */
export function inScale({ n, d }: Fraction, scale: bigint): bigint {
  if (d === scale) return n;
  if (last.n !== n || last.d !== d || last.scale !== scale) last = { n, d, scale, multiple: n * (scale / d) };
  return last.multiple;
}

/** Whether most sums are exact as doubles in a scale. */
export function isCoarse(scale: bigint): boolean {
  return scale <= COARSE;
}

/** Whether finding the value of a fraction is far slower than comparing it. */
export function isLong({ d }: Fraction): boolean {
  return d > DECIMAL;
}

/**
 * The exact sum of a fraction: the only one whose denominator is within the limit of SPEC §2.
 *
 * @param common - A common denominator of the amounts within the limit; 0 if unknown, which costs about half a millisecond in the finest
 *   scale.
 */
export function exactValue({ n, d }: Fraction, common = 0n): Rational {
  if (d <= DECIMAL) return reduceRational(n, d);
  if (common !== 0n) return reduceRational(roundUp(n * common, d), common);
  if (d === BINARY) return reduceRational(n, d);
  // The rounding is less than 2^53 / d, so the sum is the last convergent within the limit (Hardy and Wright, theorem 184).
  let [a, b] = [n, d];
  let [before, denominator] = [1n, 0n];
  while (b !== 0n) {
    const quotient = a / b;
    const next = quotient * denominator + before;
    if (next >= DENOMINATOR_LIMIT) break;
    [a, b] = [b, a - quotient * b];
    [before, denominator] = [denominator, next];
  }
  return { n: roundUp(n * denominator, d), d: denominator };
}

function roundUp(n: bigint, d: bigint): bigint {
  return (n + d - 1n) / d;
}
