/** The usage that providers and SDKs state, each with its own idea of what lies in what. */

import { describe, expect, it } from 'vitest';
import { readUsage, type UsageKind } from '../../src/api/index.js';
import { codeThrown } from './samples.js';

describe('reading a usage', () => {
  it.each<[UsageKind, object, object]>([
    [
      'openai-chat',
      {
        prompt_tokens: 100,
        completion_tokens: 50,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 30, audio_tokens: 0, accepted_prediction_tokens: 0 },
      },
      { input: 100, output: 50, cacheRead: 60, inputAudio: 0, reasoning: 30, outputAudio: 0 },
    ],
    // Which of the cached tokens are audio is not said.
    [
      'openai-chat',
      {
        prompt_tokens: 100,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 60, audio_tokens: 70, cache_write_tokens: null },
      },
      { input: 100, output: 1, cacheRead: 30, inputAudio: 70 },
    ],
    [
      'openai-chat',
      {
        prompt_tokens: 100,
        completion_tokens: 1,
        prompt_tokens_details: { cached_tokens: 60, text_tokens: 50, image_tokens: 45, audio_tokens: 5 },
      },
      { input: 100, output: 1, cacheRead: 50, inputAudio: 5, inputImage: 45 },
    ],
    ['openai-chat', { prompt_tokens: 8, total_tokens: 8 }, { input: 8, output: 0 }],
    // Reasoning beside the output, or in the total alone.
    [
      'openai-chat',
      {
        prompt_tokens: 10,
        completion_tokens: 90,
        total_tokens: 150,
        completion_tokens_details: { reasoning_tokens: 50 },
      },
      { input: 10, output: 140, reasoning: 50 },
    ],
    [
      'openai-chat',
      { prompt_tokens: 10, completion_tokens: 9, total_tokens: 519 },
      { input: 10, output: 509 },
    ],
    ['openai-chat', { prompt_tokens: 10, completion_tokens: 9, total_tokens: 1 }, { input: 10, output: 9 }],
    ['openai-responses', { input_tokens: 1, output_tokens: 2, total_tokens: 9 }, { input: 1, output: 8 }],
    [
      'openai-responses',
      {
        input_tokens: 100,
        input_tokens_details: { cached_tokens: 10, cache_write_tokens: 20 },
        output_tokens: 7,
        output_tokens_details: { reasoning_tokens: 3 },
      },
      { input: 100, output: 7, cacheRead: 10, cacheWrite: 20, reasoning: 3 },
    ],
    // The cache is beside the input.
    [
      'anthropic',
      {
        input_tokens: 100,
        cache_creation_input_tokens: 30,
        cache_read_input_tokens: 20,
        cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
        output_tokens: 5,
        service_tier: 'standard',
        inference_geo: 'not_available',
        server_tool_use: { web_search_requests: 2 },
      },
      { input: 150, output: 5, cacheRead: 20, cacheWrite: 10, cacheWrite1h: 20, webSearches: 2 },
    ],
    ['anthropic', { input_tokens: 1, output_tokens: 2, cache_creation: null }, { input: 1, output: 2 }],
    [
      'anthropic',
      { input_tokens: 1, output_tokens: 2, cache_creation: { ephemeral_1h_input_tokens: 4 } },
      { input: 5, output: 2, cacheWrite: 0, cacheWrite1h: 4 },
    ],
    // Thoughts and what tools brought are beside output and prompt.
    [
      'gemini',
      {
        promptTokenCount: 100,
        candidatesTokenCount: 10,
        thoughtsTokenCount: 40,
        toolUsePromptTokenCount: 7,
        cachedContentTokenCount: 30,
        totalTokenCount: 157,
        promptTokensDetails: [
          { modality: 'TEXT', tokenCount: 60 },
          { modality: 'AUDIO', tokenCount: 25 },
          { modality: 'IMAGE', tokenCount: 15 },
        ],
        cacheTokensDetails: [
          { modality: 'TEXT', tokenCount: 20 },
          { modality: 'AUDIO', tokenCount: 10 },
        ],
        candidatesTokensDetails: [{ modality: 'TEXT', tokenCount: 10 }],
      },
      {
        input: 107,
        output: 50,
        cacheRead: 20,
        cacheReadAudio: 10,
        inputAudio: 15,
        inputImage: 15,
        reasoning: 40,
      },
    ],
    ['gemini', { promptTokenCount: 5, totalTokenCount: 5 }, { input: 5, output: 0 }],
    [
      'gemini',
      { promptTokenCount: 5, thoughtsTokenCount: 4, totalTokenCount: 9 },
      { input: 5, output: 4, reasoning: 4 },
    ],
    [
      'vercel-ai',
      {
        inputTokens: 100,
        inputTokenDetails: { noCacheTokens: 70, cacheReadTokens: 20, cacheWriteTokens: 10 },
        outputTokens: 9,
        outputTokenDetails: { textTokens: 5, reasoningTokens: 4 },
        totalTokens: 109,
        raw: {},
      },
      { input: 100, output: 9, cacheRead: 20, cacheWrite: 10, reasoning: 4 },
    ],
    [
      'vercel-ai',
      {
        inputTokens: 100,
        outputTokens: 9,
        reasoningTokens: 4,
        cachedInputTokens: 20,
        totalTokens: undefined,
      },
      { input: 100, output: 9, cacheRead: 20, reasoning: 4 },
    ],
    [
      'langchain',
      {
        input_tokens: 100,
        output_tokens: 9,
        total_tokens: 109,
        input_token_details: {
          cache_read: 20,
          cache_creation: 0,
          ephemeral_5m_input_tokens: 5,
          ephemeral_1h_input_tokens: 6,
        },
        output_token_details: { reasoning: 4 },
      },
      { input: 100, output: 9, cacheRead: 20, cacheWrite: 5, cacheWrite1h: 6, reasoning: 4 },
    ],
    ['langchain', { input_tokens: 1, output_tokens: 2 }, { input: 1, output: 2 }],
  ])('of %s: %j', (kind, raw, expected) => {
    expect(readUsage(kind, raw)).toEqual(expected);
  });

  it.each<[UsageKind, unknown]>([
    ['openai-chat', null],
    ['openai-responses', undefined],
    ['vercel-ai', { inputTokens: undefined, outputTokens: undefined }],
  ])('of %s says that there is none: %j', (kind, raw) => {
    expect(readUsage(kind, raw)).toBeUndefined();
  });

  it.each<[UsageKind, unknown]>([
    ['openai-chat', {}],
    ['openai-chat', 7],
    ['openai-chat', []],
    ['openai-chat', { prompt_tokens: 1 }],
    ['openai-chat', { prompt_tokens: 1, total_tokens: 3 }],
    ['openai-chat', { prompt_tokens: 1, completion_tokens: 1, total_tokens: -3 }],
    ['openai-chat', { prompt_tokens: 1, completion_tokens: NaN }],
    ['openai-chat', { prompt_tokens: '1', completion_tokens: 1 }],
    ['openai-chat', { prompt_tokens: -1, completion_tokens: 1 }],
    ['openai-chat', { prompt_tokens: 1.5, completion_tokens: 1 }],
    ['openai-chat', { prompt_tokens: 1e9 + 1, completion_tokens: 1 }],
    ['openai-chat', { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: { cached_tokens: 2 } }],
    ['openai-chat', { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: [] }],
    ['openai-chat', Object.create({ prompt_tokens: 1, completion_tokens: 1 })],
    ['openai-responses', { input_tokens: 1 }],
    ['openai-responses', { prompt_tokens: 1, completion_tokens: 1 }],
    [
      'openai-responses',
      { input_tokens: 1, output_tokens: 1, output_tokens_details: { reasoning_tokens: 2 } },
    ],
    ['anthropic', { output_tokens: 1 }],
    ['anthropic', { input_tokens: 1 }],
    ['anthropic', { input_tokens: 1, output_tokens: 1, service_tier: 'priority' }],
    ['anthropic', { input_tokens: 1, output_tokens: 1, speed: 'fast' }],
    ['anthropic', { input_tokens: 1, output_tokens: 1, inference_geo: 'us' }],
    [
      'anthropic',
      {
        input_tokens: 1,
        output_tokens: 1,
        cache_creation_input_tokens: 1,
        cache_creation: { ephemeral_1h_input_tokens: 2 },
      },
    ],
    ['gemini', {}],
    ['gemini', { promptTokenCount: 5 }],
    ['gemini', { promptTokenCount: 5, totalTokenCount: 9 }],
    ['gemini', { promptTokenCount: 5, candidatesTokenCount: 1, promptTokensDetails: {} }],
    ['gemini', { promptTokenCount: 5, candidatesTokenCount: 1, promptTokensDetails: [7] }],
    ['gemini', { promptTokenCount: 5, candidatesTokenCount: 1, promptTokensDetails: Array(17).fill({}) }],
    [
      'gemini',
      {
        promptTokenCount: 5,
        candidatesTokenCount: 1,
        promptTokensDetails: [{ modality: 'AUDIO', tokenCount: 9 }],
      },
    ],
    ['vercel-ai', { inputTokens: 1 }],
    ['vercel-ai', { inputTokens: NaN, outputTokens: NaN }],
    ['langchain', { input_tokens: 1 }],
    ['langchain', { input_tokens: 1, output_tokens: 1, input_token_details: { cache_read: 2 } }],
    [
      'openai-responses',
      {
        input_tokens: 9,
        input_tokens_details: { cache_write_tokens: 5, cache_write_tokens_details: { ttl_12h_tokens: 5 } },
        output_tokens: 1,
      },
    ],
  ])('of %s refuses what is not stated well: %j', (kind, raw) => {
    expect(codeThrown(() => readUsage(kind, raw))).toBe('MODEL_USAGE_INVALID');
  });

  it('refuses an unknown kind as misuse', () => {
    for (const kind of ['openai', '', 'constructor', '__proto__'])
      expect(() => readUsage(kind as UsageKind, {})).toThrow(RangeError);
  });
});
