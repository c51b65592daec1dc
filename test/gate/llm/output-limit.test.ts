/** A limit of output is put into a request; all else stays as it is, byte for byte. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { leastOutput, withMaxOutput, withStreamUsage } from '../../../src/gate/llm/output-limit.js';
import { times } from '../../slow.js';
import { callOf, CHAT, MESSAGES, RESPONSES, SMALLEST, user } from './support.js';

function limited(path: string, body: string, limit: number, provider?: string): string {
  const request = callOf(path, body, {}, provider);
  return Buffer.from(withMaxOutput(request, Buffer.from(body), limit)).toString('utf8');
}

describe('a limit of output', () => {
  it.each([
    [CHAT, '{"model":"m","messages":[]}', '{"max_completion_tokens":100,"model":"m","messages":[]}'],
    [CHAT, ' {\n "model":"m","messages":[]}', ' {"max_completion_tokens":100,\n "model":"m","messages":[]}'],
    [
      CHAT,
      '{"model":"m","messages":[],"n":3}',
      '{"max_completion_tokens":33,"model":"m","messages":[],"n":3}',
    ],
    [
      CHAT,
      '{"model":"m","messages":[],"max_completion_tokens" : null }',
      '{"model":"m","messages":[],"max_completion_tokens" : 100 }',
    ],
    [
      CHAT,
      '{"model":"m","messages":[],"max_completion\\u005ftokens":null,"user":"}"}',
      '{"model":"m","messages":[],"max_completion\\u005ftokens":100,"user":"}"}',
    ],
    [
      CHAT,
      '{"model":"m","messages":[{"role":"user","content":"\\",\\"max_completion_tokens\\":null"}],"metadata":{"max_completion_tokens":"null"}}',
      '{"max_completion_tokens":100,"model":"m","messages":[{"role":"user","content":"\\",\\"max_completion_tokens\\":null"}],"metadata":{"max_completion_tokens":"null"}}',
    ],
    [RESPONSES, '{"model":"m"}', '{"max_output_tokens":100,"model":"m"}'],
    ['/v1/completions', '{"model":"m"}', '{"max_tokens":16,"model":"m"}'],
    ['/v1/completions', '{"model":"m","n":10}', '{"max_tokens":10,"model":"m","n":10}'],
    ['/v1/embeddings', '{"model":"m","input":""}', '{"model":"m","input":""}'],
  ])('%s %s', (path, body, expected) => {
    expect(limited(path, body, 100)).toBe(expected);
  });

  it.each([
    ['openai', 'max_completion_tokens'],
    ['azure', 'max_completion_tokens'],
    ['mistral', 'max_tokens'],
  ])('is put where the provider %s knows it', (provider, member) => {
    const put = limited(CHAT, '{"model":"m","messages":[]}', 100, provider);
    expect(put).toBe(`{"${member}":100,"model":"m","messages":[]}`);
  });

  it.each(SMALLEST)('stays where there is one: %s', (path, body) => {
    expect(limited(path, JSON.stringify(body), 1_000)).toBe(JSON.stringify(body));
  });

  it.each([
    [CHAT, '{"model":"m","messages":[]}', 0],
    [CHAT, '{"model":"m","messages":[],"n":3}', 2],
    [CHAT, '{"model":"m","messages":[]}', Number.NaN],
    [RESPONSES, '{"model":"m"}', 15],
  ])('is refused where it is less than the API takes: %s %s %s', (path, body, limit) => {
    expect(() => limited(path, body, limit)).toThrow(RangeError);
  });

  it('has a least', () => {
    expect(leastOutput({ api: 'openai-responses' })).toBe(16);
    expect(leastOutput({ api: 'openai-chat' })).toBe(1);
  });

  it('is read back, with nothing else changed', () => {
    const spaced = fc.constantFrom<string | number>('', 1, 2, '\t');
    const value = fc.oneof(
      fc.constant(null),
      fc.jsonValue({ maxDepth: 3 }).filter((each) => each !== null),
    );
    const body = fc.record(
      {
        model: fc.constant('m'),
        messages: fc.array(fc.string({ unit: 'binary' }).map((text) => user(text))),
        metadata: value,
        user: value,
        seed: fc.constant(null),
        max_completion_tokens: fc.constant(null),
        max_tokens: fc.constant(null),
        '\u00e9"\\': fc.constant(1),
      },
      { requiredKeys: ['model', 'messages'] },
    );
    fc.assert(
      fc.property(body, spaced, fc.integer({ min: 1, max: 1e9 }), (object, space, limit) => {
        const text = JSON.stringify(object, null, space).replaceAll('-0', '0');
        fc.pre(!/\\ud[89a-f]/.test(text));
        const changed = limited(CHAT, text, limit);
        expect(callOf(CHAT, changed).maxOutput).toBe(limit);
        const { max_completion_tokens: put, ...rest } = JSON.parse(changed) as Record<string, unknown>;
        const { max_completion_tokens: none, ...before } = JSON.parse(text) as Record<string, unknown>;
        expect([put, none ?? null]).toEqual([limit, null]);
        expect(rest).toEqual(before);
        expect(changed.length - text.length).toBeLessThan(40);
      }),
      { numRuns: times(60, 5_000) },
    );
  });
});

describe('usage at the end of a stream', () => {
  const asked = (path: string, body: string): string =>
    Buffer.from(withStreamUsage(callOf(path, body), Buffer.from(body))).toString('utf8');

  it.each([
    [
      CHAT,
      '{"model":"m","messages":[],"stream":true}',
      '{"stream_options":{"include_usage":true},"model":"m","messages":[],"stream":true}',
    ],
    [
      CHAT,
      '{"model":"m","messages":[],"stream":true,"stream_options":null}',
      '{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}',
    ],
    [CHAT, '{"model":"m","messages":[],"stream":true,"stream_options":{}}', undefined],
    [CHAT, '{"model":"m","messages":[]}', undefined],
    [RESPONSES, '{"model":"m","stream":true}', undefined],
    [MESSAGES, '{"model":"m","messages":[],"max_tokens":1,"stream":true}', undefined],
  ])('%s %s', (path, body, expected) => {
    expect(asked(path, body)).toBe(expected ?? body);
  });
});
