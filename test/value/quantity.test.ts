import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareQuantities,
  formatQuantity,
  fromRational,
  isNegativeQuantity,
  quantity,
  quantityFromNumberText,
  quantityProblem,
  toRational,
  type Quantity,
} from '../../src/base/value/quantity.js';
import {
  addRationals,
  compareRationals,
  exceedsDenominatorLimit,
  MAX_DENOMINATOR_DIGITS,
  reduceRational,
  subtractRationals,
  ZERO,
  type Rational,
} from '../../src/base/value/rational.js';

const LIMIT = 10n ** 39n;

/** The naive twin of all arithmetic: fractions as they come, compared by cross multiplication. */
type Fraction = readonly [n: bigint, d: bigint];
const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? (a < 0n ? -a : a) : gcd(b, a % b));
const same = ([n, d]: Fraction, r: Rational) => n * r.d === r.n * d;
const isReduced = (r: Rational) => r.d > 0n && gcd(r.n, r.d) === 1n;
const order = ([a, b]: Fraction, [c, d]: Fraction) => (a * d < c * b ? -1 : a * d > c * b ? 1 : 0);

function doubleOf(bits: string): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`));
  return view.getFloat64(0);
}

function bitsOf(value: number): string {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  return view.getBigUint64(0).toString(16).padStart(16, '0');
}

/** A double as a fraction, by doubling until it is whole. */
function fractionOfDouble(value: number): Fraction {
  let d = 1n;
  let x = value;
  while (!Number.isInteger(x)) {
    // Multiplying by two is exact, subnormals included.
    x *= 2;
    d *= 2n;
  }
  return [BigInt(x), d];
}

const integers = fc.oneof(
  fc.bigInt({ min: 1n - LIMIT, max: LIMIT - 1n }),
  fc.bigInt({ min: -50n, max: 50n }),
);
const doubles = fc
  .oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(0, -0, 5e-324, -5e-324, 2 ** -1022, Number.MAX_VALUE, 0.1, 1),
  )
  .map(bitsOf);
const quantities: fc.Arbitrary<readonly [Quantity, Fraction]> = fc.oneof(
  integers.map((v) => [{ t: 'int', v: v.toString() }, [v, 1n]] as const),
  fc
    .tuple(integers, fc.nat({ max: 38 }))
    .map(([m, s]) => [{ t: 'dec', m: m.toString(), s }, [m, 10n ** BigInt(s)]] as const),
  fc
    .tuple(integers, fc.oneof(fc.bigInt({ min: 1n, max: LIMIT - 1n }), fc.bigInt({ min: 1n, max: 50n })))
    .map(([a, b]) => {
      const g = gcd(a, b);
      return [{ t: 'rat', n: (a / g).toString(), d: (b / g).toString() }, [a, b]] as const;
    }),
  doubles.map((bits) => [{ t: 'f64', bits }, fractionOfDouble(doubleOf(bits))] as const),
);

describe('exact arithmetic', () => {
  it('takes every quantity for the fraction it is', () => {
    fc.assert(
      fc.property(quantities, ([q, f]) => {
        const r = toRational(q);
        expect(same(f, r)).toBe(true);
        expect(isReduced(r)).toBe(true);
        expect(quantityProblem(q)).toBeUndefined();
        expect(isNegativeQuantity(q)).toBe(f[0] < 0n);
      }),
      { numRuns: 1000 },
    );
  });

  it('adds, subtracts and compares as naive fractions do', () => {
    fc.assert(
      fc.property(quantities, quantities, ([p, [a, b]], [q, [c, d]]) => {
        const [x, y] = [toRational(p), toRational(q)];
        const sum = addRationals(x, y);
        const difference = subtractRationals(x, y);
        expect(same([a * d + c * b, b * d], sum) && isReduced(sum)).toBe(true);
        expect(same([a * d - c * b, b * d], difference) && isReduced(difference)).toBe(true);
        expect(compareRationals(x, y)).toBe(order([a, b], [c, d]));
        expect(compareQuantities(p, q)).toBe(order([a, b], [c, d]));
      }),
      { numRuns: 2000 },
    );
  });

  it('orders any two quantities', () => {
    fc.assert(
      fc.property(quantities, quantities, quantities, ([a], [b], [c]) => {
        expect(compareQuantities(a, a)).toBe(0);
        expect(compareQuantities(a, b) + compareQuantities(b, a)).toBe(0);
        const sorted = [a, b, c].sort(compareQuantities);
        expect(compareQuantities(sorted[0], sorted[2])).toBeLessThanOrEqual(0);
      }),
    );
  });

  it('does not confuse 0.1 with its double', () => {
    const double: Quantity = { t: 'f64', bits: bitsOf(0.1) };
    expect(compareQuantities(double, quantity('0.1'))).toBe(1);
    expect(formatQuantity(double)).toBe('0.1000000000000000055511151231257827021181583404541015625');
    const tenth = toRational(quantity('0.1'));
    let sum = ZERO;
    for (let i = 0; i < 10; i++) sum = addRationals(sum, tenth);
    expect(sum).toEqual({ n: 1n, d: 1n });
  });

  it('limits denominators to 400 digits', () => {
    expect(exceedsDenominatorLimit({ n: 1n, d: 10n ** BigInt(MAX_DENOMINATOR_DIGITS) - 1n })).toBe(false);
    expect(exceedsDenominatorLimit({ n: 1n, d: 10n ** BigInt(MAX_DENOMINATOR_DIGITS) })).toBe(true);
    expect(exceedsDenominatorLimit(toRational({ t: 'f64', bits: '0000000000000001' }))).toBe(false);
  });

  it('refuses what is no fraction', () => {
    expect(() => reduceRational(1n, 0n)).toThrow(RangeError);
    expect(() => reduceRational(1n, -1n)).toThrow(RangeError);
    for (const bits of ['7ff0000000000000', 'fff0000000000000', '7ff8000000000000', 'ffffffffffffffff']) {
      expect(() => toRational({ t: 'f64', bits })).toThrow(RangeError);
      expect(quantityProblem({ t: 'f64', bits })).toBeDefined();
    }
    expect(quantityProblem({ t: 'f64', bits: '7fefffffffffffff' })).toBeUndefined();
  });

  it('knows a fraction that is not in lowest terms', () => {
    const rat = (n: string, d: string): Quantity => ({ t: 'rat', n, d });
    for (const q of [
      rat('2', '4'),
      rat('-2', '4'),
      rat('0', '2'),
      rat('3', '3'),
      rat('1' + '0'.repeat(38), '5'),
    ]) {
      expect(quantityProblem(q)).toBeDefined();
    }
    for (const q of [rat('0', '1'), rat('7', '1'), rat('-1', '3'), rat('1' + '0'.repeat(38), '3')]) {
      expect(quantityProblem(q)).toBeUndefined();
    }
  });
});

describe('quantities from rationals', () => {
  it('take the simplest type that holds them, exactly', () => {
    expect(fromRational({ n: 12n, d: 1n })).toEqual({ t: 'int', v: '12' });
    expect(fromRational({ n: 5n, d: 4n })).toEqual({ t: 'dec', m: '125', s: 2 });
    expect(fromRational({ n: -1n, d: 10n ** 38n })).toEqual({ t: 'dec', m: '-1', s: 38 });
    expect(fromRational({ n: 1n, d: 2n ** 19n })).toEqual({ t: 'dec', m: '19073486328125', s: 19 });
    expect(fromRational({ n: 1n, d: 2n ** 38n })).toEqual({ t: 'dec', m: (5n ** 38n).toString(), s: 38 });
    expect(fromRational({ n: 1n, d: 2n ** 39n })).toEqual({ t: 'rat', n: '1', d: '549755813888' });
    expect(fromRational({ n: 1n, d: 10n ** 39n - 1n })).toEqual({ t: 'rat', n: '1', d: '9'.repeat(39) });
    expect(() => fromRational({ n: 1n, d: 10n ** 39n })).toThrow(RangeError);
    expect(fromRational({ n: 1n, d: 3n })).toEqual({ t: 'rat', n: '1', d: '3' });
    expect(fromRational({ n: LIMIT - 1n, d: 2n })).toEqual({ t: 'rat', n: (LIMIT - 1n).toString(), d: '2' });
    expect(() => fromRational({ n: LIMIT, d: 1n })).toThrow(RangeError);
    expect(() => fromRational({ n: -LIMIT, d: 1n })).toThrow(RangeError);
    expect(() => fromRational({ n: LIMIT + 1n, d: 2n })).toThrow(RangeError);
    expect(() => fromRational({ n: 1n, d: LIMIT + 1n })).toThrow(RangeError);
  });

  it('are the same number again', () => {
    fc.assert(
      fc.property(quantities, ([q]) => {
        const r = toRational(q);
        let back: Quantity;
        try {
          back = fromRational(r);
        } catch (error) {
          // Only a double has more digits than the other types can hold.
          expect([q.t, error instanceof RangeError]).toEqual(['f64', true]);
          return;
        }
        expect(toRational(back)).toEqual(r);
        expect(fromRational(toRational(back))).toEqual(back);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('quantities and text', () => {
  it.each([
    ['0', { t: 'int', v: '0' }],
    ['-0', { t: 'int', v: '0' }],
    ['-0.00', { t: 'int', v: '0' }],
    ['12', { t: 'int', v: '12' }],
    ['10.00', { t: 'int', v: '10' }],
    ['-0.05', { t: 'dec', m: '-5', s: 2 }],
    ['1.5e3', { t: 'int', v: '1500' }],
    ['1.5E+1', { t: 'int', v: '15' }],
    ['1.250e1', { t: 'dec', m: '125', s: 1 }],
    ['1e-18', { t: 'dec', m: '1', s: 18 }],
    ['1e-38', { t: 'dec', m: '1', s: 38 }],
    [`-9.${'9'.repeat(38)}`, { t: 'dec', m: `-${'9'.repeat(39)}`, s: 38 }],
    ['0e-999999', { t: 'int', v: '0' }],
    ['0e99999999999999999999', { t: 'int', v: '0' }],
    ['100e-20', { t: 'dec', m: '1', s: 18 }],
    ['1.0000000000000000000000', { t: 'int', v: '1' }],
    ['123456789012345678901234567890.00000000000000', { t: 'int', v: '123456789012345678901234567890' }],
    ['9'.repeat(39), { t: 'int', v: '9'.repeat(39) }],
    ['1e38', { t: 'int', v: '1' + '0'.repeat(38) }],
    ['9007199254740993', { t: 'int', v: '9007199254740993' }],
  ] as [string, Quantity][])('%s is exactly that', (text, expected) => {
    expect(quantityFromNumberText(text)).toEqual(expected);
    expect(quantity(text)).toEqual(expected);
  });

  it.each([
    '',
    '-',
    '+1',
    '01',
    '.5',
    '1.',
    '1e',
    '1_000',
    '0x10',
    ' 1',
    '1\n',
    'NaN',
    'Infinity',
    '1/3',
    '1e39',
    '1e-39',
    `99.${'9'.repeat(38)}`,
    '1e400',
    `1e${'9'.repeat(400)}`,
    `1e-${'9'.repeat(400)}`,
    '9'.repeat(40),
    `0.${'0'.repeat(60_000)}1`,
    `1${'0'.repeat(60_000)}`,
    '123456789012345678901234567890.0000000001',
  ])('%.40s is refused', (text) => {
    expect(() => quantityFromNumberText(text)).toThrow(RangeError);
  });

  it('reads what it writes', () => {
    fc.assert(
      fc.property(quantities, ([q, [n, d]]) => {
        const text = formatQuantity(q);
        if (q.t === 'int' || q.t === 'dec') {
          expect(compareQuantities(quantityFromNumberText(text), q)).toBe(0);
          expect(quantityFromNumberText(text)).toEqual(fromRational(toRational(q)));
        } else if (q.t === 'rat') {
          expect(text).toBe(`${q.n}/${q.d}`);
        } else {
          expect(text).toMatch(/^-?[0-9]+(\.[0-9]+)?$/);
          const [, sign, whole, fraction = ''] = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text) as string[];
          expect(
            same([BigInt(sign + whole + fraction), 10n ** BigInt(fraction.length)], reduceRational(n, d)),
          ).toBe(true);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('takes whole numbers, not doubles', () => {
    expect(quantity(3n)).toEqual({ t: 'int', v: '3' });
    expect(quantity(-3)).toEqual({ t: 'int', v: '-3' });
    expect(quantity(-0)).toEqual({ t: 'int', v: '0' });
    for (const value of [0.5, 2 ** 53, NaN, Infinity]) expect(() => quantity(value)).toThrow(RangeError);
    expect(() => quantity(LIMIT)).toThrow(RangeError);
    expect(() => quantity(null as unknown as string)).toThrow(TypeError);
    expect(() => quantity(true as unknown as string)).toThrow(TypeError);
  });
});
