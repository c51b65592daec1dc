/**
 * Quantities, SPEC §2: exact amounts as texts, never JSON numbers. Four types, all of them exact rationals:
 *
 * - `{"t":"int","v":"12"}`: a whole number of up to 39 digits
 * - `{"t":"dec","m":"1250","s":2}`: m·10^−s, here 12.50, s from 0 to 38
 * - `{"t":"rat","n":"1","d":"3"}`: n/d in lowest terms
 * - `{"t":"f64","bits":"3fb999999999999a"}`: the finite IEEE 754 double with these big-endian bits
 *
 * The schemas check members, digits and ranges; {@link quantityProblem} checks what regular expressions cannot.
 */

import { printable } from '../bytes/printable.js';
import { parseDecimal } from '../json/decimal.js';
import { compareRationals, greatestCommonDivisor, type Rational, reduceRational } from './rational.js';

export type Quantity =
  | { readonly t: 'int'; readonly v: string }
  | { readonly t: 'dec'; readonly m: string; readonly s: number }
  | { readonly t: 'rat'; readonly n: string; readonly d: string }
  | { readonly t: 'f64'; readonly bits: string };

const MAX_DIGITS = 39;
const MAX_SCALE = 38;
const LIMIT = 10n ** BigInt(MAX_DIGITS);
const POWERS_OF_TEN: readonly bigint[] = Array.from({ length: MAX_SCALE + 1 }, (_, s) => 10n ** BigInt(s));
const MAX_POWER_OF_TEN = 10n ** BigInt(MAX_SCALE);

const NUMBER_TEXT = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

/**
 * What was expected of a quantity of the right shape that is a rational not in lowest terms, or an infinite or NaN double;
 * `undefined` if it is valid.
 */
export function quantityProblem(q: Quantity): string | undefined {
  if (q.t === 'rat') {
    if (q.d === '1') return undefined;
    return greatestCommonDivisor(BigInt(q.n), BigInt(q.d)) === 1n ? undefined : 'a fraction in lowest terms';
  }
  // All 11 bits of the exponent set: infinite or NaN.
  if (q.t === 'f64') return /^[7f]ff/.test(q.bits) ? 'the bits of a finite double' : undefined;
  return undefined;
}

/** The exact value of a quantity of the right shape. @throws RangeError for a double that is not finite. */
export function toRational(q: Quantity): Rational {
  switch (q.t) {
    case 'int':
      return { n: BigInt(q.v), d: 1n };
    case 'dec':
      return reduceRational(BigInt(q.m), powerOfTen(q.s));
    case 'rat':
      return reduceRational(BigInt(q.n), BigInt(q.d));
    case 'f64':
      return rationalOfBits(q.bits);
  }
}

/**
 * The quantity of a rational: an int if it is whole, else a dec of the least scale, else a rat.
 * @throws RangeError if it fits none of them (39 digits).
 */
export function fromRational(r: Rational): Quantity {
  if (r.d === 1n) {
    if (!fits(r.n)) throw new RangeError(`expected a value of at most ${MAX_DIGITS} digits`);
    return { t: 'int', v: r.n.toString() };
  }
  if (MAX_POWER_OF_TEN % r.d === 0n) {
    const s = POWERS_OF_TEN.findIndex((power) => power % r.d === 0n);
    const m = r.n * (powerOfTen(s) / r.d);
    if (fits(m)) return { t: 'dec', m: m.toString(), s };
  }
  if (!fits(r.n) || !fits(r.d))
    throw new RangeError(`expected a fraction of at most ${MAX_DIGITS} digits a side`);
  return { t: 'rat', n: r.n.toString(), d: r.d.toString() };
}

/** Compares two quantities of any types by value. */
export function compareQuantities(a: Quantity, b: Quantity): -1 | 0 | 1 {
  // Ints and decs are comparable without lowest terms.
  if ((a.t === 'int' || a.t === 'dec') && (b.t === 'int' || b.t === 'dec'))
    return compareRationals(unreduced(a), unreduced(b));
  return compareRationals(toRational(a), toRational(b));
}

/** Whether a quantity is below 0. The double −0 is not. */
export function isNegativeQuantity(q: Quantity): boolean {
  switch (q.t) {
    case 'int':
      return q.v.startsWith('-');
    case 'dec':
      return q.m.startsWith('-');
    case 'rat':
      return q.n.startsWith('-');
    case 'f64':
      return /^[89a-f]/.test(q.bits) && q.bits !== '8000000000000000';
  }
}

/** A quantity as exact decimal text (a double with all its digits); a rat as `n/d`. */
export function formatQuantity(q: Quantity): string {
  switch (q.t) {
    case 'int':
      return q.v;
    case 'dec':
      return decimalText(q.m, q.s);
    case 'rat':
      return `${q.n}/${q.d}`;
    case 'f64': {
      // The denominator is 2^k, so the value is n·5^k / 10^k.
      const { n, d } = rationalOfBits(q.bits);
      const k = d.toString(2).length - 1;
      return decimalText((n * 5n ** BigInt(k)).toString(), k);
    }
  }
}

/**
 * The exact quantity of a number's text (RFC 8259: `12`, `-0.50`, `1.5e3`): an int if it is whole, else a dec of the least scale.
 * @throws RangeError if `text` is no number, or fits neither an int nor a dec.
 */
export function quantityFromNumberText(text: string): Quantity {
  if (!NUMBER_TEXT.test(text))
    throw new RangeError(`expected a number such as 12 or 0.25, found ${shown(text)}`);
  const { negative, digits, exponent } = parseDecimal(text);
  // Bounds the digits before any bigint is made.
  if (digits.length + Math.max(exponent, 0) > MAX_DIGITS || -exponent > MAX_SCALE)
    throw new RangeError(
      `expected a number of at most ${MAX_DIGITS} digits, ${MAX_SCALE} of them after the point, found ${shown(text)}`,
    );
  if (digits === '') return { t: 'int', v: '0' };
  const integer = `${negative ? '-' : ''}${digits}${'0'.repeat(Math.max(exponent, 0))}`;
  return exponent < 0 ? { t: 'dec', m: integer, s: -exponent } : { t: 'int', v: integer };
}

/**
 * The quantity of a whole number, or of a number's text: `quantity(3n)`, `quantity(3)`, `quantity('0.25')`.
 * @throws TypeError for another type.
 * @throws RangeError for a number that is not a safe integer (pass a text: a double loses the digits that were written), and for a
 *   value that does not fit.
 */
export function quantity(value: bigint | number | string): Quantity {
  if (typeof value === 'string') return quantityFromNumberText(value);
  if (typeof value === 'bigint') return fromRational({ n: value, d: 1n });
  if (typeof value !== 'number') throw new TypeError('expected a bigint, a safe integer or a number as text');
  if (!Number.isSafeInteger(value)) throw new RangeError(inexactProblem(value));
  return { t: 'int', v: BigInt(value).toString() };
}

function inexactProblem(value: number): string {
  if (!Number.isFinite(value)) return `${value} is not an amount`;
  if (!Number.isInteger(value)) return `${value} is not a whole number; write '${value}'`;
  return `${value} is beyond 2^53 - 1, where numbers lose digits; write it as a bigint or as text`;
}

function shown(text: string): string {
  return text === '' ? 'nothing' : printable(text, 80);
}

function fits(n: bigint): boolean {
  return n < LIMIT && n > -LIMIT;
}

function powerOfTen(exponent: number): bigint {
  const power = POWERS_OF_TEN[exponent];
  if (power === undefined) throw new RangeError(`expected a scale from 0 to ${MAX_SCALE}`);
  return power;
}

function unreduced(q: Extract<Quantity, { t: 'int' | 'dec' }>): Rational {
  return q.t === 'int' ? { n: BigInt(q.v), d: 1n } : { n: BigInt(q.m), d: powerOfTen(q.s) };
}

/** (−1)^sign · mantissa · 2^exponent; subnormal numbers have the exponent of the least normal ones. */
function rationalOfBits(bits: string): Rational {
  const all = BigInt(`0x${bits}`);
  const biased = Number((all >> 52n) & 0x7ffn);
  if (biased === 0x7ff) throw new RangeError('expected the bits of a finite double');
  const fraction = all & 0xf_ffff_ffff_ffffn;
  const mantissa = biased === 0 ? fraction : fraction | 0x10_0000_0000_0000n;
  const exponent = Math.max(biased, 1) - 1075;
  const signed = all >> 63n === 0n ? mantissa : -mantissa;
  return exponent >= 0
    ? { n: signed << BigInt(exponent), d: 1n }
    : reduceRational(signed, 1n << BigInt(-exponent));
}

/** The integer text m with a point before its last s digits. */
function decimalText(m: string, s: number): string {
  if (s === 0) return m;
  const sign = m.startsWith('-') ? '-' : '';
  const digits = m.slice(sign.length).padStart(s + 1, '0');
  return `${sign}${digits.slice(0, -s)}.${digits.slice(-s)}`;
}
