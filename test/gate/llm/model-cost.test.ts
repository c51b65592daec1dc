/** What is reserved for a call is never less than what it costs, to the last digit. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatQuantity, type Quantity, toRational } from '../../../src/base/value/quantity.js';
import { compareRationals } from '../../../src/base/value/rational.js';
import { chargedCall, mostOf } from '../../../src/gate/llm/model-cost.js';
import type { ModelRequest } from '../../../src/gate/llm/model-api.js';
import { AnswerReader } from '../../../src/gate/llm/read-answer.js';
import { costOf, worstCaseOf } from '../../../src/gate/price/cost.js';
import { times } from '../../slow.js';
import { imported } from '../samples.js';
import { callOf, CHAT, MESSAGES, REQUEST_TOKENS, RESPONSES, user } from './support.js';

const prices = imported(`{
  "gpt-4o": {
    "litellm_provider": "openai", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05,
    "cache_read_input_token_cost": 1.25e-06
  },
  "gpt-4o-dear": { "litellm_provider": "openai", "input_cost_per_token": 1e-05, "output_cost_per_token": 3e-05 },
  "claude-sonnet-4-5": {
    "litellm_provider": "anthropic", "input_cost_per_token": 3e-06, "output_cost_per_token": 1.5e-05,
    "cache_read_input_token_cost": 3e-07, "cache_creation_input_token_cost": 3.75e-06,
    "cache_creation_input_token_cost_above_1hr": 6e-06
  },
  "dall-e-2": { "litellm_provider": "openai", "mode": "image_generation", "output_cost_per_image": 0.02 },
  "gpt-image-1": { "litellm_provider": "openai", "input_cost_per_token": 1e-05, "output_cost_per_token": 4e-05 }
}`);

const priceOf = ({ model, provider }: ModelRequest) => prices.find({ model, provider });
const reserved = (request: ModelRequest, maxOutput = 100): Quantity =>
  worstCaseOf(priceOf(request), mostOf(priceOf(request), request, maxOutput));
const usd = (amount: Quantity): string => formatQuantity(amount);

function answer(request: ModelRequest, value: unknown) {
  const reader = new AnswerReader(request, 200, 'application/json');
  reader.push(Buffer.from(JSON.stringify(value)));
  return reader.end();
}

describe('a reservation', () => {
  it('is of every byte and every token that may be made', () => {
    const body = { model: 'gpt-4o', messages: [user('hi')], max_tokens: 10, n: 2 };
    const request = callOf(CHAT, body);
    const inputBytes = Buffer.byteLength(JSON.stringify(body)) + REQUEST_TOKENS;
    expect(mostOf(priceOf(request), request, 0)).toEqual({
      inputBytes,
      maxOutput: 20,
      images: 0,
      webSearches: 0,
    });
    // 84 bytes and 64 more at 0.0000025, 20 at 0.00001.
    expect([inputBytes, usd(reserved(request))]).toEqual([148, '0.00057']);
  });

  it('is of images where they have a price', () => {
    const request = callOf('/v1/images/generations', { model: 'dall-e-2', prompt: 'x', n: 3 });
    expect(usd(reserved(request))).toBe('0.06');
  });

  it('is of the limit that is put into the request, where it has none', () => {
    const request = callOf(CHAT, { model: 'gpt-4o', messages: [] });
    expect(mostOf(priceOf(request), request, 77).maxOutput).toBe(77);
  });

  it('is of tokens for images that are priced so', () => {
    const request = callOf('/v1/images/generations', { model: 'gpt-image-1', prompt: 'x', n: 2 });
    expect(mostOf(priceOf(request), request, 0)).toMatchObject({ images: 0, maxOutput: 12_480 });
  });

  /** Tokens are bytes of the text alone: no tokenizer makes more. */
  const textOf = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('\ufdfa', '\u00e9', '"\\\n', ''),
  );
  const conversation = fc.array(fc.tuple(fc.constantFrom('user', 'assistant', 'system'), textOf), {
    maxLength: 6,
  });
  const cost = (text: string): number => Buffer.byteLength(text.normalize('NFKC'));
  /** What a template adds: 4 tokens a message, 3 for the answer. */
  const promptTokens = (turns: readonly (readonly [string, string])[]): number =>
    turns.reduce((sum, [, text]) => sum + cost(text) + 4, 3);
  const hasPair = (text: string): boolean => !/\p{Surrogate}/u.test(text);

  it('is never below what a provider charges that makes a token of each byte', () => {
    fc.assert(
      fc.property(
        conversation,
        fc.integer({ min: 1, max: 3 }),
        fc.integer({ min: 1, max: 1_000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        fc.constantFrom(CHAT, RESPONSES, MESSAGES),
        (turns, n, limit, share, path) => {
          fc.pre(turns.every(([, text]) => hasPair(text)));
          const list = turns.map(([role, content]) => ({ role, content }));
          const body =
            path === CHAT
              ? { model: 'gpt-4o', messages: list, n, max_completion_tokens: limit }
              : path === RESPONSES
                ? { model: 'gpt-4o', input: list, max_output_tokens: limit }
                : { model: 'claude-sonnet-4-5', messages: list, max_tokens: limit };
          const request = callOf(path, body);
          expect(request.unbounded).toEqual([]);
          const input = promptTokens(turns);
          const output = limit * (path === CHAT ? n : 1);
          const cached = Math.floor(input * share);
          const usage =
            path === CHAT
              ? {
                  prompt_tokens: input,
                  completion_tokens: output,
                  prompt_tokens_details: { cached_tokens: cached },
                }
              : path === RESPONSES
                ? {
                    input_tokens: input,
                    output_tokens: output,
                    input_tokens_details: { cached_tokens: cached },
                  }
                : {
                    input_tokens: input - cached,
                    output_tokens: output,
                    cache_creation_input_tokens: cached,
                    cache_creation: { ephemeral_1h_input_tokens: cached },
                  };
          const read = answer(request, { model: 'x', usage });
          const call = chargedCall(prices, request, read.usage ?? { input: 0, output: 0 });
          const charged = prices.charge(call).usd.amount;
          expect(prices.count(call)).toContainEqual({
            unit: 'tokens.input',
            amount: { t: 'int', v: String(input) },
          });
          expect(compareRationals(toRational(charged), toRational(reserved(request)))).not.toBe(1);
        },
      ),
      { numRuns: times(100, 10_000) },
    );
  });
});

describe('what is charged', () => {
  const usage = { input: 1_000, output: 100, cacheRead: 200 };

  it('is exact', () => {
    const request = callOf(CHAT, { model: 'gpt-4o', messages: [] });
    const { usd: amount } = prices.charge(chargedCall(prices, request, usage));
    // 800 × 0.0000025 + 200 × 0.00000125 + 100 × 0.00001
    expect(usd(amount.amount)).toBe('0.00325');
  });

  it.each([
    ['none', undefined, 'gpt-4o'],
    ['the same', 'gpt-4o', 'gpt-4o'],
    ['one without a price', 'gpt-4o-2024-08-06', 'gpt-4o'],
    ['a dearer one', 'gpt-4o-dear', 'gpt-4o-dear'],
    ['one with a name that none has', 'x'.repeat(300), 'gpt-4o'],
  ])('is of the model that was asked for, or a dearer one that answered: %s', (_name, answered, model) => {
    const request = callOf(CHAT, { model: 'gpt-4o', messages: [] });
    expect(chargedCall(prices, request, usage, { answered }).model).toBe(model);
  });

  it('is of the dearer one that was asked for, where a cheaper one answered', () => {
    const request = callOf(CHAT, { model: 'gpt-4o-dear', messages: [] });
    expect(chargedCall(prices, request, usage, { answered: 'gpt-4o' }).model).toBe('gpt-4o-dear');
  });

  it('is not without a price', () => {
    const request = callOf(CHAT, { model: 'gpt-unknown', messages: [] });
    expect(() => chargedCall(prices, request, usage)).toThrow(
      expect.objectContaining({ code: 'MODEL_UNKNOWN' }),
    );
    const cheap = callOf(CHAT, { model: 'gpt-4o', messages: [] });
    expect(() => costOf(priceOf(cheap), { input: 0, output: 0, webSearches: 1 })).toThrow(
      expect.objectContaining({ code: 'PRICE_UNKNOWN' }),
    );
  });
});
