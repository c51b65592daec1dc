/** Exact decimals of number texts, against integers. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { equalNumberTexts, parseDecimal } from '../../src/base/json/decimal.js';

const numberText = fc
  .tuple(
    fc.constantFrom('', '-'),
    fc.constantFrom('0', '1', '10', '9', '120', '5000'),
    fc.constantFrom('', '.0', '.5', '.050', '.000', '.1200'),
    fc.constantFrom('', 'e0', 'E+2', 'e-3', 'e+07', 'E-11', 'e12'),
  )
  .map((parts) => parts.join(''));

/** The value times 10^20, for the texts above. */
function scaled(text: string): bigint {
  const [, sign, whole, fraction = '', power = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE](.+))?$/.exec(text)!;
  const value = BigInt(whole + fraction) * 10n ** BigInt(20 - fraction.length + Number(power));
  return sign === '-' ? -value : value;
}

test('a decimal has the value of its text, in one form', () => {
  fc.assert(
    fc.property(numberText, (text) => {
      const { negative, digits, exponent } = parseDecimal(text);
      const value = BigInt(digits === '' ? '0' : digits) * 10n ** BigInt(exponent + 20);
      expect(negative ? -value : value).toBe(scaled(text));
      expect(negative).toBe(text.startsWith('-'));
      expect(digits).not.toMatch(/^0|0$/);
      if (digits === '') expect(exponent).toBe(0);
    }),
  );
});

test('texts are equal when their values and signs are', () => {
  fc.assert(
    fc.property(numberText, numberText, (a, b) => {
      expect(equalNumberTexts(a, b)).toBe(scaled(a) === scaled(b) && a.startsWith('-') === b.startsWith('-'));
    }),
    {
      numRuns: 1000,
      examples: [
        ['-0', '0'],
        ['1.0', '10e-1'],
        ['1', '-1'],
      ],
    },
  );
});
