import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  compareTimestamps,
  formatInstant,
  isTimestamp,
  parseTimestamp,
} from '../../src/base/value/timestamp.js';

const NANOS = 1_000_000_000n;
const FORM = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?Z$/;

/** The slow twin: Date as judge of what is a real date. */
function isTimestampByDate(text: string): boolean {
  if (!FORM.test(text)) return false;
  const whole = `${text.slice(0, 19)}.000Z`;
  const date = new Date(whole);
  return !Number.isNaN(date.getTime()) && date.toISOString() === whole;
}

const instants = fc.bigInt({ min: -62_167_219_200n * NANOS, max: 253_402_300_800n * NANOS - 1n });
const digits = (length: number) => fc.stringMatching(new RegExp(`^[0-9]{${length}}$`));

describe('timestamps', () => {
  it.each([
    '2026-03-01T00:00:00Z',
    '2026-03-01T23:59:59.123456789Z',
    '2024-02-29T00:00:00.0Z',
    '2000-02-29T00:00:00Z',
    '0000-02-29T00:00:00Z',
    '0000-01-01T00:00:00Z',
    '9999-12-31T23:59:59.999999999Z',
  ])('take %s', (text) => {
    expect(isTimestamp(text)).toBe(true);
  });

  it.each([
    '',
    'Z',
    '2026-03-01',
    '2026-03-01T00:00:00',
    '2026-03-01T00:00:00z',
    '2026-03-01t00:00:00Z',
    '2026-03-01 00:00:00Z',
    '2026-03-01T00:00:00.Z',
    '2026-03-01T00:00:00,5Z',
    '2026-03-01T00:00:00.1234567890Z',
    '2026-03-01T00:00:00.12a4Z',
    '2026-03-01T00:00:00.12',
    '2026-03-01T00:00:60Z',
    '2026-03-01T00:60:00Z',
    '2026-03-01T24:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-03-01T00:00:00+00:00',
    '2026-03-01T00:00:00Z\n',
    ' 2026-03-01T00:00:00Z',
    '+2026-03-01T00:00:00Z',
    '-026-03-01T00:00:00Z',
    '2026-03-01T00:00:0٠Z',
    '20260301T000000Z00Z',
  ])('refuse %j', (text) => {
    expect(isTimestamp(text)).toBe(false);
    expect(() => parseTimestamp(text)).toThrow(RangeError);
    expect(() => compareTimestamps(text, '2026-03-01T00:00:00Z')).toThrow(RangeError);
    expect(() => compareTimestamps('2026-03-01T00:00:00Z', text)).toThrow(RangeError);
  });

  it('agree with Date on what is a real date', () => {
    const day = fc.tuple(digits(4), fc.integer({ min: 0, max: 13 }), fc.integer({ min: 0, max: 32 }));
    const time = fc.tuple(
      fc.integer({ min: 0, max: 25 }),
      fc.integer({ min: 0, max: 61 }),
      fc.integer({ min: 0, max: 61 }),
    );
    const two = (n: number) => String(n).padStart(2, '0');
    fc.assert(
      fc.property(day, time, fc.constantFrom('', '.5', '.000000001'), ([y, m, d], [h, min, s], fraction) => {
        const text = `${y}-${two(m)}-${two(d)}T${two(h)}:${two(min)}:${two(s)}${fraction}Z`;
        expect(isTimestamp(text)).toBe(isTimestampByDate(text));
      }),
      { numRuns: 2000 },
    );
  });

  it('refuse any one character put out of place as the slow twin does', () => {
    const good = '2024-02-29T12:34:56.789Z';
    for (let i = 0; i < good.length; i++) {
      for (const char of '0123459:-.TZz +é\u0000') {
        const text = good.slice(0, i) + char + good.slice(i + 1);
        expect([text, isTimestamp(text)]).toEqual([text, isTimestampByDate(text)]);
      }
      const shorter = good.slice(0, i) + good.slice(i + 1);
      expect([shorter, isTimestamp(shorter)]).toEqual([shorter, isTimestampByDate(shorter)]);
    }
  });

  it('stand for instants in nanoseconds', () => {
    expect(parseTimestamp('1970-01-01T00:00:00Z')).toBe(0n);
    expect(parseTimestamp('1969-12-31T23:59:59.999999999Z')).toBe(-1n);
    expect(parseTimestamp('2026-03-01T00:00:00.0Z')).toBe(parseTimestamp('2026-03-01T00:00:00Z'));
    expect(parseTimestamp('0000-01-01T00:00:00Z')).toBe(-62_167_219_200n * NANOS);
    expect(parseTimestamp('2026-03-01T00:00:00.000000001Z')).toBe(
      BigInt(Date.UTC(2026, 2, 1)) * 1_000_000n + 1n,
    );
  });

  it('survive formatting, shortest form first', () => {
    fc.assert(
      fc.property(instants, (instant) => {
        const text = formatInstant(instant);
        expect(isTimestamp(text)).toBe(true);
        expect(parseTimestamp(text)).toBe(instant);
        expect(text).not.toMatch(/\.(?:.*0)?Z$/);
        expect(BigInt(Date.parse(`${text.slice(0, 19)}Z`)) * 1_000_000n).toBe(
          instant - (((instant % NANOS) + NANOS) % NANOS),
        );
      }),
    );
    expect(formatInstant(253_402_300_800n * NANOS - 1n)).toBe('9999-12-31T23:59:59.999999999Z');
    expect(() => formatInstant(253_402_300_800n * NANOS)).toThrow(RangeError);
    expect(formatInstant(-62_167_219_200n * NANOS)).toBe('0000-01-01T00:00:00Z');
    expect(() => formatInstant(-62_167_219_200n * NANOS - 1n)).toThrow(RangeError);
  });

  it('compare as instants, however they are written', () => {
    const near = fc.tuple(
      instants,
      fc.bigInt({ min: -10n, max: 10n }),
      fc.nat({ max: 8 }),
      fc.nat({ max: 8 }),
    );
    const padded = (instant: bigint, zeros: number) => {
      const text = formatInstant(instant);
      const [whole, fraction = ''] = text.slice(0, -1).split('.');
      const more = (fraction + '0'.repeat(zeros)).slice(0, 9);
      return `${whole}${more === '' ? '' : `.${more}`}Z`;
    };
    fc.assert(
      fc.property(near, instants, ([a, delta, x, y], other) => {
        for (const b of [a + delta, other]) {
          if (b < -62_167_219_200n * NANOS || b >= 253_402_300_800n * NANOS) continue;
          const expected = a < b ? -1 : a > b ? 1 : 0;
          expect(compareTimestamps(padded(a, x), padded(b, y))).toBe(expected);
        }
      }),
      { numRuns: 1000 },
    );
  });
});
