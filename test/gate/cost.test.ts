/** What calls cost: exact, whatever the numbers, and never more than what was said to be the most. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  costOf,
  formatQuantity,
  type ModelPrice,
  type ModelUsage,
  worstCaseOf,
} from '../../src/api/index.js';
import { toRational } from '../../src/base/value/quantity.js';
import { compareRationals } from '../../src/base/value/rational.js';
import type { UnitPrice } from '../../src/format/schema/generated/types.js';
import { codeThrown, imported, LITELLM } from './samples.js';

function priceOf(...prices: readonly UnitPrice[]): ModelPrice {
  return { provider: 'acme', model: 'm-1', found: 'name', from: undefined, prices };
}

const M1 = imported(LITELLM).find({ model: 'm-1' });

function cost(usage: ModelUsage, price = M1): string {
  return formatQuantity(costOf(price, usage));
}

describe('a cost', () => {
  it.each<[string, ModelUsage]>([
    ['0', { input: 0, output: 0 }],
    ['0.000003', { input: 1, output: 0 }],
    ['0.004035', { input: 1_000, output: 100, cacheRead: 200, cacheWrite: 100 }],
    ['0.006', { input: 1_000, output: 0, cacheWrite1h: 1_000 }],
    ['0.6', { input: 200_000, output: 0 }],
    // Above the tier's limit every token has its price, output too.
    ['1.200006', { input: 200_001, output: 0 }],
    ['1.2000285', { input: 200_001, output: 1 }],
    // What has no tier keeps its price.
    ['1.20000375', { input: 200_001, output: 0, cacheWrite: 1 }],
    ['0.02', { input: 0, output: 0, webSearches: 2 }],
  ])('is %s usd for %j', (expected, usage) => {
    expect(cost(usage)).toBe(expected);
  });

  it('of a part without a price of its own is that of its whole', () => {
    const price = priceOf({ unit: 'tokens.input', usd: '2' }, { unit: 'tokens.output', usd: '3' });
    const usage = {
      cacheRead: 1,
      cacheReadAudio: 1,
      cacheReadImage: 1,
      cacheWrite: 1,
      cacheWrite1h: 1,
      inputAudio: 1,
    };
    expect(cost({ input: 6, output: 2, ...usage, reasoning: 1, outputAudio: 1 }, price)).toBe('18');
    const audio = priceOf(
      { unit: 'tokens.input', usd: '2' },
      { unit: 'tokens.input.audio', usd: '5' },
      { unit: 'tokens.input.cache_read', usd: '1' },
    );
    expect(cost({ input: 3, output: 0, cacheRead: 1, cacheReadAudio: 1 }, audio)).toBe('8');
  });

  it('of requests is that of one, where the provider charges for them', () => {
    const price = imported(LITELLM).find({ model: 'asks' });
    expect(cost({ input: 9, output: 1 }, price)).toBe('0.00500028');
    expect(cost({ input: 9, output: 1, requests: 2 }, price)).toBe('0.01000028');
    expect(cost({ input: 1, output: 0, requests: 2 })).toBe('0.000003');
    expect(cost({ input: 0, output: 0, images: 3 }, imported(LITELLM).find({ model: 'pics' }))).toBe('0.12');
  });

  it.each<[string, ModelUsage, ModelPrice]>([
    ['input', { input: 1, output: 0 }, priceOf({ unit: 'tokens.output', usd: '1' })],
    ['output', { input: 0, output: 1 }, priceOf({ unit: 'tokens.input', usd: '1' })],
    ['images', { input: 0, output: 0, images: 1 }, M1],
    ['searches', { input: 0, output: 0, webSearches: 1 }, priceOf({ unit: 'tokens.input', usd: '1' })],
    [
      'a cache kept for an hour, where one kept for less has a price',
      { input: 1, output: 0, cacheWrite1h: 1 },
      priceOf({ unit: 'tokens.input', usd: '1' }, { unit: 'tokens.input.cache_creation', usd: '2' }),
    ],
  ])('is never 0 for want of a price of %s', (_, usage, price) => {
    expect(codeThrown(() => costOf(price, usage))).toBe('PRICE_UNKNOWN');
  });

  it.each<[object, new () => Error]>([
    [{ input: -1, output: 0 }, RangeError],
    [{ input: 0.5, output: 0 }, RangeError],
    [{ input: NaN, output: 0 }, RangeError],
    [{ input: 1e9 + 1, output: 0 }, RangeError],
    [{ input: 1, output: 0, cacheRead: 2 }, RangeError],
    [{ input: 2, output: 0, cacheRead: 1, cacheWrite: 1, inputAudio: 1 }, RangeError],
    [{ input: 1, output: 1, reasoning: 2 }, RangeError],
    [{ input: 1 }, TypeError],
    [{ input: '1', output: 0 }, TypeError],
    [{ input: 1, output: 0, cached: 1 }, TypeError],
    [[], TypeError],
  ])('is not told of the malformed usage %j', (usage, type) => {
    expect(() => costOf(M1, usage as ModelUsage)).toThrow(type);
  });
});

describe('the worst case', () => {
  const most = (limits: Parameters<typeof worstCaseOf>[1], price = M1): string =>
    formatQuantity(worstCaseOf(price, limits));

  it('takes every byte for a token, and every token for one of the dearest kind', () => {
    expect(most({ inputBytes: 0, maxOutput: 0 })).toBe('0');
    // Written to a cache for an hour; of m-1 it has no tier, and the input's is as dear.
    expect(most({ inputBytes: 1_000, maxOutput: 100 })).toBe('0.0075');
    expect(most({ inputBytes: 200_000, maxOutput: 0 })).toBe('1.2');
    expect(most({ inputBytes: 200_001, maxOutput: 1 })).toBe('1.2000285');
    expect(most({ inputBytes: 0, maxOutput: 0, webSearches: 3 })).toBe('0.03');
    expect(most({ inputBytes: 1, maxOutput: 1 }, imported(LITELLM).find({ model: 'asks' }))).toBe(
      '0.00500028',
    );
  });

  it('is not told without a price, and of malformed limits', () => {
    const price = priceOf({ unit: 'tokens.input', usd: '1' });
    expect(codeThrown(() => worstCaseOf(price, { inputBytes: 1, maxOutput: 1 }))).toBe('PRICE_UNKNOWN');
    expect(codeThrown(() => worstCaseOf(price, { inputBytes: 1, maxOutput: 0, images: 1 }))).toBe(
      'PRICE_UNKNOWN',
    );
    expect(() => worstCaseOf(price, { inputBytes: -1, maxOutput: 0 })).toThrow(RangeError);
    expect(() => worstCaseOf(price, { inputBytes: 1 } as never)).toThrow(TypeError);
    expect(() => worstCaseOf(price, { inputBytes: 1, maxOutput: 0, maxInput: 1 } as never)).toThrow(
      TypeError,
    );
  });
});

describe('for all prices and usages', () => {
  const digits = fc
    .integer({ min: 0, max: 24 })
    .chain((places) =>
      fc.tuple(fc.bigInt({ min: 0n, max: 10n ** BigInt(places + 3) - 1n }), fc.constant(places)),
    );
  /** Texts as a price file may have them. */
  const amount = digits.map(([n, places]) => {
    const text = n.toString().padStart(places + 1, '0');
    return places === 0 ? text : `${text.slice(0, -places)}.${text.slice(-places)}`;
  });
  const tiers = fc.uniqueArray(fc.record({ above: fc.integer({ min: 0, max: 2_000 }), usd: amount }), {
    maxLength: 3,
    selector: ({ above }) => above,
  });
  const rate = fc.record({ usd: amount, tiers: tiers.map((all) => all.sort((a, b) => a.above - b.above)) });
  const UNITS = [
    'tokens.input',
    'tokens.output',
    'tokens.input.cache_read',
    'tokens.input.cache_creation',
    'tokens.input.cache_creation.1h',
    'tokens.input.audio',
    'tokens.output.reasoning',
  ] as const;
  const price = fc
    .tuple(...UNITS.map(() => rate))
    .map((rates) => priceOf(...rates.map((each, n) => ({ unit: UNITS[n], ...each }))));
  const count = fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: 100_000_000 }));
  const PARTS = ['cacheRead', 'cacheWrite', 'cacheWrite1h', 'inputAudio'] as const;
  const usage = fc
    .tuple(count, count, count, count, count, count, count)
    .map(([a, b, c, d, rest, out, reasoning]) => ({
      input: a + b + c + d + rest,
      output: out + reasoning,
      cacheRead: a,
      cacheWrite: b,
      cacheWrite1h: c,
      inputAudio: d,
      reasoning,
    }));

  /** The same by another way: whole numbers of 10^-24 usd. */
  function expected(
    { prices }: ModelPrice,
    used: typeof usage extends fc.Arbitrary<infer U> ? U : never,
  ): bigint {
    const at = (unit: string): bigint => {
      const found = prices.find((each) => each.unit === unit)!;
      const reached = (found.tiers ?? []).filter(({ above }) => used.input > above);
      const [whole = '', fraction = ''] = (reached.at(-1) ?? found).usd.split('.');
      return BigInt(whole) * 10n ** 24n + BigInt(fraction.padEnd(24, '0'));
    };
    const rest = used.input - PARTS.reduce((sum, part) => sum + used[part], 0);
    return (
      BigInt(rest) * at('tokens.input') +
      BigInt(used.cacheRead) * at('tokens.input.cache_read') +
      BigInt(used.cacheWrite) * at('tokens.input.cache_creation') +
      BigInt(used.cacheWrite1h) * at('tokens.input.cache_creation.1h') +
      BigInt(used.inputAudio) * at('tokens.input.audio') +
      BigInt(used.output - used.reasoning) * at('tokens.output') +
      BigInt(used.reasoning) * at('tokens.output.reasoning')
    );
  }

  it('the cost is exact, not negative, and within the worst case', () => {
    fc.assert(
      fc.property(price, usage, (each, used) => {
        const { n, d } = toRational(costOf(each, used));
        expect(n * 10n ** 24n).toBe(expected(each, used) * d);
        const worst = toRational(worstCaseOf(each, { inputBytes: used.input, maxOutput: used.output }));
        expect(compareRationals({ n, d }, worst)).not.toBe(1);
        expect(n >= 0n).toBe(true);
      }),
    );
  });

  it('more output never costs less, nor does a larger worst case', () => {
    fc.assert(
      fc.property(price, usage, count, (each, used, more) => {
        const before = toRational(costOf(each, used));
        const after = toRational(costOf(each, { ...used, output: used.output + more }));
        expect(compareRationals(before, after)).not.toBe(1);
        const worst = (input: number, output: number) =>
          toRational(worstCaseOf(each, { inputBytes: input, maxOutput: output }));
        const small = worst(used.input, used.output);
        expect(compareRationals(small, worst(used.input + more, used.output))).not.toBe(1);
        expect(compareRationals(small, worst(used.input, used.output + more))).not.toBe(1);
      }),
    );
  });

  it('the largest of all still is a quantity', () => {
    const top = '999.999999999999999999999999';
    const all = priceOf(
      ...(['tokens.input', 'tokens.output', 'web_searches', 'images', 'requests'] as const).map((unit) => ({
        unit,
        usd: top,
      })),
    );
    const used = { input: 1e9, output: 1e9, webSearches: 1e9, images: 1e9, requests: 1e9 };
    expect(cost(used, all)).toBe('4999999999999.999999999999995');
  });
});
