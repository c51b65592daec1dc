/** Totals of calls of models against their parts: what counts, and what is left out. */

import { expect, it } from 'vitest';
import { openclaw } from '../../../src/hosts/openclaw/index.js';
import { sumLeftOut } from '../../../src/hosts/shared/usage.js';
import { formatQuantity } from '../../../src/base/value/quantity.js';
import { linesOf, transcript } from './kit.js';

/** A transcript with one answer of a model that used this. */
function read(usage: object) {
  const at = '2026-08-04T10:00:00.000Z';
  const reading = openclaw.read([
    transcript(
      linesOf(
        { type: 'session', version: 3, id: 's', timestamp: at },
        { type: 'message', id: 'm1', parentId: null, timestamp: at, message: { role: 'user', content: [] } },
        {
          type: 'message',
          id: 'm2',
          parentId: 'm1',
          timestamp: at,
          message: {
            role: 'assistant',
            content: [],
            provider: 'p',
            model: 'm',
            usage,
            stopReason: 'stop',
            timestamp: 1,
          },
        },
      ),
    ),
  ]);
  const [{ meters } = { meters: [] }] = reading.observations;
  return {
    meters: Object.fromEntries(meters.map(({ unit, amount }) => [unit, formatQuantity(amount)])),
    codes: reading.findings
      .filter(({ rule }) => rule === 'OC-14')
      .map(({ code, severity }) => [code, severity]),
    leftOut: sumLeftOut(reading.leftOut),
  };
}

const usage = { input: 1000, output: 10, cacheRead: 900, cacheWrite: 50 };

it('adds the cache to the input where the total does, and where there is none', () => {
  for (const total of [{ totalTokens: 1960 }, {}]) {
    const { meters, codes, leftOut } = read({ ...usage, ...total });
    expect([meters['tokens.input'], codes, leftOut]).toEqual(['1950', [], []]);
  }
});

it('does not where the total is that of input and output', () => {
  const { meters, codes, leftOut } = read({ ...usage, totalTokens: 1010 });
  expect(meters).toMatchObject({ 'tokens.input': '1000', 'tokens.input.cache_read': '900' });
  expect([codes, leftOut]).toEqual([[['CACHE_WITHIN_INPUT', 'info']], []]);
});

it.each([
  ['less than the parts', { ...usage, totalTokens: 1500 }, '1950', []],
  ['a cache that is more than the input', { ...usage, cacheRead: 2000, totalTokens: 1010 }, '3050', []],
  ['more than the parts', { ...usage, totalTokens: 2000 }, '1950', '40'],
  ['a total without parts', { totalTokens: 2000 }, undefined, '2000'],
])('tells of %s', (_what, stated, input, rest) => {
  const { meters, codes, leftOut } = read(stated);
  expect([meters['tokens.input'], codes]).toEqual([input, [['TOTAL_DIFFERS', 'warning']]]);
  const amounts = [{ unit: 'tokens', amount: rest }];
  expect(leftOut).toEqual(typeof rest === 'string' ? [{ reason: 'TOTAL_DIFFERS', items: 1, amounts }] : []);
});

it('holds the total of a cost against its parts, and adds them up where there is none', () => {
  const cost = { input: 0.5, output: 0.25, cacheRead: 0, cacheWrite: 0 };
  expect(read({ ...usage, cost }).meters).toMatchObject({ usd: '0.75' });
  expect(read({ ...usage, cost: { ...cost, total: 0.75 } }).codes).toEqual([]);
  const other = read({ ...usage, cost: { ...cost, total: 1 } });
  expect([other.meters['usd'], other.codes]).toEqual(['1', [['COST_TOTAL_DIFFERS', 'warning']]]);
});

it('reads totals that no quantity holds', () => {
  expect(() => read({ ...usage, totalTokens: Number.MAX_VALUE, input: Number.MAX_VALUE })).not.toThrow();
});
