/** Server-sent events: the same for any chunks as a plain reading of the whole, and bounded. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventStreamReader, MAX_EVENT_BYTES } from '../../../src/gate/proxy/event-stream.js';
import { times } from '../../slow.js';

interface Read {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

interface Reading {
  readonly events: Read[];
  readonly rest: Read | undefined;
  readonly skipped: number;
}

function read(input: string | Uint8Array, sizes: readonly number[] = [], max?: number): Reading {
  const bytes = Buffer.from(input);
  const reader = new EventStreamReader(max);
  const events: Read[] = [];
  const textOf = ({ data, ...rest }: { event: string; data: Uint8Array; id: string | undefined }): Read => ({
    ...rest,
    data: Buffer.from(data).toString('utf8'),
  });
  let at = 0;
  for (let n = 0; at < bytes.length; n += 1) {
    const size = sizes.length === 0 ? bytes.length : (sizes[n % sizes.length] ?? 1);
    // The chunk is overwritten, as that of a socket may be.
    const chunk = Buffer.from(bytes.subarray(at, at + size));
    const read = reader.push(chunk);
    chunk.fill(0x0a);
    events.push(...read.map(textOf));
    at += size;
  }
  const rest = reader.end();
  return { events, rest: rest && textOf(rest), skipped: reader.skipped };
}

/** As the standard says it, of the whole text. */
function readPlainly(input: string): Pick<Reading, 'events' | 'rest'> {
  const lines = input.replace(/^\ufeff/, '').split(/\r\n|\r|\n/);
  const events: Read[] = [];
  let [data, event, id] = [[] as string[], '', undefined as string | undefined];
  const dispatch = (): void => {
    if (data.length > 0) events.push({ event: event === '' ? 'message' : event, data: data.join('\n'), id });
    [data, event, id] = [[], '', undefined];
  };
  for (const [index, line] of lines.entries()) {
    if (line === '') {
      // What split leaves after the last line end is no line.
      if (index < lines.length - 1) dispatch();
      continue;
    }
    if (line.startsWith(':')) continue;
    const [, name, value = ''] = /^([^:]*)(?:: ?([^]*))?$/.exec(line) ?? [];
    if (name === 'data') data.push(value);
    if (name === 'event') event = value;
    if (name === 'id' && !value.includes('\0')) id = value;
  }
  const whole = [...events];
  dispatch();
  return { events: whole, rest: events[whole.length] };
}

describe('events', () => {
  it.each<[string, string, Partial<Read>[]]>([
    ['data alone', 'data: a\n\n', [{ event: 'message', data: 'a', id: undefined }]],
    ['a type and an id', 'event: ping\nid: 7\ndata: {}\n\n', [{ event: 'ping', data: '{}', id: '7' }]],
    ['data in lines', 'data: a\ndata:b\ndata:  c\n\n', [{ data: 'a\nb\n c' }]],
    ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', [{ data: 'a' }, { data: 'b' }]],
    ['CR', 'data: a\r\rdata: b\r\r', [{ data: 'a' }, { data: 'b' }]],
    ['line ends mixed', 'data: a\r\n\rdata: b\n\r\n', [{ data: 'a' }, { data: 'b' }]],
    ['comments', ': hello\n\n:\ndata: a\n: b\n\n', [{ data: 'a' }]],
    ['a byte order mark', '\ufeffdata: a\n\n', [{ data: 'a' }]],
    ['a second byte order mark, which is part of a name', '\ufeff\ufeffdata: a\n\n', []],
    ['no data', 'event: a\n\nid: 1\n\ndata: b\n\n', [{ event: 'message', data: 'b', id: undefined }]],
    ['empty data', 'data\n\ndata\ndata\n\ndata:', [{ data: '' }, { data: '\n' }]],
    ['unknown fields', 'retry: 10\nfoo: bar\nDATA: x\n data: y\ndata: a\n\n', [{ data: 'a' }]],
    ['colons in data', 'data: a: b:c\n\n', [{ data: 'a: b:c' }]],
    ['an id with a NUL', 'id: 1\nid: a\0b\ndata: c\n\n', [{ id: '1' }]],
  ])('%s', (_name, input, expected) => {
    expect(read(input).events).toMatchObject(expected);
    expect(read(input).events).toHaveLength(expected.length);
    expect(read(input, [1])).toEqual(read(input));
  });

  it('keep bytes that are no UTF-8', () => {
    const reader = new EventStreamReader();
    const [event] = reader.push(Buffer.from([0x64, 0x61, 0x74, 0x61, 0x3a, 0xff, 0xc3, 0x0a, 0x0a]));
    expect(event?.data).toEqual(Uint8Array.of(0xff, 0xc3));
  });

  it('that break off are given at the end alone', () => {
    expect(read('data: a\n\ndata: b')).toEqual({
      events: [{ event: 'message', data: 'a', id: undefined }],
      rest: { event: 'message', data: 'b', id: undefined },
      skipped: 0,
    });
    expect(read('data: a\n\nevent: b').rest).toBeUndefined();
  });

  it('are the same for any chunks as for the whole', () => {
    const line = fc.oneof(
      fc.constantFrom(
        'data: a',
        'data',
        'data:',
        'event: b',
        'id: 1',
        ': c',
        'data: \u00e9\u{1f600}',
        'x',
        '',
      ),
      fc.string({ maxLength: 6 }),
    );
    const text = fc
      .array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n')), {
        maxLength: 20,
      })
      .map((lines) => lines.flat().join(''));
    fc.assert(
      fc.property(text, fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 5 }), (input, sizes) => {
        const { skipped, ...found } = read(input, sizes);
        expect(found).toEqual(readPlainly(Buffer.from(input).toString('utf8')));
        expect(skipped).toBe(0);
      }),
      { numRuns: times(200, 20_000) },
    );
  });
});

describe('an event that is too long', () => {
  const long = 'x'.repeat(50);

  it.each([
    ['one line', `data: ${long}\n\n`],
    ['many lines', 'data: abcdef\n'.repeat(9) + '\n'],
    ['many empty lines', 'data\n'.repeat(80) + '\n'],
    ['a type', `event: ${long}\ndata: a\n\n`],
    ['an unknown field', `foo: ${long}\ndata: a\n\n`],
    ['with CRLF', `data: ${long}\r\ndata: a\r\n\r\n`],
    ['whose blank line comes late', `data: ${long}\ndata: b\nevent: c\n\n`],
  ])('is left out and counted: %s', (_name, input) => {
    for (const sizes of [[], [1], [3], [7, 1]]) {
      expect(read(`data: a\n\n${input}data: b\n\n`, sizes, 40)).toEqual({
        events: [
          { event: 'message', data: 'a', id: undefined },
          { event: 'message', data: 'b', id: undefined },
        ],
        rest: undefined,
        skipped: 1,
      });
    }
  });

  it('is counted where the stream ends in it', () => {
    expect(read(`data: ${long}`, [5], 40)).toEqual({ events: [], rest: undefined, skipped: 1 });
  });

  it('is one byte more than the limit', () => {
    for (const sizes of [[], [1]]) {
      expect(read(`data:${'x'.repeat(35)}\n\n`, sizes, 40).events).toHaveLength(1);
      expect(read(`data:${'x'.repeat(36)}\n\n`, sizes, 40).skipped).toBe(1);
    }
  });

  it('takes no memory', () => {
    const reader = new EventStreamReader();
    const chunk = Buffer.alloc(1024 * 1024, 0x78);
    reader.push(Buffer.from('data: '));
    const before = process.memoryUsage().arrayBuffers;
    for (let n = 0; n < 300; n += 1) reader.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(4 * MAX_EVENT_BYTES);
    expect(reader.skipped).toBe(1);
    expect(reader.push(Buffer.from('\n\ndata: b\n\n'))).toHaveLength(1);
  });
});

it.each([0, -1, 1.5, Number.NaN, 2 ** 31])('refuses a limit of %s', (limit) => {
  expect(() => new EventStreamReader(limit)).toThrow(RangeError);
});
