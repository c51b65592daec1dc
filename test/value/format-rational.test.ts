import fc from 'fast-check';
import { expect, it } from 'vitest';
import { formatExactly } from '../../src/base/value/format-rational.js';
import { reduceRational } from '../../src/base/value/rational.js';

/** n/d read back from what was written. */
function parse(text: string): { n: bigint; d: bigint } {
  const [whole = '', places = ''] = text.split('.');
  const [n = '', d = '1'] = whole.split('/');
  return reduceRational(BigInt(n + places), BigInt(d) * 10n ** BigInt(places.length));
}

it('writes denominators of any twos and fives as decimals, all others as n/d, and each exactly', () => {
  const power = fc.nat({ max: 1_100 });
  fc.assert(
    fc.property(
      fc.bigInt(),
      power,
      power,
      fc.constantFrom(1n, 1n, 3n, 7n ** 90n),
      (n, twos, fives, other) => {
        const exact = reduceRational(n, 2n ** BigInt(twos) * 5n ** BigInt(fives) * other);
        const text = formatExactly(exact);
        expect(parse(text)).toEqual(exact);
        expect(text.includes('/')).toBe(exact.d % 3n === 0n || exact.d % 7n === 0n);
        expect(text).not.toMatch(/\..*0$/);
      },
    ),
  );
  expect(formatExactly({ n: -1n, d: 2n ** 1_074n })).toMatch(/^-0\.0{323}4940656458\d{738}625$/);
});
