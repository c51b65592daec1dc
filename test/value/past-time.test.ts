import { expect, it } from 'vitest';
import { resolvePastTime } from '../../src/base/value/when.js';

const now = '2026-03-08T12:00:00Z';

it.each([
  ['90s', '2026-03-08T11:58:30Z'],
  ['30m', '2026-03-08T11:30:00Z'],
  ['2h', '2026-03-08T10:00:00Z'],
  ['7d', '2026-03-01T12:00:00Z'],
  ['1w', '2026-03-01T12:00:00Z'],
  ['2026-03-01', '2026-03-01T00:00:00Z'],
  ['2026-03-01T14:00+02:00', '2026-03-01T12:00:00Z'],
])('%s ago is %s', (text, expected) => {
  expect(resolvePastTime(text, now)).toBe(expected);
});

it.each(['', '7', 'd', '0d', '-1d', '1y', '99999999w', 'yesterday', '2026-02-30'])(
  '%j is refused',
  (text) => {
    expect(() => resolvePastTime(text, now)).toThrow(RangeError);
  },
);
