/** Exact rational numbers, for comparing and adding quantities of all types (SPEC §2). */

/** n/d, reduced, d > 0. */
export interface Rational {
  readonly n: bigint;
  readonly d: bigint;
}

export const ZERO: Rational = { n: 0n, d: 1n };

/**
 * The most digits of a running sum's denominator (SPEC §2): bounds the cost of hostile rationals. One f64 needs up to 324.
 */
export const MAX_DENOMINATOR_DIGITS = 400;

/** The least denominator of more digits than that. */
export const DENOMINATOR_LIMIT = 10n ** BigInt(MAX_DENOMINATOR_DIGITS);
const MAX_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

/** Whether a sum's denominator has more than {@link MAX_DENOMINATOR_DIGITS} digits. */
export function exceedsDenominatorLimit(r: Rational): boolean {
  return r.d >= DENOMINATOR_LIMIT;
}

/** n/d in lowest terms. @throws RangeError unless `d` is positive. */
export function reduceRational(n: bigint, d: bigint): Rational {
  if (d <= 0n) throw new RangeError('expected a positive denominator');
  if (d === 1n) return { n, d };
  const divisor = greatestCommonDivisor(n, d);
  return divisor === 1n ? { n, d } : { n: n / divisor, d: d / divisor };
}

const SMALL_POWERS_OF_TEN = Array.from({ length: 16 }, (_, s) => 10 ** s);

/** m·10^−s. @param m - A safe integer of at least 0. @param s - 0 to 38. */
export function rationalOfDecimal(m: number, s: number): Rational {
  if (s === 0) return { n: BigInt(m), d: 1n };
  const power = SMALL_POWERS_OF_TEN[s];
  if (power === undefined) return reduceRational(BigInt(m), 10n ** BigInt(s));
  const divisor = smallGreatestCommonDivisor(m, power);
  return { n: BigInt(m / divisor), d: BigInt(power / divisor) };
}

export function addRationals(a: Rational, b: Rational): Rational {
  // Nearly all sums are of equal denominators.
  if (a.d === b.d) return reduceRational(a.n + b.n, a.d);
  if (a.n === 0n) return b;
  if (b.n === 0n) return a;
  // Both are reduced, so only a common factor of the denominators can cancel (Knuth, TAOCP 4.5.1).
  const shared = greatestCommonDivisor(a.d, b.d);
  const n = a.n * (b.d / shared) + b.n * (a.d / shared);
  const rest = greatestCommonDivisor(n, shared);
  return { n: n / rest, d: (a.d / shared) * (b.d / rest) };
}

export function subtractRationals(a: Rational, b: Rational): Rational {
  return addRationals(a, { n: -b.n, d: b.d });
}

export function compareRationals(a: Rational, b: Rational): -1 | 0 | 1 {
  const left = a.d === b.d ? a.n : a.n * b.d;
  const right = a.d === b.d ? b.n : b.n * a.d;
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Greatest common divisor of |n| and d, d > 0. */
export function greatestCommonDivisor(n: bigint, d: bigint): bigint {
  // Doubles have denominators that are powers of two of up to a thousand bits.
  if (d >= LONG && (d & (d - 1n)) === 0n) {
    const lowest = n & -n;
    return lowest === 0n || lowest > d ? d : lowest;
  }
  const rest = n < 0n ? -n % d : n % d;
  if (rest === 0n) return d;
  return d < LONG || rest < LONG ? computeDivisor(d, rest) : recallDivisor(d, rest);
}

/** From here on the memo pays. */
const LONG = 1n << 256n;
const MEMO_SIZE = 1_024;

interface Divisor {
  readonly a: bigint;
  readonly b: bigint;
  readonly divisor: bigint;
}

/** Recent divisors of long numbers: the grants of a chain, and the limits of a grant, add the same amounts. */
const memo: (Divisor | undefined)[] = [];

function recallDivisor(a: bigint, b: bigint): bigint {
  const slot = Number(BigInt.asUintN(32, a ^ (b << 5n))) % MEMO_SIZE;
  const known = memo[slot];
  if (known?.a === a && known.b === b) return known.divisor;
  const divisor = computeDivisor(a, b);
  memo[slot] = { a, b, divisor };
  return divisor;
}

function computeDivisor(d: bigint, rest: bigint): bigint {
  let a = d;
  let b = rest;
  while (b !== 0n) {
    // Below 2^53 doubles hold every step exactly, at a fraction of what bigints cost.
    if (a <= MAX_SAFE) return BigInt(smallGreatestCommonDivisor(Number(a), Number(b)));
    [a, b] = [b, a % b];
  }
  return a;
}

function smallGreatestCommonDivisor(n: number, d: number): number {
  let a = n;
  let b = d;
  while (b !== 0) [a, b] = [b, a % b];
  return a;
}
