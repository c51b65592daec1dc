/** Price files: what is one, which price a model has, and what is made of the lists of others. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  costOf,
  formatDigest,
  formatQuantity,
  importPrices,
  openPrices,
  parsePrices,
  sha256Digest,
} from '../../src/api/index.js';
import { canonicalBytes } from '../../src/base/json/canonicalize.js';
import type { PricedModel } from '../../src/format/schema/generated/types.js';
import { codeOf, temporaryFolder } from '../writer/support.js';
import { AS_OF, codeThrown, GENAI, imported, LITELLM, model, priceFile, pricesOf } from './samples.js';

describe('a price file', () => {
  it('is opened by path and by bytes, and its digest is that of its bytes', async () => {
    const bytes = priceFile([model()]);
    const path = join(temporaryFolder(), 'prices.json');
    writeFileSync(path, bytes);
    for (const prices of [await openPrices(path), await openPrices(bytes), parsePrices(bytes)]) {
      expect(prices.digest).toEqual(sha256Digest(bytes));
      expect([prices.asOf, prices.source, prices.size]).toEqual([AS_OF, { name: 'test' }, 1]);
      expect(prices.find({ model: 'm-1' })).toMatchObject({ provider: 'acme', model: 'm-1', found: 'name' });
    }
    expect(await codeOf(openPrices(join(path, 'none')))).toBe('FILE_NOT_FOUND');
  });

  it.each<[string, string | Uint8Array]>([
    ['nothing', ''],
    ['no object', '[]'],
    ['two of a member', '{"as_of":"2026-03-01T00:00:00Z","as_of":"2026-03-01T00:00:00Z"}'],
    ['NaN', JSON.stringify({ usd: 0 }).replace('0', 'NaN')],
    ['no models', priceFile([])],
    ['a member that is not known', priceFile([{ ...model(), mode: 'chat' } as PricedModel])],
    ['a model without a provider', priceFile([{ model: 'm', periods: model().periods } as PricedModel])],
    ['a date that does not exist', priceFile([model()], { as_of: '2026-02-30T00:00:00Z' })],
    ['another currency', priceFile([model()], { currency_unit: 'eur' as 'usd' })],
    ['another version', priceFile([model()], { prices_version: '2' as '1' })],
    ['a name twice', priceFile([model(), model()])],
    ['an alias that is a name', priceFile([model(), model({ model: 'm-2', aliases: ['m-1'] })])],
    ['a prefix twice', priceFile([model({ prefixes: ['m'] }), model({ model: 'm-2', prefixes: ['m'] })])],
    ['a name with a line break', priceFile([model({ model: 'm\n1' })])],
    ['a unit that is not known', priceOf({ unit: 'tokens' as never, usd: '1' })],
    ['a unit twice', priceOf({ unit: 'tokens.input', usd: '1' }, { unit: 'tokens.input', usd: '2' })],
    ['a negative price', priceOf({ unit: 'tokens.input', usd: '-0.1' })],
    ['a price with an exponent', priceOf({ unit: 'tokens.input', usd: '3e-06' })],
    ['a price of 1000', priceOf({ unit: 'tokens.input', usd: '1000' })],
    ['a price of 25 decimals', priceOf({ unit: 'tokens.input', usd: `0.${'1'.repeat(25)}` })],
    ['a price that is a number', priceOf({ unit: 'tokens.input', usd: 3 as never })],
    ['tiers out of order', priceOf({ unit: 'tokens.input', usd: '1', tiers: [tier(2), tier(1)] })],
    ['a tier twice', priceOf({ unit: 'tokens.input', usd: '1', tiers: [tier(1), tier(1)] })],
    ['a tier beyond 10^9', priceOf({ unit: 'tokens.input', usd: '1', tiers: [tier(1_000_000_001)] })],
    [
      'a second period without a time',
      priceFile([model({ periods: [...model().periods, ...model().periods] })]),
    ],
    ['periods out of order', priceFile([dated('2026-02-01T00:00:00Z', '2026-01-01T00:00:00Z')])],
    ['two periods from one time', priceFile([dated('2026-02-01T00:00:00Z', '2026-02-01T00:00:00.0Z')])],
    ['a period from no date', priceFile([dated('2026-02-30T00:00:00Z')])],
  ])('is refused with %s', (_, given) => {
    const bytes = typeof given === 'string' ? Buffer.from(given) : given;
    expect(codeThrown(() => parsePrices(bytes))).toBe('PRICES_INVALID');
  });

  it('may be a large one: 100,000 models, and not one more', () => {
    const many = Array.from({ length: 100_000 }, (_, n) => model({ model: `m-${n}` }));
    const prices = parsePrices(priceFile(many));
    expect(prices.find({ model: 'm-99999' }).model).toBe('m-99999');
    expect(codeThrown(() => prices.find({ model: 'm-100000' }))).toBe('MODEL_UNKNOWN');
    expect(codeThrown(() => parsePrices(priceFile([...many, model()])))).toBe('PRICES_INVALID');
    // All of them of one name.
    const same = many.map((each, n) => ({ ...each, provider: `p-${n}`, model: 'm' }));
    expect(parsePrices(priceFile(same)).find({ model: 'm', provider: 'p-7' }).provider).toBe('p-7');
  });

  it('of more than 64 MiB is refused before it is read', () => {
    expect(codeThrown(() => parsePrices(new Uint8Array(64 * 1024 * 1024 + 1)))).toBe('PRICES_INVALID');
  });
});

function priceOf(...prices: PricedModel['periods'][number]['prices']): Uint8Array {
  return priceFile([model({ periods: [{ prices }] })]);
}

function tier(above: number): { above: number; usd: string } {
  return { above, usd: '2' };
}

function dated(...times: readonly string[]): PricedModel {
  const [{ prices }] = model().periods as [PricedModel['periods'][number]];
  return model({ periods: times.map((from) => ({ from, prices })) });
}

describe('finding a model', () => {
  it('goes by its name, then by other names, then by the longest prefix', () => {
    const prices = pricesOf(
      model({ model: 'a', aliases: ['b'], prefixes: ['m-'] }),
      model({ provider: 'other', model: 'b', prefixes: ['m-1'] }),
    );
    const found = (name: string): string[] => {
      const { provider, model: own, found: by } = prices.find({ model: name });
      return [provider, own, by];
    };
    expect(found('a')).toEqual(['acme', 'a', 'name']);
    expect(found('b')).toEqual(['other', 'b', 'name']);
    expect(found('m-2')).toEqual(['acme', 'a', 'prefix']);
    expect(found('m-12')).toEqual(['other', 'b', 'prefix']);
    expect(prices.find({ model: 'b', provider: 'acme' }).model).toBe('a');
    expect(prices.find({ model: 'm-12', provider: 'acme' }).model).toBe('a');
  });

  it.each(['m', 'M-1', 'm-1 ', 'm-11', '__proto__', 'constructor', 'x'.repeat(256)])(
    'never finds another one: %s',
    (name) => {
      expect(codeThrown(() => pricesOf(model()).find({ model: name }))).toBe('MODEL_UNKNOWN');
    },
  );

  it('needs the provider where prices differ, and only there', () => {
    const dearer = model({ provider: 'cloud', periods: [{ prices: [{ unit: 'tokens.input', usd: '1' }] }] });
    expect(codeThrown(() => pricesOf(model(), dearer).find({ model: 'm-1' }))).toBe('MODEL_AMBIGUOUS');
    expect(pricesOf(model(), dearer).find({ model: 'm-1', provider: 'cloud' }).prices).toHaveLength(1);
    expect(pricesOf(model(), model({ provider: 'cloud' })).find({ model: 'm-1' }).provider).toBe('acme');
    expect(codeThrown(() => pricesOf(model()).find({ model: 'm-1', provider: 'none' }))).toBe(
      'MODEL_UNKNOWN',
    );
  });

  it('takes the price of the time that is asked for', () => {
    const prices = imported(GENAI);
    const inputAt = (at: string): string | undefined => prices.find({ model: 'm-2', at }).prices[0]?.usd;
    expect(inputAt('2020-01-01T00:00:00Z')).toBe('0.000002');
    expect(inputAt('2026-08-31T23:59:59.999999999Z')).toBe('0.000002');
    expect(inputAt('2026-09-01T00:00:00Z')).toBe('0.000000123456789');
    expect(prices.find({ model: 'm-2', at: '2027-01-01T00:00:00Z' }).from).toBe('2026-09-01T00:00:00Z');
    const later = pricesOf(dated('2026-02-01T00:00:00Z'));
    expect(codeThrown(() => later.find({ model: 'm-1', at: AS_OF.replace('03', '01') }))).toBe(
      'PRICE_UNKNOWN',
    );
  });

  it.each<[object, new () => Error]>([
    [{ model: '' }, RangeError],
    [{ model: 'x'.repeat(257) }, RangeError],
    [{ model: '\ud800' }, RangeError],
    [{ model: 'm-1', at: 'today' }, RangeError],
    [{ model: 1 }, TypeError],
    [{}, TypeError],
    [{ model: 'm-1', region: 'eu' }, TypeError],
  ])('refuses %j as misuse', (query, type) => {
    expect(() => pricesOf(model()).find(query as { model: string })).toThrow(type);
  });
});

describe('importing', () => {
  it("takes LiteLLM's numbers from their digits, and tiers and other names with them", () => {
    const { bytes, prices, leftOut } = importPrices(Buffer.from(LITELLM), { asOf: AS_OF });
    expect(prices.find({ model: 'm-1' }).prices).toEqual([
      { unit: 'tokens.input', usd: '0.000003', tiers: [{ above: 200_000, usd: '0.000006' }] },
      { unit: 'tokens.input.cache_creation', usd: '0.00000375' },
      { unit: 'tokens.input.cache_creation.1h', usd: '0.000006' },
      { unit: 'tokens.input.cache_read', usd: '0.0000003', tiers: [{ above: 200_000, usd: '0.0000006' }] },
      { unit: 'tokens.output', usd: '0.000015', tiers: [{ above: 200_000, usd: '0.0000225' }] },
      { unit: 'web_searches', usd: '0.01' },
    ]);
    expect(prices.find({ model: 'm-1', provider: 'cloud' }).model).toBe('cloud/m-1');
    expect(prices.find({ model: 'pics' }).prices).toEqual([{ unit: 'images', usd: '0.04' }]);
    expect(prices.find({ model: 'asks' }).prices).toContainEqual({ unit: 'requests', usd: '0.005' });
    expect(leftOut).toEqual([
      { what: 'price', reason: 'input_cost_per_token_batches', count: 1, example: 'm-1' },
    ]);
    expect(prices.size).toBe(4);
    // The file is canonical, and names what it was made of.
    const file = JSON.parse(Buffer.from(bytes).toString()) as object;
    expect(Buffer.from(bytes)).toEqual(Buffer.concat([canonicalBytes(file), Buffer.from('\n')]));
    expect(prices.source).toEqual({ name: 'litellm', digest: sha256Digest(Buffer.from(LITELLM)) });
    expect(formatDigest(prices.digest)).toBe(formatDigest(sha256Digest(bytes)));
  });

  it('takes the prices of genai-prices by the million, with dates and patterns', () => {
    const { prices, leftOut } = importPrices(Buffer.from(GENAI), { asOf: AS_OF });
    expect(prices.entry({ model: 'm1' })).toEqual({
      provider: 'acme',
      model: 'm-1',
      aliases: ['m1'],
      prefixes: ['m-1-2026'],
      periods: [
        {
          prices: [
            { unit: 'tokens.input', usd: '0.000003', tiers: [{ above: 200_000, usd: '0.000006' }] },
            { unit: 'tokens.input.cache_creation', usd: '0.00000375' },
            { unit: 'tokens.input.cache_creation.1h', usd: '0.000006' },
            { unit: 'tokens.input.cache_read', usd: '0.0000003' },
            { unit: 'tokens.output', usd: '0.000015' },
            { unit: 'web_searches', usd: '0.01' },
          ],
        },
      ],
    });
    expect(prices.find({ model: 'm-1-20260101' })).toMatchObject({ model: 'm-1', found: 'prefix' });
    expect(leftOut).toEqual([{ what: 'pattern', reason: 'contains', count: 1, example: 'm-1' }]);
  });

  it('of two lists that say the same gives the same costs', () => {
    const usage = { input: 250_000, output: 100, cacheRead: 200, cacheWrite1h: 7, webSearches: 2 };
    const [one, other] = [LITELLM, GENAI].map((list) =>
      costOf(imported(list).find({ model: 'm-1', provider: 'acme', at: AS_OF }), { ...usage, cacheRead: 0 }),
    );
    expect(formatQuantity(one)).toBe('1.52225');
    // Only the first has a tier for the output.
    expect(formatQuantity(other)).toBe('1.5215');
  });

  it('keeps only the models that are asked for, and refuses a pattern for which there is none', () => {
    expect(imported(LITELLM, ['m-*', 'pics']).size).toBe(3);
    expect(imported(LITELLM, ['cloud/m-1']).size).toBe(1);
    expect(imported(LITELLM, ['*']).size).toBe(4);
    expect(codeThrown(() => imported(LITELLM, ['pics', 'none']))).toBe('MODEL_UNKNOWN');
  });

  it.each<[reason: string, entry: string]>([
    ['NAME_INVALID', '{"input_cost_per_token":1}'],
    ['NAME_INVALID', '{"litellm_provider":"a b","input_cost_per_token":1}'],
    ['NOT_AN_OBJECT', '7'],
    ['NO_PRICE', '{"litellm_provider":"a","input_cost_per_token":null}'],
    ['PRICE_INVALID', '{"litellm_provider":"a","input_cost_per_token":-1}'],
    ['PRICE_INVALID', '{"litellm_provider":"a","input_cost_per_token":"0.1"}'],
    ['PRICE_INVALID', '{"litellm_provider":"a","input_cost_per_token":1e-25}'],
    ['PRICE_INVALID', '{"litellm_provider":"a","input_cost_per_token":1e999999999}'],
    ['PRICE_INVALID', '{"litellm_provider":"a","input_cost_per_token":1000}'],
    [
      'PRICE_AMBIGUOUS',
      '{"litellm_provider":"a","cache_read_input_token_cost":1,"input_cost_per_token_cache_hit":2}',
    ],
    ['TIERS_UNCLEAR', '{"litellm_provider":"a","input_cost_per_token_above_200k_tokens":1}'],
    ['TIERS_UNCLEAR', '{"litellm_provider":"a","input_cost_per_token":1,"tiered_pricing":[]}'],
    ['input_cost_per_second', '{"litellm_provider":"a","input_cost_per_token":0,"input_cost_per_second":1}'],
  ])('leaves out a model of LiteLLM as %s: %s', (reason, entry) => {
    const list = `{"m":{"litellm_provider":"a","input_cost_per_token":1},"bad":${entry}}`;
    const { prices, leftOut } = importPrices(Buffer.from(list), { asOf: AS_OF });
    expect(prices.size).toBe(1);
    expect(leftOut).toEqual([{ what: 'model', reason, count: 1, example: 'bad' }]);
  });

  it.each<[reason: string, prices: string]>([
    ['NO_PRICE', '{}'],
    ['NO_PRICE', '[]'],
    ['NO_PRICE', '[7]'],
    ['PRICE_INVALID', '{"input_mtok":-1}'],
    ['PRICE_INVALID', '{"input_mtok":{"base":1,"tiers":[{"start":-1,"price":1}]}}'],
    ['PRICE_INVALID', '{"input_mtok":{"base":1,"tiers":[{"start":5,"price":1},{"start":5,"price":2}]}}'],
    ['PRICE_INVALID', '{"input_mtok":{"tiers":[]}}'],
    [
      'TIME_OF_DAY',
      '[{"prices":{"input_mtok":1}},{"constraint":{"start_time":"00:30:00Z","end_time":"16:30:00Z"},"prices":{"input_mtok":2}}]',
    ],
    [
      'PERIODS_UNCLEAR',
      '[{"prices":{"input_mtok":1}},{"constraint":{"start_date":"2026-02-01"},"prices":{"input_mtok":2}},{"constraint":{"start_date":"2026-01-01"},"prices":{"input_mtok":3}}]',
    ],
    [
      'PERIODS_UNCLEAR',
      '[{"prices":{"input_mtok":1}},{"constraint":{"start_date":"2026-02-30"},"prices":{"input_mtok":2}}]',
    ],
    [
      'PERIODS_UNCLEAR',
      `[${Array.from({ length: 65 }, (_, n) => `{"constraint":{"start_date":"${2000 + n}-01-01"},"prices":{"input_mtok":1}}`).join(',')}]`,
    ],
    [
      'PRICE_INVALID',
      `{"input_mtok":{"base":1,"tiers":[${Array.from({ length: 17 }, (_, n) => `{"start":${n},"price":1}`).join(',')}]}}`,
    ],
    ['output_citation_mtok', '{"output_citation_mtok":2}'],
  ])('leaves out a model of genai-prices as %s: %s', (reason, prices) => {
    const list = `[{"id":"a","models":[{"id":"m","match":{"equals":"m"},"prices":{"input_mtok":1}},{"id":"bad","match":{"equals":"bad"},"prices":${prices}}]}]`;
    const made = importPrices(Buffer.from(list), { asOf: AS_OF });
    expect(made.prices.size).toBe(1);
    expect(made.leftOut).toEqual([{ what: 'model', reason, count: 1, example: 'bad' }]);
  });

  it('gives a tier of a part without a price below it that of its whole', () => {
    const list =
      '{"m":{"litellm_provider":"a","input_cost_per_token":2,"input_cost_per_token_above_100k_tokens":3,"cache_read_input_token_cost_above_200k_tokens":1}}';
    expect(imported(list).find({ model: 'm' }).prices).toContainEqual({
      unit: 'tokens.input.cache_read',
      usd: '2',
      tiers: [
        { above: 100_000, usd: '3' },
        { above: 200_000, usd: '1' },
      ],
    });
  });

  it('keeps 1,000 other names of a model', () => {
    const names = Array.from({ length: 1_001 }, (_, n) => `{"equals":"n-${n}"}`).join(',');
    const list = `[{"id":"a","models":[{"id":"m","match":{"or":[${names}]},"prices":{"input_mtok":1}}]}]`;
    const { prices, leftOut } = importPrices(Buffer.from(list), { asOf: AS_OF });
    expect(prices.entry({ model: 'm' }).aliases).toHaveLength(1_000);
    expect(leftOut).toEqual([{ what: 'pattern', reason: 'TOO_MANY', count: 1, example: 'm' }]);
  });

  it('leaves each name to one model of a provider', () => {
    const list =
      '[{"id":"a","models":[{"id":"m","match":{"or":[{"equals":"n"},{"starts_with":"x"}]},"prices":{"input_mtok":1}},{"id":"n","match":{"or":[{"equals":"m"},{"starts_with":"x"}]},"prices":{"input_mtok":2}},{"id":"m","match":{"equals":"m"},"prices":{"input_mtok":3}}]}]';
    const { prices, leftOut } = importPrices(Buffer.from(list), { asOf: AS_OF });
    expect(prices.find({ model: 'n' }).model).toBe('n');
    expect(prices.find({ model: 'xy' }).model).toBe('m');
    expect(leftOut).toEqual([{ what: 'model', reason: 'NAME_REPEATED', count: 1, example: 'm' }]);
  });

  it.each<[string, string]>([
    ['nothing', ''],
    ['no list', '{}'],
    ['another form', '{"m":{"price":1}}'],
    ['a member twice', '{"m":{"litellm_provider":"a","input_cost_per_token":1,"input_cost_per_token":2}}'],
    ['NaN', '{"m":{"litellm_provider":"a","input_cost_per_token":NaN}}'],
    ['no price', '{"m":{"litellm_provider":"a"}}'],
    ['deep nesting', `${'['.repeat(100)}${']'.repeat(100)}`],
  ])('refuses a list with %s', (_, list) => {
    expect(codeThrown(() => imported(list))).toBe('PRICES_INVALID');
  });

  it('refuses a list that is not what it is said to be, and malformed options', () => {
    const of = (options: object) => () => importPrices(Buffer.from(LITELLM), { asOf: AS_OF, ...options });
    expect(codeThrown(of({ from: 'genai-prices' }))).toBe('PRICES_INVALID');
    expect(of({ from: 'other' })).toThrow(RangeError);
    expect(of({ asOf: 'today' })).toThrow(RangeError);
    expect(of({ models: 'm' })).toThrow(TypeError);
    expect(of({ models: [1] })).toThrow(TypeError);
  });

  it('tells at most 200 kinds of prices apart', () => {
    const members = Array.from({ length: 1_000 }, (_, n) => `"cost_${n}":1`).join(',');
    const list = `{"m":{"litellm_provider":"a","input_cost_per_token":1,${members}}}`;
    const { leftOut } = importPrices(Buffer.from(list), { asOf: AS_OF });
    expect(leftOut.length).toBeLessThanOrEqual(201);
    expect(leftOut.reduce((sum, { count }) => sum + count, 0)).toBe(1_000);
  });
});
