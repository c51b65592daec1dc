/** Times as people give them. */

import { describe, expect, it } from 'vitest';
import { meters, quantity } from '../../src/api/index.js';
import { resolveTime } from '../../src/base/value/when.js';

const NOW = '2026-03-01T12:00:00.5Z';

describe('a time', () => {
  it.each([
    ['90s', '2026-03-01T12:01:30.5Z'],
    ['10m', '2026-03-01T12:10:00.5Z'],
    ['2h', '2026-03-01T14:00:00.5Z'],
    ['7d', '2026-03-08T12:00:00.5Z'],
    ['4w', '2026-03-29T12:00:00.5Z'],
    ['2026-03-02', '2026-03-02T00:00:00Z'],
    ['2026-03-02T14:00:00Z', '2026-03-02T14:00:00Z'],
    ['2026-03-02T14:00Z', '2026-03-02T14:00:00Z'],
    ['2026-03-02T14:00:00+02:00', '2026-03-02T12:00:00Z'],
    ['2026-03-02T00:30:00.250+05:45', '2026-03-01T18:45:00.25Z'],
    ['2026-12-31T23:00-01:30', '2027-01-01T00:30:00Z'],
    ['2026-03-02T14:00:00-00:00', '2026-03-02T14:00:00Z'],
  ])('%s is taken for what it means', (text, expected) => {
    expect(resolveTime(text, NOW)).toBe(expected);
  });

  it.each([
    '',
    '0h',
    '-2h',
    '2',
    '2 h',
    '2H',
    '1.5h',
    'tomorrow',
    '99999999w',
    '2026-02-30',
    '2026-03-02T14:00:00',
    '2026-03-02 14:00:00Z',
    '2026-03-02T14:00:00+24:00',
    '2026-03-02T14:00:00+0200',
    '2026-03-02T14:00:00Z+02:00',
    '2026-03-02T14:00:60Z',
    '9999-12-31T23:59:59-00:01',
    '0000-01-01T00:00:00+00:01',
  ])('%j is refused', (text) => {
    expect(() => resolveTime(text, NOW)).toThrow(RangeError);
  });
});

describe('amounts', () => {
  const messageOf = (make: () => unknown): string => {
    try {
      make();
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error('nothing was thrown');
  };

  it('are exact up to 38 decimal places', () => {
    const tiny = `0.${'0'.repeat(37)}1`;
    expect(meters({ usd: tiny })).toEqual([{ unit: 'usd', amount: { t: 'dec', m: '1', s: 38 } }]);
    expect(() => meters({ usd: `${tiny}1` })).toThrow(RangeError);
  });

  it('that are wrong are named by their units, all at once, with what to write instead', () => {
    const message = messageOf(() => meters({ usd: 0.25, calls: -1, tokens: 'many', Bad: 1, time: 2 ** 60 }));
    expect(message).toContain("usd: 0.25 is not a whole number; write '0.25'");
    for (const unit of ['calls: ', 'tokens: ', 'Bad', 'time: ']) expect(message).toContain(unit);
    expect(messageOf(() => quantity(NaN))).toContain('NaN');
    expect(() => meters({ usd: true as unknown as string })).toThrow(TypeError);
  });
});
