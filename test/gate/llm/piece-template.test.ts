/** Events that are like those before are not parsed: what is found is the same as where each is. */

import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { ModelAnswer, ModelRequest } from '../../../src/gate/llm/model-api.js';
import { AnswerReader, type NamedAnswer } from '../../../src/gate/llm/read-answer.js';
import { times } from '../../slow.js';
import { callOf, CHAT, MESSAGES, RESPONSES, user } from './support.js';

const CHAT_CALL = callOf(CHAT, { model: 'gpt-4o', messages: [user('hi')], max_tokens: 50, stream: true });
const TWO_CALL = callOf(CHAT, { model: 'gpt-4o', messages: [user('hi')], max_tokens: 50, n: 2 });
const COMPLETIONS_CALL = callOf('/v1/completions', { model: 'davinci-002', prompt: 'hi', max_tokens: 5 });
const RESPONSES_CALL = callOf(RESPONSES, { model: 'gpt-5', input: 'hi', max_output_tokens: 50 });
const MESSAGES_CALL = callOf(MESSAGES, { model: 'claude-1', messages: [user('hi')], max_tokens: 50 });

interface Found {
  readonly answer: ModelAnswer;
  readonly named: (NamedAnswer | undefined)[];
}

function read(
  request: ModelRequest,
  bytes: Buffer,
  sizes: readonly number[],
  isFast: boolean,
  isBroken = false,
): Found {
  const reader = new AnswerReader(request, 200, 'text/event-stream', isFast);
  const named: Found['named'] = [];
  for (let at = 0, n = 0; at < bytes.length; n += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[n % sizes.length] ?? 1);
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    reader.push(chunk);
    chunk.fill(0x22);
    at += size;
    named.push(reader.named(50));
  }
  return { answer: reader.end(isBroken), named };
}

function expectSame(request: ModelRequest, text: string | Buffer, sizes: readonly number[] = []): Found {
  const bytes = Buffer.from(text as string);
  const slow = read(request, bytes, sizes, false);
  expect(read(request, bytes, sizes, true)).toEqual(slow);
  return slow;
}

/** A chat's event, with its text as it is written. */
const piece = (written: string, more = ''): string =>
  `data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"${written}"},"finish_reason":null}]${more}}\n\n`;
const LAST = `data: {"id":"c","choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}\n\ndata: [DONE]\n\n`;
const many = (written: string, count = 20): string => piece(written).repeat(count);

describe('events like those before', () => {
  it('are not parsed', () => {
    const parse = vi.spyOn(JSON, 'parse');
    read(CHAT_CALL, Buffer.from(many('Hello', 1_000) + LAST), [], true);
    const { length } = parse.mock.calls;
    parse.mockRestore();
    expect(length).toBeLessThan(20);
  });

  it.each<[string, ModelRequest, string]>([
    ['of chats', CHAT_CALL, many('Hi') + LAST],
    ['that break off', CHAT_CALL, many('Hi')],
    ['that break off within one', CHAT_CALL, many('Hi').slice(0, -30)],
    ['with escapes', CHAT_CALL, many('Hi') + piece('a\\n\\"\\\\\\/b') + piece('\\u00e9') + piece('\\')],
    ['that look like an end of theirs', CHAT_CALL, many('Hi') + piece('\\"}') + piece('\\\\') + LAST],
    ['with usage in their text', CHAT_CALL, many('Hi') + piece('\\"usage\\":{\\"prompt_tokens\\":1}')],
    ['with usage after it', CHAT_CALL, many('Hi') + piece('Hi', ',"usage":{"prompt_tokens":1}').repeat(3)],
    [
      'with usage, escaped',
      CHAT_CALL,
      many('Hi') + piece('Hi', ',"\\u0075sage":{"prompt_tokens":1}').repeat(3),
    ],
    ['with usage of null', CHAT_CALL, piece('Hi', ',"usage":null').repeat(9) + LAST],
    ['with an error', CHAT_CALL, many('Hi') + piece('Hi', ',"error":{"code":"server_error"}').repeat(3)],
    [
      'with text twice',
      CHAT_CALL,
      piece('Hi","content":"Hi').repeat(5) + piece('Hi","content":"H').repeat(5),
    ],
    ['with a decoy', CHAT_CALL, many('x","a":{"content":"x"},"b":"') + many('x","a":{"content":"y"},"b":"')],
    ['with a decoy before', CHAT_CALL, piece('x').replace('{', '{"a":{"content":"x"},').repeat(9)],
    ['with a raw line feed', CHAT_CALL, many('Hi') + piece('a\nb') + piece('a\r\nb') + piece('\u0001')],
    ['with text that is not ASCII', CHAT_CALL, many('Hi') + many('h\u00e9\u{1f600}') + LAST],
    [
      'with padding',
      CHAT_CALL,
      ['a', 'bc', '']
        .map((p) => piece(p, `,"obfuscation":"${p}"`))
        .join('')
        .repeat(5),
    ],
    ['that end at last', CHAT_CALL, (many('Hi') + LAST).repeat(2)],
    [
      'with roles',
      CHAT_CALL,
      piece('Hi","role":"assistant').repeat(3) + piece('Hi","tool_name":"abc').repeat(4),
    ],
    ['of two choices', TWO_CALL, (piece('Hi') + piece('Ho').replace('"index":0', '"index":1')).repeat(9)],
    ['that finish', CHAT_CALL, many('Hi').replaceAll('null', '"stop"') + LAST],
    ['of completions', COMPLETIONS_CALL, 'data: {"choices":[{"text":"abc","index":0}]}\n\n'.repeat(9) + LAST],
    ['with CRLF', CHAT_CALL, (many('Hi') + LAST).replaceAll('\n', '\r\n')],
    ['with CR', CHAT_CALL, (many('Hi') + LAST).replaceAll('\n', '\r')],
    ['with comments', CHAT_CALL, (': ping\n\n' + piece('Hi')).repeat(9) + LAST],
    ['with spaces', CHAT_CALL, many('Hi').replaceAll('":', '": ') + LAST],
    ['in two lines', CHAT_CALL, many('Hi').replaceAll(',"choices"', ',\ndata: "choices"') + LAST],
    [
      'of a length of their own',
      CHAT_CALL,
      many('Hi') + piece('x'.repeat(70_000)) + piece('x'.repeat(300_000)),
    ],
    ['numbered', RESPONSES_CALL, [0, 1, 10, 100].map((n) => delta(n)).join('') + delta('01') + delta('1.5')],
    [
      'of messages',
      MESSAGES_CALL,
      text('text_delta', 'text', 'a').repeat(9) + text('text_delta', 'text', 'é'),
    ],
    ['of thoughts', MESSAGES_CALL, text('thinking_delta', 'thinking', 'a').repeat(9)],
    ['whose type is in their text', MESSAGES_CALL, typed('ping').repeat(9) + typed('message_stop')],
  ])('%s', (_, request, stream) => {
    for (const sizes of [[], [1], [7, 100], [stream.length - 40, 11, 1]]) expectSame(request, stream, sizes);
  });

  it('that are no UTF-8 count what replaces it', () => {
    const [before, after] = piece('|').split('|');
    const bytes = [
      many('Hi'),
      before,
      Buffer.from([0xff, 0xfe]),
      after,
      before,
      Buffer.from([0xed, 0xa0]),
      after,
    ];
    expectSame(CHAT_CALL, Buffer.concat(bytes.map((each) => Buffer.from((each ?? '') as string))));
  });

  it('are told from bytes that only begin like UTF-8', () => {
    const byte = fc.constantFrom(
      ...[
        0x20, 0x41, 0x5c, 0x6e, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1,
      ],
      ...[0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff],
    );
    const [before = '', after = ''] = piece('|').split('|');
    fc.assert(
      fc.property(fc.array(fc.array(byte, { maxLength: 40 }), { maxLength: 8 }), (texts) => {
        const events = texts.flatMap((each) => [
          ...[Buffer.from(before), Uint8Array.from(each)],
          ...[Buffer.from(after), Buffer.from(piece('Hi'))],
        ]);
        expectSame(CHAT_CALL, Buffer.concat([Buffer.from(many('Hi')), ...events]));
      }),
      { numRuns: times(300, 100_000) },
    );
  });

  it('are the same wherever the stream is cut', () => {
    const stream = many('Hi', 3) + piece('h\u00e9 \\n') + ': ping\n\n' + piece('Ho') + LAST;
    for (const text of [stream, stream.replaceAll('\n', '\r\n'), stream.replaceAll('\n', '\r')]) {
      const { length } = Buffer.from(text);
      for (let at = 1; at < length; at += 1) expectSame(CHAT_CALL, text, [at, length]);
    }
  });

  it('of several answers that come in turns are each its own', () => {
    const streams: [ModelRequest, string][] = [
      [CHAT_CALL, many('Hi') + many('h\u00e9') + LAST],
      [RESPONSES_CALL, [1, 2, 3, 4, 5, 6, 7].map(delta).join('')],
      [MESSAGES_CALL, text('text_delta', 'text', 'abc').repeat(30)],
    ];
    const readers = streams.map(([request]) => new AnswerReader(request, 200, 'text/event-stream'));
    for (let at = 0; at < 5_000; at += 90)
      for (const [index, [, stream]] of streams.entries())
        readers[index]?.push(Buffer.from(stream).subarray(at, at + 90));
    for (const [index, [request, stream]] of streams.entries())
      expect(readers[index]?.end()).toEqual(read(request, Buffer.from(stream), [], false).answer);
  });

  it('are read without WebAssembly', async () => {
    vi.stubGlobal('WebAssembly', undefined);
    vi.resetModules();
    const other = await import('../../../src/gate/llm/read-answer.js');
    const reader = new other.AnswerReader(CHAT_CALL, 200, 'text/event-stream');
    vi.unstubAllGlobals();
    const bytes = Buffer.from(many('Hi') + LAST);
    const parse = vi.spyOn(JSON, 'parse');
    reader.push(bytes);
    const { length } = parse.mock.calls;
    parse.mockRestore();
    expect(length).toBeGreaterThan(20);
    expect(reader.end()).toEqual(read(CHAT_CALL, bytes, [], false).answer);
  });

  it('cost the same, whatever they are', () => {
    const written = fc.oneof(
      fc.string({ unit: 'binary' }).map((each) => JSON.stringify(each).slice(1, -1)),
      fc.constantFrom('', 'a', '"', '\\', '\\u0061', '\n', '\r', '"}', '","usage":{"prompt_tokens":3},"x":"'),
    );
    const more = fc.constantFrom(
      ...['', ',"usage":null', ',"usage":{"prompt_tokens":2,"completion_tokens":1}', ',"obfuscation":"ab"'],
      ...[
        ',"\\u0075sage":{"prompt_tokens":2}',
        ',"choices":[]',
        ',"error":{}',
        ',"service_tier":"flex"',
        '}',
      ],
    );
    const event = fc.oneof(
      { arbitrary: fc.tuple(written, more).map(([a, b]) => piece(a, b)), weight: 6 },
      { arbitrary: written.map((each) => piece(each).repeat(4)), weight: 3 },
      {
        arbitrary: fc.constantFrom(LAST, ': c\n\n', '\n', 'data: {}\n\n', 'event: error\n', 'id: 1\n'),
        weight: 1,
      },
      { arbitrary: fc.nat({ max: 999 }).map(delta), weight: 1 },
      { arbitrary: written.map((each) => text('text_delta', 'text', each)), weight: 2 },
    );
    const change = fc.tuple(fc.nat(), fc.nat({ max: 255 }));
    fc.assert(
      fc.property(
        fc.constantFrom(CHAT_CALL, COMPLETIONS_CALL, RESPONSES_CALL, MESSAGES_CALL, TWO_CALL),
        fc.array(event, { maxLength: 12 }),
        fc.constantFrom('\n', '\r\n', '\r'),
        fc.array(change, { maxLength: 2 }),
        fc.array(fc.integer({ min: 1, max: 200 }), { maxLength: 4 }),
        (request, events, end, changes, sizes) => {
          const bytes = Buffer.from(events.join('').replaceAll('\n', end));
          for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
          expectSame(request, bytes, sizes);
        },
      ),
      { numRuns: times(200, 100_000) },
    );
  });
});

function delta(n: number | string): string {
  const type = 'response.output_text.delta';
  return `event: ${type}\ndata: {"type":"${type}","item_id":"i","delta":"abc","sequence_number":${n},"obfuscation":"x${n}"}\n\n`;
}

function text(type: string, name: string, written: string): string {
  return `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"${type}","${name}":"${written}"}}\n\n`;
}

function typed(type: string): string {
  return `data: {"type":"${type}","delta":{"text":"${type}"}}\n\n`;
}
