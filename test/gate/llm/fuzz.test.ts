/** Whatever comes is read or refused: nothing is thrown, and no bound is missing. */

import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { ModelRequest } from '../../../src/gate/llm/model-api.js';
import { AnswerReader } from '../../../src/gate/llm/read-answer.js';
import { readModelRequest } from '../../../src/gate/llm/read-request.js';
import { keptBytes } from '../../collect-garbage.js';
import { times } from '../../slow.js';
import { callOf, post, SMALLEST } from './support.js';

const NAMES = [
  ...['model', 'messages', 'content', 'role', 'type', 'text', 'image_url', 'url', 'source', 'data', 'input'],
  ...[
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'n',
    'best_of',
    'stream',
    'tools',
    'prompt',
  ],
  ...[
    'system',
    'output',
    'encrypted_content',
    'citations',
    'enabled',
    'context_management',
    'edits',
    'reasoning',
  ],
  ...[
    'mode',
    'modalities',
    'service_tier',
    'functions',
    'size',
    'quality',
    'max_uses',
    '__proto__',
    'constructor',
  ],
];
const ANSWER_NAMES = [
  ...['type', 'event', 'usage', 'model', 'choices', 'delta', 'index', 'finish_reason', 'message', 'response'],
  ...['item', 'output', 'status', 'error', 'code', 'content_block', 'service_tier', 'iterations', 'data'],
  ...['input_tokens', 'output_tokens', 'prompt_tokens', 'completion_tokens', 'prompt_tokens_details'],
  ...[
    'cached_tokens',
    'input_tokens_details',
    'image_tokens',
    'cache_creation',
    '__proto__',
    'server_tool_use',
  ],
];
const TEXTS = [
  ...[
    'm-1',
    'message',
    'user',
    'text',
    'image',
    'image_url',
    'input_image',
    'document',
    'tool_result',
    'base64',
  ],
  ...['data:image/png;base64,AA', 'function', 'namespace', 'web_search_20250305', 'bash_20250124', 'content'],
  ...[
    'message_start',
    'message_delta',
    'message_stop',
    'content_block_start',
    'content_block_delta',
    'error',
  ],
  ...[
    'response.completed',
    'response.failed',
    'response.output_item.added',
    'x.delta',
    'completed',
    'queued',
  ],
  ...[
    'image_generation.completed',
    'transcript.text.done',
    'reasoning',
    'web_search_call',
    'priority',
    'standard',
  ],
];

/** JSON made of names and texts that mean something. */
function valueOf(names: readonly string[]): fc.Arbitrary<unknown> {
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, depthSize: 'small' },
      fc.oneof(
        fc.constantFrom(...TEXTS),
        fc.constantFrom(null, true, false, 0, 1, -1, 0.5, 5, 1e9, 1e300),
        fc.string({ maxLength: 5 }),
      ),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom(...names), tie('value'), { maxKeys: 8 }),
    ),
  })).value;
}

it('requests are read or refused', () => {
  const cases = fc.record({
    base: fc.constantFrom(...SMALLEST),
    more: fc.dictionary(fc.constantFrom(...NAMES), valueOf(NAMES), { maxKeys: 8 }),
    keep: fc.boolean(),
  });
  fc.assert(
    fc.property(cases, ({ base: [path, body], more, keep }) => {
      const read = readModelRequest(post(path, keep ? { ...more, ...body } : { ...body, ...more }));
      expect(['call', 'refuse']).toContain(read.kind);
      if (read.kind !== 'call') {
        expect(read).toMatchObject({ kind: 'refuse', status: 400 });
        return;
      }
      const { inputBytes, maxOutput, choices, images, webSearches, unbounded } = read.request;
      for (const count of [inputBytes, maxOutput ?? 0, images, webSearches])
        expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
      expect(choices).toBeGreaterThan(0);
      expect(unbounded.length).toBeLessThanOrEqual(16);
    }),
    { numRuns: times(120, 100_000) },
  );
});

it('bytes are read or refused', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...SMALLEST),
      fc.uint8Array({ maxLength: 60 }),
      fc.nat(),
      ([path, body], bytes, at) => {
        const whole = Buffer.from(JSON.stringify(body));
        const place = at % whole.length;
        const changed = Buffer.concat([whole.subarray(0, place), bytes, whole.subarray(place)]);
        expect(['call', 'refuse']).toContain(readModelRequest(post(path, changed)).kind);
      },
    ),
    { numRuns: times(80, 50_000) },
  );
});

const CALLS: readonly ModelRequest[] = SMALLEST.map(([path, body]) => callOf(path, body));
const TYPES = ['application/json', 'text/event-stream', 'text/plain', '', undefined];

it('answers are read, or not, whatever is in them', () => {
  const events = fc.array(
    fc.oneof(
      fc.dictionary(fc.constantFrom(...ANSWER_NAMES), valueOf(ANSWER_NAMES), { maxKeys: 6 }),
      valueOf(ANSWER_NAMES),
    ),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(
      fc.constantFrom(...CALLS),
      events,
      fc.constantFrom(...TYPES),
      fc.constantFrom(200, 201, 400, 500),
      fc.boolean(),
      fc.integer({ min: 1, max: 50 }),
      (request, values, type, status, isBroken, size) => {
        const isStream = type === 'text/event-stream';
        const texts = values.map((value) => JSON.stringify(value));
        const text = isStream ? texts.map((each) => `data: ${each}\n\n`).join('') : (texts[0] ?? '');
        const bytes = Buffer.from(text);
        const reader = new AnswerReader(request, status, type);
        for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
        const { usage, estimate, outcome, errorCode, outputBytes } = reader.end(isBroken);
        for (const each of [usage, estimate]) {
          if (each === undefined) continue;
          const counts = Object.values(each) as number[];
          expect(counts.every((count) => Number.isInteger(count) && count >= 0 && count <= 1e9)).toBe(true);
          // What was used is never nothing.
          expect(each.input + each.output + (each.images ?? 0)).toBeGreaterThan(0);
        }
        expect(Number.isSafeInteger(outputBytes) && outputBytes >= 0).toBe(true);
        expect(errorCode === undefined).toBe(outcome !== 'failure');
        if (errorCode !== undefined) expect(errorCode).toMatch(/^[A-Z0-9_]{1,64}$/);
        if (status >= 400) expect([usage, estimate, outcome]).toEqual([undefined, undefined, 'failure']);
      },
    ),
    { numRuns: times(120, 100_000) },
  );
});

it('a stream that states ever other things is kept in little memory', () => {
  const [request] = CALLS as [ModelRequest, ...ModelRequest[]];
  const reader = new AnswerReader({ ...request, choices: 128 }, 200, 'text/event-stream');
  const before = keptBytes();
  for (let n = 0; n < 10_000; n += 1) {
    const usage = Object.fromEntries(Array.from({ length: 10 }, (_, m) => [`u${n}_${m}`, n]));
    const choices = [{ index: { n }, finish_reason: 'stop', delta: {} }];
    reader.push(Buffer.from(`data: ${JSON.stringify({ model: `m${n}`, usage, choices })}\n\n`));
  }
  expect(keptBytes() - before).toBeLessThan(64 * 1024 * 1024);
  expect(reader.end()).toMatchObject({ model: 'm0', usage: undefined });
});
