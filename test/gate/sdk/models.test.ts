/** Guards of models reserve before a call and meter what the SDK states after it; what is not stated is charged. */

/* eslint-disable @typescript-eslint/require-await -- the SDKs that are imitated here are asynchronous */

import { describe, expect, it } from 'vitest';
import type { Event } from '../../agent/support.js';
import { leftOf, usedBy } from '../../agent/support.js';
import { guardModel as guardAiModel, type ModelGuardOptions } from '../../../src/gate/sdk/ai.js';
import { guardMiddleware } from '../../../src/gate/sdk/langchain.js';
import { guardModel as guardAgentModel } from '../../../src/gate/sdk/openai-agents.js';
import { NorthrootError } from '../../../src/base/error.js';
import { sha256Digest } from '../../../src/base/value/digest.js';
import { meters } from '../../../src/base/value/meter.js';
import type { CallPricing } from '../../../src/log/agent/model-usage.js';
import type { LiveLedger } from '../../../src/log/agent/live-ledger.js';
import { errorOf } from '../../writer/support.js';
import { model, pricesOf } from '../samples.js';
import { ToolMessage } from './fakes.js';
import { endsOf, executionsOf, openFor } from './kit.js';

/** What a fake model states: undefined for nothing. */
interface Stated {
  readonly input?: number;
  readonly output?: number;
  readonly cached?: number;
  readonly reasoning?: number;
}
interface Kit {
  readonly tool: string;
  /** Calls a model that answers so, once. */
  ask(ledger: LiveLedger, options: ModelGuardOptions, answer: () => Stated | undefined): Promise<unknown>;
  /** The model that answered, as it is recorded. */
  readonly modelId: string;
}

const aiUsage = (stated: Stated | undefined): object => ({
  inputTokens: { total: stated?.input, cacheRead: stated?.cached },
  outputTokens: { total: stated?.output, reasoning: stated?.reasoning },
});
const aiModel = (answer: () => Stated | undefined) => ({
  provider: 'openai.responses',
  modelId: 'm-1',
  async doGenerate(how: { abortSignal?: AbortSignal; prompt: string }): Promise<object> {
    expect(how.abortSignal).toBeInstanceOf(AbortSignal);
    const usage = aiUsage(answer());
    return { content: [{ type: 'text', text: 'hi' }], usage, response: { modelId: 'm-1-2026' } };
  },
  async doStream(_how: { abortSignal?: AbortSignal; prompt: string }): Promise<{ stream: ReadableStream }> {
    throw new Error('no stream');
  },
});

const KITS: Readonly<Record<string, Kit>> = {
  ai: {
    tool: 'llm.openai/m-1',
    modelId: 'm-1-2026',
    ask: async (ledger, options, answer) =>
      guardAiModel(ledger, aiModel(answer), options).doGenerate({ prompt: 'go' }),
  },
  'ai, before version 6': {
    tool: 'llm.openai/m-1',
    modelId: 'm-1',
    ask: async (ledger, options, answer) => {
      const doGenerate = async (_how: object): Promise<object> => {
        const { input, output, cached, reasoning } = answer() ?? {};
        return {
          usage: {
            inputTokens: input,
            outputTokens: output,
            cachedInputTokens: cached,
            reasoningTokens: reasoning,
          },
        };
      };
      return guardAiModel(ledger, { ...aiModel(answer), doGenerate }, options).doGenerate({});
    },
  },
  langchain: {
    tool: 'llm.openai/m-1',
    modelId: 'm-1-2026',
    ask: async (ledger, models, answer) => {
      const { wrapModelCall } = guardMiddleware(ledger, { ToolMessage, models });
      const model = { getLsParams: () => ({ ls_provider: 'openai', ls_model_name: 'm-1' }) };
      return wrapModelCall?.({ model, messages: ['go'] }, () => {
        const stated = answer();
        return {
          content: 'hi',
          response_metadata: { model_name: 'm-1-2026' },
          ...(stated && {
            usage_metadata: {
              input_tokens: stated.input,
              output_tokens: stated.output,
              input_token_details: { cache_read: stated.cached },
              output_token_details: { reasoning: stated.reasoning },
            },
          }),
        };
      });
    },
  },
  'openai-agents': {
    tool: 'llm.openai/m-1',
    modelId: 'm-1',
    ask: async (ledger, options, answer) =>
      guardAgentModel(ledger, 'openai/m-1', agentModel(answer), options).getResponse({ input: 'go' }),
  },
};

// The SDK makes 0 of what is not stated.
function agentUsage(stated: Stated | undefined): object {
  return {
    inputTokens: stated?.input ?? 0,
    outputTokens: stated?.output ?? 0,
    inputTokensDetails: stated?.cached === undefined ? [] : [{ cached_tokens: stated.cached }],
    outputTokensDetails: stated?.reasoning === undefined ? [] : [{ reasoning_tokens: stated.reasoning }],
  };
}
function agentModel(answer: () => Stated | undefined) {
  return {
    getResponse: async (_request: object): Promise<object> => ({ output: [], usage: agentUsage(answer()) }),
    async *getStreamedResponse(_request: object): AsyncGenerator<object> {
      yield { type: 'response_started' };
      yield { type: 'response_done', response: { output: [], usage: agentUsage(answer()) } };
    },
  };
}

const CAPS = { calls: 3, usd: '1', 'tokens.input': 10_000, 'tokens.output': 10_000 };
const RESERVE = { usd: '0.50', 'tokens.input': 1000, 'tokens.output': 1000 };

/** Without time, which depends on the machine. */
function amountsOf(event: Event | undefined): Record<string, string> {
  const { 'time.ms': ms, ...rest } = usedBy(event);
  expect(ms).toBeDefined();
  return rest;
}

describe.each(Object.entries(KITS))('%s', (_name, { tool, modelId, ask }) => {
  it('meters what is stated, prices it, and names the model', async () => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    const asked: object[] = [];
    const priceOf: ModelGuardOptions['priceOf'] = (usage) => {
      asked.push(usage);
      return { usd: '0.004' };
    };
    const stated = { input: 100, output: 7, cached: 10, reasoning: 2 };
    await ask(ledger, { reserve: RESERVE, priceOf }, () => stated);
    const numbers = { input: 100, output: 7, cacheRead: 10, reasoning: 2 };
    expect(asked).toEqual([{ model: modelId, provider: 'openai', ...numbers }]);
    const [execution] = executionsOf(place);
    expect(execution).toMatchObject({ model_id: modelId, provider: 'openai', meter_basis: 'estimated' });
    expect(amountsOf(execution)).toEqual({
      calls: '1',
      usd: '0.004',
      'tokens.input': '100',
      'tokens.input.cache_read': '10',
      'tokens.output': '7',
      'tokens.output.reasoning': '2',
    });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.996');
    expect(await place.verdict()).toBe('ok');
  });

  it.each([
    ['the options', true],
    ['the ledger', false],
  ])('prices by a price list of %s, and charges what it does not price', async (_where, isOption) => {
    const asked: object[] = [];
    const prices: CallPricing = {
      units: ['usd', 'tokens.input', 'tokens.output'],
      count: ({ input, output }) => meters({ 'tokens.input': input, 'tokens.output': output }),
      charge: (call) => {
        asked.push(call);
        if (asked.length > 1) throw new NorthrootError('MODEL_UNKNOWN', 'unknown');
        const [usd] = meters({ usd: '0.004' });
        return { usd: usd, provider: 'openai', pricingSnapshotDigest: sha256Digest(Buffer.from('prices')) };
      },
    };
    const { place, ledger } = await openFor(tool, CAPS, isOption ? {} : { prices });
    const options = { reserve: RESERVE, ...(isOption && { prices }), onMeterProblem: () => undefined };
    for (let count = 0; count < 2; count += 1) await ask(ledger, options, () => ({ input: 100, output: 7 }));
    expect(asked[0]).toMatchObject({ model: modelId, provider: 'openai', input: 100, output: 7 });
    const [priced, unpriced] = executionsOf(place).map(amountsOf);
    expect(priced).toMatchObject({ usd: '0.004', 'tokens.input': '100', 'tokens.output': '7' });
    expect(unpriced).toMatchObject({ usd: '0.5', 'tokens.input': '100' });
    expect(await place.verdict()).toBe('ok');
  });

  it('charges the reservation where nothing is stated', async () => {
    const { place, ledger } = await openFor(tool, CAPS);
    await ask(ledger, { reserve: RESERVE }, () => undefined);
    expect(amountsOf(executionsOf(place)[0])).toEqual({
      calls: '1',
      usd: '0.5',
      'tokens.input': '1000',
      'tokens.output': '1000',
    });
    expect(await place.verdict()).toBe('ok');
  });

  it('loses no answer where the price is not known: the reservation is charged', async () => {
    const { place, ledger } = await openFor(tool, CAPS);
    const problems: string[] = [];
    const priceOf = (): never => {
      throw new Error('unknown model');
    };
    const options = { reserve: RESERVE, priceOf, onMeterProblem: (text: string) => void problems.push(text) };
    expect(await ask(ledger, options, () => ({ input: 1, output: 1 }))).toBeDefined();
    expect(problems).toEqual([expect.stringContaining('unknown model')]);
    expect(amountsOf(executionsOf(place)[0])).toMatchObject({ usd: '0.5', 'tokens.input': '1' });
    expect(await place.verdict()).toBe('ok');
  });

  it('charges what is stated as no count', async () => {
    const { place, ledger } = await openFor(tool, CAPS);
    const problems: string[] = [];
    const options = { reserve: RESERVE, onMeterProblem: (text: string) => void problems.push(text) };
    await ask(ledger, options, () => ({ input: Number.NaN, output: -5 }));
    expect(problems).toHaveLength(2);
    expect(amountsOf(executionsOf(place)[0])).toMatchObject({
      'tokens.input': '1000',
      'tokens.output': '1000',
    });
    expect(await place.verdict()).toBe('ok');
  });

  it('calls no model that the grants deny', async () => {
    const { place, ledger } = await openFor(tool, { ...CAPS, calls: 1 });
    await ask(ledger, {}, () => ({ input: 1 }));
    let called = false;
    const denied = ask(ledger, {}, () => {
      called = true;
      return undefined;
    });
    expect(await errorOf(denied)).toMatchObject({ name: 'DeniedError', code: 'RESERVATION_OVER_CAP' });
    expect(called).toBe(false);
    expect(endsOf(place)).toEqual(['success', 'deny']);
    expect(await place.verdict()).toBe('ok');
  });

  it.each([
    ['a connection that breaks', Object.assign(new Error('cut'), { code: 'ECONNRESET' })],
    ['an answer that cannot be read', Object.assign(new Error('no JSON'), { statusCode: 200 })],
    ['any other error', new Error('connection error', { cause: { name: 'TypeError' } })],
  ])('charges, as what may have been used, %s', async (_what, thrown) => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    const failing = ask(ledger, { reserve: RESERVE }, () => {
      throw thrown;
    });
    expect(await errorOf(failing)).toBe(thrown);
    expect(endsOf(place)).toEqual(['unknown']);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
    expect(await place.verdict()).toBe('ok');
  });

  it.each([
    ['that is answered with a status of an error', { status: 429, code: 'RATE_LIMITED' }, 'RATE_LIMITED'],
    ['whose cause is such an answer', { cause: { statusCode: 503 } }, 'ERROR'],
    ['that found no connection', { cause: { code: 'ECONNREFUSED' } }, 'ERROR'],
    ['that was never sent', { name: 'AI_LoadAPIKeyError' }, 'ERROR'],
  ])('gives back what was reserved for a call %s', async (_what, members, code) => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    const thrown = Object.assign(new Error('no'), members);
    const failing = ask(ledger, { reserve: RESERVE }, () => {
      throw thrown;
    });
    expect(await errorOf(failing)).toBe(thrown);
    expect(endsOf(place)).toEqual([`failure ${code}`]);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('1');
    expect(await place.verdict()).toBe('ok');
  });
});

it('langchain: sound and what is cached for an hour have their own prices', async () => {
  const { place, ledger } = await openFor('llm.openai/m-1', { usd: '1' });
  const list = pricesOf(
    model({
      provider: 'openai',
      periods: [
        {
          prices: [
            { unit: 'tokens.input', usd: '0.000001' },
            { unit: 'tokens.input.cache_creation', usd: '0.000002' },
            { unit: 'tokens.input.cache_creation.1h', usd: '0.00001' },
            { unit: 'tokens.input.audio', usd: '0.0001' },
            { unit: 'tokens.output', usd: '0.000001' },
            { unit: 'tokens.output.audio', usd: '0.001' },
          ],
        },
      ],
    }),
  );
  const { wrapModelCall } = guardMiddleware(ledger, { ToolMessage, models: { prices: list } });
  const llm = { getLsParams: () => ({ ls_provider: 'openai', ls_model_name: 'm-1' }) };
  const usage = {
    input_tokens: 100,
    output_tokens: 10,
    input_token_details: { audio: 50, cache_creation: 20, ephemeral_1h_input_tokens: 10 },
    output_token_details: { audio: 4 },
  };
  await wrapModelCall?.({ model: llm, messages: ['go'] }, () => ({ content: 'hi', usage_metadata: usage }));
  // 30 and 10 and 10 of input, 50 of sound; 6 of output and 4 of sound.
  expect(usedBy(executionsOf(place)[0])['usd']).toBe('0.009156');
  expect(await place.verdict()).toBe('ok');
});

/** How a stream is made: of pieces, each a number of text or what ends it. */
interface StreamKit {
  /** Begins a stream; its pieces of text, and how to leave it. */
  begin(
    ledger: LiveLedger,
    how: {
      readonly fails?: boolean;
      readonly signal?: AbortSignal;
      readonly endless?: boolean;
      /** Thrown before the first piece. */
      readonly thrown?: Error;
    },
  ): AsyncIterator<unknown>;
}

const STREAMED = { reserve: { usd: '0.50' } };
const STREAM_KITS: Readonly<Record<string, StreamKit>> = {
  ai: {
    begin: (ledger, { fails = false, signal, endless = false, thrown }) => {
      const doStream = async (_how: { abortSignal?: AbortSignal; prompt: string }) => {
        if (thrown !== undefined) throw thrown;
        const stream = new ReadableStream<object>({
          start: (controller) => {
            controller.enqueue({ type: 'response-metadata', modelId: 'm-1-2026' });
            controller.enqueue({ type: 'text-delta', delta: 'a' });
          },
          pull: (controller) => {
            if (endless) return controller.enqueue({ type: 'text-delta', delta: 'b' });
            if (fails) return controller.error(Object.assign(new Error('cut'), { code: 'ECONNRESET' }));
            controller.enqueue({ type: 'finish', usage: aiUsage({ input: 5, output: 2 }) });
            controller.close();
          },
        });
        return { stream, request: { body: 1 } };
      };
      const model = guardAiModel(ledger, { ...aiModel(() => undefined), doStream }, STREAMED);
      return (async function* () {
        const { stream, request } = await model.doStream({ prompt: 'go', abortSignal: signal as never });
        expect(request).toEqual({ body: 1 });
        yield* stream as unknown as AsyncIterable<unknown>;
      })();
    },
  },
  'openai-agents': {
    begin: (ledger, { fails = false, signal, endless = false, thrown }) => {
      const getStreamedResponse = async function* (_request: object): AsyncGenerator<object> {
        if (thrown !== undefined) throw thrown;
        yield { type: 'response_started' };
        yield { type: 'output_text_delta', delta: 'a' };
        while (endless) yield { type: 'output_text_delta', delta: 'b' };
        if (fails) throw Object.assign(new Error('cut'), { code: 'ECONNRESET' });
        const usage = agentUsage({ input: 5, output: 2 });
        yield { type: 'response_done', response: { usage } };
      };
      const model = { ...agentModel(() => undefined), getStreamedResponse };
      const guarded = guardAgentModel(ledger, 'openai/m-1', model, STREAMED);
      const pieces = guarded.getStreamedResponse({ input: 'go', signal });
      return pieces[Symbol.asyncIterator]();
    },
  },
};

describe.each(Object.entries(STREAM_KITS))('%s, a stream', (_name, { begin }) => {
  const tool = 'llm.openai/m-1';
  const read = async (stream: AsyncIterator<unknown>): Promise<number> => {
    let count = 0;
    for (;;) {
      const { done } = await stream.next();
      if (done === true) return count;
      count += 1;
    }
  };

  it('that ends is a success with what it stated', async () => {
    const { place, ledger } = await openFor(tool, CAPS);
    expect(await read(begin(ledger, {}))).toBe(3);
    expect(endsOf(place)).toEqual(['success']);
    expect(amountsOf(executionsOf(place)[0])).toMatchObject({ 'tokens.input': '5', usd: '0.5' });
    expect(await place.verdict()).toBe('ok');
  });

  it('that breaks is unknown and charged, and the reader is told', async () => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    expect(await errorOf(read(begin(ledger, { fails: true })))).toMatchObject({ code: 'ECONNRESET' });
    expect(endsOf(place)).toEqual(['unknown']);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
    expect(await place.verdict()).toBe('ok');
  });

  it.each([
    ['breaks is unknown and charged', {}, 'unknown', '0.5'],
    ['is refused gives back what was reserved', { status: 429 }, 'failure ERROR', '1'],
  ])('that, before its first piece, %s', async (_what, members, end, left) => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    const thrown = Object.assign(new Error('no'), members);
    expect(await errorOf(read(begin(ledger, { thrown })))).toBe(thrown);
    expect(endsOf(place)).toEqual([end]);
    expect(await leftOf(ledger, grantId, 'usd')).toBe(left);
    expect(await place.verdict()).toBe('ok');
  });

  it('that is left is unknown and charged', async () => {
    const { place, ledger, grantId } = await openFor(tool, CAPS);
    const stream = begin(ledger, { endless: true });
    await stream.next();
    await stream.next();
    await stream.return?.();
    expect(endsOf(place)).toEqual(['unknown']);
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0.5');
    expect(await place.verdict()).toBe('ok');
  });

  it('that is aborted is unknown and charged', async () => {
    const { place, ledger } = await openFor(tool, CAPS);
    const controller = new AbortController();
    const stream = begin(ledger, { endless: true, signal: controller.signal });
    await stream.next();
    const reason = new Error('enough');
    controller.abort(reason);
    expect(await errorOf(read(stream))).toBe(reason);
    expect(endsOf(place)).toEqual(['unknown']);
    expect(amountsOf(executionsOf(place)[0])).toMatchObject({ usd: '0.5' });
  });

  it('that the grants deny does not begin', async () => {
    const { place, ledger } = await openFor('other', CAPS);
    expect(await errorOf(read(begin(ledger, {})))).toMatchObject({ code: 'TOOL_NOT_ALLOWED' });
    expect(endsOf(place)).toEqual(['deny']);
  });
});

it('ai: a stream with an error for a piece is unknown, and ends for its reader as it did', async () => {
  const { place, ledger } = await openFor('llm.openai/m-1', CAPS);
  const parts = [
    { type: 'error', error: new Error('overloaded') },
    { type: 'finish', usage: aiUsage({}) },
  ];
  const doStream = async (_how: object) => ({ stream: ReadableStream.from(parts) });
  const model = guardAiModel(ledger, { ...aiModel(() => undefined), doStream }, STREAMED);
  const { stream } = await model.doStream({});
  const seen: object[] = [];
  for await (const part of stream as unknown as AsyncIterable<object>) seen.push(part);
  expect(seen).toEqual(parts);
  expect(endsOf(place)).toEqual(['unknown']);
  expect(amountsOf(executionsOf(place)[0])).toMatchObject({ usd: '0.5' });
  expect(await place.verdict()).toBe('ok');
});

it('ai: a stream that is cancelled while its model is silent ends at once', async () => {
  const { place, ledger } = await openFor('llm.openai/m-1', CAPS);
  let signal: AbortSignal | undefined;
  const doStream = async (how: { readonly abortSignal?: AbortSignal }) => {
    signal = how.abortSignal;
    return { stream: new ReadableStream({ start: (each) => each.enqueue({ type: 'text-delta' }) }) };
  };
  const guarded = guardAiModel(ledger, { ...aiModel(() => undefined), doStream }, STREAMED);
  const { stream } = await guarded.doStream({});
  const reader = stream.getReader();
  await reader.read();
  const waiting = reader.read();
  // The next piece is asked for by then.
  await new Promise((resolve) => setImmediate(resolve));
  await reader.cancel();
  expect(await waiting).toMatchObject({ done: true });
  expect(signal?.aborted).toBe(true);
  expect(endsOf(place)).toEqual(['unknown']);
  expect(amountsOf(executionsOf(place)[0])).toMatchObject({ usd: '0.5' });
  expect(await place.verdict()).toBe('ok');
});

it('a model stays what it was but for its calls, private members included', async () => {
  const { ledger } = await openFor('llm.openai/m-1', CAPS);
  class Model {
    readonly #urls = { 'image/*': [] };
    readonly provider = 'openai.chat';
    readonly modelId = 'm-1';
    get supportedUrls(): object {
      return this.#urls;
    }
    urls(): object {
      return this.#urls;
    }
    doGenerate(): Promise<object> {
      return Promise.resolve({});
    }
    doStream(): Promise<object> {
      return Promise.resolve({});
    }
  }
  const model = guardAiModel(ledger, new Model());
  expect(model.supportedUrls).toEqual({ 'image/*': [] });
  expect(model.urls()).toEqual({ 'image/*': [] });
  expect(model).toBeInstanceOf(Model);
  expect(() => guardAiModel(ledger, 'openai/m-1' as never)).toThrow(TypeError);
});
