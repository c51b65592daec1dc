/** What answers used: read from their bytes as they pass, equal to what their providers state. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelAnswer, ModelRequest } from '../../../src/gate/llm/model-api.js';
import { AnswerReader } from '../../../src/gate/llm/read-answer.js';
import { times } from '../../slow.js';
import { callOf, CHAT, MESSAGES, RESPONSES, user } from './support.js';

const JSON_TYPE = 'application/json';
const EVENTS = 'text/event-stream; charset=utf-8';

const CHAT_CALL = callOf(CHAT, { model: 'gpt-4o', messages: [user('hi')], max_tokens: 50, stream: true });
const REASONING_CALL = callOf(CHAT, { model: 'gpt-5', messages: [user('hi')], max_completion_tokens: 50 });
const RESPONSES_CALL = callOf(RESPONSES, { model: 'gpt-5', input: 'hi', max_output_tokens: 50 });
const MESSAGES_CALL = callOf(MESSAGES, {
  model: 'claude-sonnet-4-5',
  messages: [user('hi')],
  max_tokens: 50,
});
const EMBEDDINGS_CALL = callOf('/v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' });
const COMPLETIONS_CALL = callOf('/v1/completions', {
  model: 'davinci-002',
  prompt: 'hi',
  max_tokens: 5,
  n: 2,
});
const IMAGES_CALL = callOf('/v1/images/generations', { model: 'gpt-image-1', prompt: 'x', n: 2 });
const SPEECH_CALL = callOf('/v1/audio/speech', { model: 'tts-1', input: 'x' });

interface Given {
  readonly type?: string;
  readonly status?: number;
  readonly sizes?: readonly number[];
  readonly isBroken?: boolean;
}

function read(request: ModelRequest, text: string, given: Given = {}): ModelAnswer {
  const {
    type = text.startsWith('{') ? JSON_TYPE : EVENTS,
    status = 200,
    sizes = [],
    isBroken = false,
  } = given;
  const fast = readBy(new AnswerReader(request, status, type), text, sizes, isBroken);
  expect(readBy(new AnswerReader(request, status, type, false), text, sizes, isBroken)).toEqual(fast);
  return fast;
}

function readBy(
  reader: AnswerReader,
  text: string,
  sizes: readonly number[],
  isBroken: boolean,
): ModelAnswer {
  const bytes = Buffer.from(text);
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[n % sizes.length] ?? 1);
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    reader.push(chunk);
    chunk.fill(0x0a);
    at += size;
  }
  return reader.end(isBroken);
}

/** Events as OpenAI's chat completions have them. */
const data = (...values: readonly unknown[]): string =>
  values.map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}\n\n`).join('');
/** Events with their type in both places. */
const events = (
  ...values: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[]
): string => values.map((each) => `event: ${each.type}\ndata: ${JSON.stringify(each)}\n\n`).join('');

const chunk = (delta: object, more: object = {}): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  model: 'gpt-4o-2024-08-06',
  choices: [{ index: 0, delta, finish_reason: null }],
  usage: null,
  ...more,
});
const CHAT_USAGE = {
  prompt_tokens: 19,
  completion_tokens: 10,
  total_tokens: 29,
  prompt_tokens_details: { cached_tokens: 4, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 3, accepted_prediction_tokens: 0 },
};
const CHAT_READ = { input: 19, output: 10, cacheRead: 4, inputAudio: 0, reasoning: 3 };
const FINISHED = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] };
const CHAT_STREAM = data(
  chunk({ role: 'assistant', content: '' }),
  chunk({ content: 'H\u00e9llo' }),
  chunk({}, FINISHED),
  chunk({}, { choices: [], usage: CHAT_USAGE }),
  '[DONE]',
);

const RESPONSES_USAGE = {
  input_tokens: 37,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 11,
  output_tokens_details: { reasoning_tokens: 5 },
  total_tokens: 48,
};
const RESPONSES_READ = { input: 37, output: 11, cacheRead: 3, reasoning: 5 };
const response = (more: object): object => ({
  id: 'resp_1',
  object: 'response',
  model: 'gpt-5-2025-08-07',
  ...more,
});
const RESPONSES_STREAM = (more: object = {}, type = 'response.completed'): string =>
  events(
    { type: 'response.created', response: response({ status: 'in_progress', usage: null }) },
    { type: 'response.output_item.added', item: { type: 'reasoning' } },
    { type: 'response.output_item.added', item: { type: 'message' } },
    { type: 'response.output_text.delta', delta: 'Hi' },
    {
      type,
      response: response({
        status: type.slice(9),
        usage: RESPONSES_USAGE,
        output: [{ type: 'message' }],
        ...more,
      }),
    },
  );

const MESSAGE_USAGE = { input_tokens: 25, cache_read_input_tokens: 7, cache_creation_input_tokens: 0 };
const message = (more: object = {}): object => ({
  id: 'msg_1',
  type: 'message',
  model: 'claude-sonnet-4-5-20250929',
  content: [],
  usage: { ...MESSAGE_USAGE, output_tokens: 1, service_tier: 'standard' },
  ...more,
});
const START = { type: 'message_start', message: message() };
const BLOCK = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } };
const TEXT = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello!' } };
const DELTA = { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } };
const STOP = { type: 'message_stop' };
const MESSAGES_READ = { input: 32, output: 15, cacheRead: 7, cacheWrite: 0 };

const SUCCESS = { outcome: 'success', isComplete: true, errorCode: undefined, problems: [] };

describe('whole answers', () => {
  it.each<[string, ModelRequest, string, Partial<ModelAnswer>]>([
    [
      'chat',
      CHAT_CALL,
      JSON.stringify({
        model: 'gpt-4o-2024-08-06',
        choices: [{ message: { content: 'Hi' } }],
        usage: CHAT_USAGE,
        service_tier: 'default',
      }),
      { usage: CHAT_READ, model: 'gpt-4o-2024-08-06' },
    ],
    [
      'a stream of chat',
      CHAT_CALL,
      CHAT_STREAM,
      { usage: CHAT_READ, model: 'gpt-4o-2024-08-06', outputBytes: 6 },
    ],
    [
      'a stream of chat with usage in its last chunk and no [DONE]',
      CHAT_CALL,
      data(chunk({ content: 'Hi' }), chunk({}, { ...FINISHED, usage: CHAT_USAGE })),
      { usage: CHAT_READ },
    ],
    [
      'a stream of chat with calls of tools',
      CHAT_CALL,
      data(
        chunk({
          tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '' } }],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"a":1}' } }] }),
        chunk({}, { ...FINISHED, usage: CHAT_USAGE }),
        '[DONE]',
      ),
      { usage: CHAT_READ, outputBytes: 8 },
    ],
    [
      'completions',
      COMPLETIONS_CALL,
      data(
        { choices: [{ index: 0, text: 'a', finish_reason: 'stop' }] },
        {
          choices: [{ index: 1, text: 'b', finish_reason: 'length' }],
          usage: { prompt_tokens: 1, completion_tokens: 2 },
        },
      ),
      { usage: { input: 1, output: 2 }, outputBytes: 2 },
    ],
    [
      'embeddings',
      EMBEDDINGS_CALL,
      JSON.stringify({
        object: 'list',
        data: [{ embedding: [0.1] }],
        model: 'text-embedding-3-small',
        usage: { prompt_tokens: 8, total_tokens: 8 },
      }),
      { usage: { input: 8, output: 0 } },
    ],
    [
      'responses',
      RESPONSES_CALL,
      JSON.stringify(
        response({
          status: 'completed',
          output: [{ type: 'reasoning' }, { type: 'message', content: [] }],
          usage: RESPONSES_USAGE,
          error: null,
        }),
      ),
      { usage: RESPONSES_READ, model: 'gpt-5-2025-08-07' },
    ],
    ['a stream of responses', RESPONSES_CALL, RESPONSES_STREAM(), { usage: RESPONSES_READ, outputBytes: 2 }],
    [
      'incomplete responses',
      RESPONSES_CALL,
      RESPONSES_STREAM({}, 'response.incomplete'),
      { usage: RESPONSES_READ },
    ],
    [
      'responses with searches',
      RESPONSES_CALL,
      RESPONSES_STREAM({
        output: [{ type: 'web_search_call' }, { type: 'web_search_call' }, { type: 'message' }],
      }),
      { usage: { ...RESPONSES_READ, webSearches: 2 } },
    ],
    [
      'responses with searches, as charged',
      RESPONSES_CALL,
      RESPONSES_STREAM({
        output: [{ type: 'web_search_call' }, { type: 'web_search_call' }, { type: 'message' }],
        tool_usage: { image_gen: { total_tokens: 0 }, web_search: { num_requests: 1 } },
      }),
      { usage: { ...RESPONSES_READ, webSearches: 1 } },
    ],
    [
      'responses with searches, as charged, in one piece',
      RESPONSES_CALL,
      JSON.stringify(
        response({
          status: 'completed',
          tool_usage: { web_search: { num_requests: 3 } },
          output: [{ type: 'web_search_call' }],
          usage: RESPONSES_USAGE,
        }),
      ),
      { usage: { ...RESPONSES_READ, webSearches: 3 } },
    ],
    [
      'messages',
      MESSAGES_CALL,
      JSON.stringify(
        message({ content: [{ type: 'text', text: 'Hi' }], usage: { ...MESSAGE_USAGE, output_tokens: 15 } }),
      ),
      { usage: MESSAGES_READ, model: 'claude-sonnet-4-5-20250929' },
    ],
    [
      'a stream of messages',
      MESSAGES_CALL,
      events(START, BLOCK, { type: 'ping' }, TEXT, DELTA, STOP),
      { usage: MESSAGES_READ, outputBytes: 6, model: 'claude-sonnet-4-5-20250929' },
    ],
    [
      'a stream of messages with searches, whose usage grows',
      MESSAGES_CALL,
      events(
        START,
        DELTA,
        {
          ...DELTA,
          usage: {
            input_tokens: 100,
            output_tokens: 20,
            cache_read_input_tokens: 7,
            server_tool_use: { web_search_requests: 2 },
          },
        },
        STOP,
      ),
      { usage: { input: 107, output: 20, cacheRead: 7, cacheWrite: 0, webSearches: 2 } },
    ],
    [
      'images by token',
      IMAGES_CALL,
      JSON.stringify({
        data: [{ b64_json: 'x' }],
        usage: {
          input_tokens: 50,
          output_tokens: 4_160,
          total_tokens: 4_210,
          input_tokens_details: { text_tokens: 10, image_tokens: 40 },
        },
      }),
      { usage: { input: 50, output: 4_160, inputImage: 40, outputImage: 4_160 } },
    ],
    [
      'images',
      IMAGES_CALL,
      JSON.stringify({ created: 1, data: [{ url: 'x' }, { url: 'y' }] }),
      { usage: { input: 0, output: 0, images: 2 } },
    ],
    [
      'a transcription',
      callOf('/v1/audio/speech', { model: 'm', input: 'x' }),
      JSON.stringify({
        text: 'x',
        usage: {
          type: 'tokens',
          input_tokens: 14,
          output_tokens: 45,
          input_token_details: { text_tokens: 10, audio_tokens: 4 },
        },
      }),
      { usage: { input: 14, output: 45, inputAudio: 4 } },
    ],
  ])('%s', (_name, request, text, expected) => {
    const whole = read(request, text);
    expect(whole).toMatchObject({ ...SUCCESS, ...expected });
    expect(whole.usage).toEqual(expected.usage);
    expect(whole.estimate).toBeUndefined();
    for (const sizes of [[1], [2, 3], [7, 1, 30]]) expect(read(request, text, { sizes })).toEqual(whole);
  });

  it('are read by their own content type, whatever was asked for', () => {
    expect(read(RESPONSES_CALL, RESPONSES_STREAM(), { type: 'text/event-stream' }).usage).toEqual(
      RESPONSES_READ,
    );
    expect(
      read(CHAT_CALL, JSON.stringify({ choices: [], usage: CHAT_USAGE }), {
        type: 'application/problem+json',
      }).usage,
    ).toEqual(CHAT_READ);
  });

  it('are the same in any chunks', () => {
    const scripts: [ModelRequest, string][] = [
      [CHAT_CALL, CHAT_STREAM],
      [RESPONSES_CALL, RESPONSES_STREAM()],
      [MESSAGES_CALL, events(START, BLOCK, TEXT, DELTA, STOP)],
      [CHAT_CALL, JSON.stringify({ model: 'm', choices: [{ text: '\\"\u00e9' }], usage: CHAT_USAGE })],
    ];
    fc.assert(
      fc.property(
        fc.constantFrom(...scripts),
        fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1, maxLength: 8 }),
        ([request, text], sizes) => {
          expect(read(request, text, { sizes })).toEqual(read(request, text));
        },
      ),
      { numRuns: times(100, 5_000) },
    );
  });
});

describe('answers that are errors', () => {
  const error = (more: object): string => JSON.stringify({ error: { message: 'sk-secret', ...more } });
  it.each<[string, ModelRequest, string, Given, string]>([
    [
      '429',
      CHAT_CALL,
      error({ type: 'tokens', code: 'rate_limit_exceeded' }),
      { status: 429 },
      'RATE_LIMIT_EXCEEDED',
    ],
    [
      '400',
      CHAT_CALL,
      error({ type: 'invalid_request_error', code: null }),
      { status: 400 },
      'INVALID_REQUEST_ERROR',
    ],
    [
      '529',
      MESSAGES_CALL,
      JSON.stringify({ type: 'error', error: { type: 'overloaded_error' } }),
      { status: 529 },
      'OVERLOADED_ERROR',
    ],
    ['a code of its own', CHAT_CALL, error({ code: 'sk-secret' }), { status: 500 }, 'MODEL_ERROR'],
    ['no JSON', CHAT_CALL, 'Bad gateway', { status: 502, type: 'text/html' }, 'HTTP_502'],
    ['nothing', CHAT_CALL, '', { status: 503, type: JSON_TYPE }, 'HTTP_503'],
    ['an error with status 200', CHAT_CALL, error({ code: 'server_error' }), {}, 'SERVER_ERROR'],
    [
      'an error in a stream of chat',
      CHAT_CALL,
      data(chunk({ content: 'x' }), { error: { type: 'server_error' } }),
      {},
      'SERVER_ERROR',
    ],
    ['an event of type error', CHAT_CALL, 'event: error\ndata: {"code":"x"}\n\n', {}, 'MODEL_ERROR'],
    [
      'an error in a stream of responses',
      RESPONSES_CALL,
      events({ type: 'error', code: 'server_error' }),
      {},
      'SERVER_ERROR',
    ],
    [
      'a failed response',
      RESPONSES_CALL,
      RESPONSES_STREAM({ error: { code: 'rate_limit_exceeded' } }, 'response.failed'),
      {},
      'RATE_LIMIT_EXCEEDED',
    ],
    [
      'a failed response without an error',
      RESPONSES_CALL,
      JSON.stringify(response({ status: 'failed', error: null })),
      {},
      'MODEL_ERROR',
    ],
    [
      'a cancelled response',
      RESPONSES_CALL,
      JSON.stringify(response({ status: 'cancelled' })),
      {},
      'CANCELLED',
    ],
    [
      'an error in a stream of messages',
      MESSAGES_CALL,
      events(START, TEXT, { type: 'error', error: { type: 'overloaded_error', message: 'x' } }),
      {},
      'OVERLOADED_ERROR',
    ],
  ])('%s', (_name, request, text, given, errorCode) => {
    const answer = read(request, text, given);
    expect(answer).toMatchObject({ outcome: 'failure', errorCode });
    expect(JSON.stringify(answer)).not.toContain('secret');
    if ((given.status ?? 200) >= 400) expect(answer.usage ?? answer.estimate).toBeUndefined();
  });

  it('keep the usage that they state', () => {
    expect(read(RESPONSES_CALL, RESPONSES_STREAM({ error: {} }, 'response.failed')).usage).toEqual(
      RESPONSES_READ,
    );
  });
});

describe('answers that break off', () => {
  it.each<[string, ModelRequest, string, ModelAnswer['estimate']]>([
    ['chat', CHAT_CALL, data(chunk({ content: 'Hello' })), { input: CHAT_CALL.inputBytes, output: 5 }],
    [
      'chat, more than it may be',
      CHAT_CALL,
      data(chunk({ content: 'x'.repeat(80) })),
      { input: CHAT_CALL.inputBytes, output: 50 },
    ],
    [
      'chat that states usage as it grows',
      CHAT_CALL,
      data(chunk({ content: 'Hello' }, { usage: { prompt_tokens: 8, completion_tokens: 1 } })),
      { input: CHAT_CALL.inputBytes, output: 5 },
    ],
    ['chat before its first word', CHAT_CALL, data(chunk({ role: 'assistant', content: '' })), undefined],
    ['chat before anything', CHAT_CALL, '', undefined],
    ['chat that may have thought', REASONING_CALL, data(chunk({ content: 'Hello' })), undefined],
    [
      'responses that thought',
      RESPONSES_CALL,
      RESPONSES_STREAM().split('event: response.completed')[0] ?? '',
      undefined,
    ],
    [
      'responses that did not think',
      RESPONSES_CALL,
      events({ type: 'response.output_text.delta', delta: 'Hi' }),
      { input: RESPONSES_CALL.inputBytes, output: 2 },
    ],
    [
      'messages',
      MESSAGES_CALL,
      events(START, BLOCK, TEXT),
      { input: 32, output: 6, cacheRead: 7, cacheWrite: 0 },
    ],
    ['messages before their first word', MESSAGES_CALL, events(START, BLOCK), undefined],
    [
      'messages that thought',
      MESSAGES_CALL,
      events(START, { ...BLOCK, content_block: { type: 'thinking', thinking: '' } }, TEXT),
      undefined,
    ],
  ])('%s', (_name, request, text, estimate) => {
    const answer = read(request, text, { isBroken: true, type: EVENTS });
    expect(answer).toMatchObject({
      outcome: 'unknown',
      isComplete: false,
      usage: undefined,
      problems: ['USAGE_MISSING'],
    });
    expect(answer.estimate).toEqual(estimate);
  });

  it('are no estimate where one piece was expected', () => {
    const text = JSON.stringify({ model: 'm', choices: [{ message: { content: 'Hi' } }] });
    const answer = read(CHAT_CALL, text.slice(0, -1), { isBroken: true });
    expect(answer).toMatchObject({
      outcome: 'unknown',
      isComplete: false,
      usage: undefined,
      estimate: undefined,
    });
  });

  it('may have stated their usage before', () => {
    const more = { ...DELTA, usage: undefined };
    const answer = read(MESSAGES_CALL, events(START, TEXT, DELTA, more), { isBroken: true });
    expect(answer).toMatchObject({ outcome: 'unknown', usage: MESSAGES_READ, estimate: undefined });
    expect(read(CHAT_CALL, CHAT_STREAM, { isBroken: true })).toMatchObject({ ...SUCCESS, usage: CHAT_READ });
  });

  it('are complete where only the blank line of the last event is missing', () => {
    expect(read(CHAT_CALL, CHAT_STREAM.trimEnd())).toMatchObject({ ...SUCCESS, usage: CHAT_READ });
  });

  it('are read at every byte', () => {
    const text = events(START, BLOCK, TEXT, DELTA, STOP);
    for (let end = 0; end <= text.length; end += 1) {
      const answer = read(MESSAGES_CALL, text.slice(0, end), { isBroken: end < text.length, type: EVENTS });
      if (answer.usage !== undefined) expect(answer.usage).toEqual(MESSAGES_READ);
      expect(['success', 'unknown']).toContain(answer.outcome);
      expect(answer.outcome === 'success').toBe(answer.isComplete);
    }
  });
});

describe('usage', () => {
  const withUsage = (usage: unknown): string => JSON.stringify({ model: 'm', choices: [], usage });

  it.each<[string, unknown]>([
    ['negative', { prompt_tokens: -1, completion_tokens: 5 }],
    ['a fraction', { prompt_tokens: 1.5, completion_tokens: 5 }],
    ['absurd', { prompt_tokens: 1e30, completion_tokens: 5 }],
    ['a text', { prompt_tokens: '5', completion_tokens: 5 }],
    ['half', { prompt_tokens: 5 }],
    ['empty', {}],
    [
      'parts beyond the whole',
      { prompt_tokens: 5, completion_tokens: 5, prompt_tokens_details: { cached_tokens: 6 } },
    ],
  ])('that is %s is none', (_name, usage) => {
    for (const text of [withUsage(usage), data(chunk({}, { ...FINISHED, usage }), '[DONE]')])
      expect(read(CHAT_CALL, text)).toMatchObject({
        usage: undefined,
        estimate: undefined,
        outcome: 'success',
        problems: ['USAGE_INVALID'],
      });
  });

  it.each<[string, ModelRequest, string]>([
    ['beside a text', CHAT_CALL, withUsage({ prompt_tokens: 0, completion_tokens: 0 })],
    ['of input', CHAT_CALL, withUsage({ prompt_tokens: 0, completion_tokens: 5 })],
    [
      'of output beside a text in events',
      CHAT_CALL,
      data(
        chunk({ content: 'x' }),
        chunk({}, { ...FINISHED, usage: { prompt_tokens: 5, completion_tokens: 0 } }),
      ),
    ],
    [
      'of output beside a long text',
      MESSAGES_CALL,
      JSON.stringify(
        message({
          content: [{ type: 'text', text: 'x'.repeat(2_000) }],
          usage: { input_tokens: 5, output_tokens: 0 },
        }),
      ),
    ],
    [
      'of embeddings',
      EMBEDDINGS_CALL,
      JSON.stringify({ data: [], usage: { prompt_tokens: 0, total_tokens: 0 } }),
    ],
    ['of images', IMAGES_CALL, JSON.stringify({ data: [{}], usage: { input_tokens: 0, output_tokens: 0 } })],
  ])('of zeros is none: %s', (_name, request, text) => {
    expect(read(request, text)).toMatchObject({
      usage: undefined,
      estimate: undefined,
      problems: ['USAGE_INVALID'],
    });
  });

  it('of zeros is the end of a stream that counts later, or of an answer without text', () => {
    const zero = { prompt_tokens: 0, completion_tokens: 0 };
    const text = data(
      chunk({ content: 'x' }, { usage: zero }),
      chunk({}, { ...FINISHED, usage: CHAT_USAGE }),
    );
    expect(read(CHAT_CALL, text).usage).toEqual(CHAT_READ);
    const filled = JSON.stringify(message({ usage: { ...MESSAGE_USAGE, output_tokens: 0 } }));
    expect(read(MESSAGES_CALL, filled).usage).toMatchObject({ input: 32, output: 0 });
  });

  it.each([
    ['null', null],
    ['a number', 5],
    ['a list', []],
  ])('that is %s is missing', (_name, usage) => {
    expect(read(CHAT_CALL, withUsage(usage))).toMatchObject({
      usage: undefined,
      problems: ['USAGE_MISSING'],
    });
  });

  it('that is missing is estimated by a whole answer', () => {
    const choices = [{ index: 0, message: { role: 'assistant', content: 'Hello' } }];
    const text = JSON.stringify({ model: 'gpt-4o', choices });
    expect(read(CHAT_CALL, text)).toMatchObject({
      outcome: 'success',
      estimate: { input: CHAT_CALL.inputBytes, output: 50 },
      problems: ['USAGE_MISSING'],
    });
    expect(read(REASONING_CALL, text).estimate).toBeUndefined();
  });

  it('that comes twice is the greatest of each count', () => {
    const less = { prompt_tokens: 30, completion_tokens: 2, total_tokens: 32 };
    const most = { ...CHAT_READ, input: 30 };
    const twice = [
      data(chunk({}, { usage: less }), chunk({}, { ...FINISHED, usage: CHAT_USAGE }), '[DONE]'),
      data(chunk({}, { usage: CHAT_USAGE }), chunk({}, { ...FINISHED, usage: less }), '[DONE]'),
      `{"choices":[],"usage":${JSON.stringify(less)},"usage":${JSON.stringify(CHAT_USAGE)}}`,
    ];
    for (const text of twice)
      expect(read(CHAT_CALL, text)).toMatchObject({ usage: most, problems: ['USAGE_REPEATED'] });
  });

  it('that is invalid stays so, whatever else is stated', () => {
    const bad = { prompt_tokens: -5, completion_tokens: 1 };
    for (const usages of [
      [bad, CHAT_USAGE],
      [CHAT_USAGE, bad],
    ])
      expect(read(CHAT_CALL, data(...usages.map((usage) => chunk({}, { usage })))).usage).toBeUndefined();
    const started = events(START, { ...DELTA, usage: { output_tokens: -1 } }, STOP);
    expect(read(MESSAGES_CALL, started)).toMatchObject({ usage: undefined, problems: ['USAGE_INVALID'] });
  });

  it.each<[string, ModelRequest, string]>([
    [
      'a level of service',
      CHAT_CALL,
      JSON.stringify({ choices: [], usage: CHAT_USAGE, service_tier: 'priority' }),
    ],
    [
      'a level of service in a stream',
      CHAT_CALL,
      data(chunk({}, { ...FINISHED, usage: CHAT_USAGE, service_tier: 'flex' })),
    ],
    [
      'a tool with a price',
      RESPONSES_CALL,
      RESPONSES_STREAM({ output: [{ type: 'code_interpreter_call' }] }),
    ],
    [
      'a tool with a price, in one piece',
      RESPONSES_CALL,
      JSON.stringify(
        response({ status: 'completed', output: [{ type: 'file_search_call' }], usage: RESPONSES_USAGE }),
      ),
    ],
    [
      'calls beside those of the model',
      MESSAGES_CALL,
      events(
        START,
        {
          ...DELTA,
          usage: { output_tokens: 15, iterations: [{ type: 'message' }, { type: 'compaction' }] },
        },
        STOP,
      ),
    ],
  ])('of %s is none: other prices hold', (_name, request, text) => {
    expect(read(request, text)).toMatchObject({
      usage: undefined,
      estimate: undefined,
      problems: ['PRICED_OTHERWISE'],
    });
  });

  it('of Anthropic that was priced otherwise is none', () => {
    const text = JSON.stringify(
      message({ usage: { ...MESSAGE_USAGE, output_tokens: 1, service_tier: 'priority' } }),
    );
    expect(read(MESSAGES_CALL, text)).toMatchObject({ usage: undefined, problems: ['USAGE_INVALID'] });
  });

  it('of work that goes on is not there yet', () => {
    const text = JSON.stringify(response({ status: 'queued', usage: null, output: [] }));
    const unknown = { outcome: 'unknown', usage: undefined, estimate: undefined };
    expect(read(RESPONSES_CALL, text)).toMatchObject(unknown);
    const call = callOf(RESPONSES, { model: 'gpt-4o', input: 'hi', background: true, stream: true });
    const begun = events(
      { type: 'response.created', response: response({ status: 'queued', usage: null, output: [] }) },
      { type: 'response.output_text.delta', delta: 'H' },
    );
    expect(read(call, begun, { isBroken: true })).toMatchObject(unknown);
    expect(read({ ...call, isBackground: false }, begun, { isBroken: true }).estimate).toBeDefined();
  });

  it('of sound by its length is none', () => {
    const text = JSON.stringify({ text: 'x', usage: { type: 'duration', seconds: 9 } });
    expect(read(SPEECH_CALL, text)).toMatchObject({ usage: undefined, problems: ['USAGE_INVALID'] });
    expect(read(SPEECH_CALL, 'ID3', { type: 'audio/mpeg' })).toMatchObject({
      outcome: 'success',
      usage: undefined,
      problems: ['USAGE_MISSING'],
    });
  });
});

describe('hostile answers', () => {
  it.each<[string, string, string]>([
    ['of another type', '<html>', 'text/html'],
    ['of no type', '{}', ''],
    ['that are no JSON', 'x', JSON_TYPE],
    ['of JSON that is no object', '[1]', JSON_TYPE],
    ['of events that are no JSON', 'data: x\n\n', EVENTS],
    ['of events that are no objects', 'data: [1]\n\n', EVENTS],
    ['that nest', `{"usage":${'['.repeat(5_000)}`, JSON_TYPE],
  ])('%s are not read, and of unknown outcome', (_name, text, type) => {
    const answer = read(CHAT_CALL, text, { type });
    expect(answer).toMatchObject({
      outcome: 'unknown',
      isComplete: false,
      usage: undefined,
      estimate: undefined,
    });
    expect(answer.problems).toContain('ANSWER_UNREAD');
  });

  it('may nest in an event', () => {
    const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
    const text = `data: {"choices":[{"delta":{"content":${deep}}}],"usage":{"prompt_tokens":${deep}}}\n\n`;
    expect(read(CHAT_CALL, text).usage).toBeUndefined();
  });

  it('have no members of prototypes', () => {
    const text = '{"__proto__":{"usage":{"prompt_tokens":1,"completion_tokens":1}},"choices":[]}';
    expect(read(CHAT_CALL, text).usage).toBeUndefined();
    expect(read(CHAT_CALL, data(text, '[DONE]')).usage).toBeUndefined();
  });

  it.each<[string, ModelRequest, string, ModelAnswer['usage']]>([
    [
      'responses',
      RESPONSES_CALL,
      RESPONSES_STREAM({
        output: [{ type: 'web_search_call' }, { type: 'message', content: ['x'.repeat(300_000)] }],
      }),
      { ...RESPONSES_READ, webSearches: 1 },
    ],
    [
      'responses with searches, as charged',
      RESPONSES_CALL,
      RESPONSES_STREAM({
        output: [{ type: 'web_search_call' }, { type: 'message', content: ['x'.repeat(300_000)] }],
        tool_usage: { web_search: { num_requests: 2 } },
      }),
      { ...RESPONSES_READ, webSearches: 2 },
    ],
    [
      'messages',
      MESSAGES_CALL,
      events(
        { ...START, message: message({ content: 'x'.repeat(300_000) }) },
        { ...TEXT, delta: { type: 'text_delta', text: 'x'.repeat(300_000) } },
        DELTA,
        STOP,
      ),
      MESSAGES_READ,
    ],
    [
      'chat',
      CHAT_CALL,
      data(
        chunk({ content: 'x'.repeat(300_000) }),
        chunk({}, { usage: CHAT_USAGE, x: 'y'.repeat(300_000) }),
        '[DONE]',
      ),
      CHAT_READ,
    ],
    [
      'images',
      IMAGES_CALL,
      events({
        type: 'image_generation.completed',
        b64_json: 'A'.repeat(300_000),
        usage: { input_tokens: 5, output_tokens: 100, input_tokens_details: { image_tokens: 0 } },
      }),
      { input: 5, output: 100, inputImage: 0, outputImage: 100 },
    ],
  ])('have long events that are read in part: %s', (_name, request, text, usage) => {
    const answer = read(request, text, { sizes: [65_536] });
    expect(answer).toMatchObject({ ...SUCCESS });
    expect(answer.usage).toEqual(usage);
  });

  it('take little memory, however much their events would take as objects', () => {
    const wide = `${'{},'.repeat(2 ** 20)}1`;
    const text = `data: {"choices":[${wide}],"x":[${wide}]}\n\n${CHAT_STREAM}`;
    const before = process.memoryUsage().rss;
    expect(read(CHAT_CALL, text)).toMatchObject({ usage: CHAT_READ, outputBytes: wide.length + 8 });
    expect(process.memoryUsage().rss - before).toBeLessThan(200 * 1024 * 1024);
    const deep = `data: ${'{"x":'.repeat(2 ** 20)}\n\n${CHAT_STREAM}`;
    expect(read(CHAT_CALL, deep)).toMatchObject({ usage: CHAT_READ, problems: ['ANSWER_UNREAD'] });
  });

  it('with a long event lose that one alone', () => {
    const reader = new AnswerReader(CHAT_CALL, 200, EVENTS);
    reader.push(Buffer.from('data: '));
    for (let n = 0; n < 17; n += 1) reader.push(Buffer.alloc(1024 * 1024, 0x78));
    reader.push(Buffer.from(`\n\n${CHAT_STREAM}`));
    expect(reader.end()).toMatchObject({ outcome: 'success', usage: CHAT_READ, problems: ['ANSWER_UNREAD'] });
  });
});
