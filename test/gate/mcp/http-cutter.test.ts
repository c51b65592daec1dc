/** Event streams pass as they came, whatever is read in them. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EventCutter, writeEvent } from '../../../src/gate/mcp/event-cutter.js';
import { EventStreamReader } from '../../../src/gate/proxy/event-stream.js';

interface Cut {
  readonly raw: string;
  readonly data: readonly string[];
}

function cut(text: string, sizes: readonly number[] = [], max = 1_000): Cut[] {
  const cutter = new EventCutter(max);
  const bytes = Buffer.from(text, 'utf8');
  const pieces: Cut[] = [];
  let at = 0;
  for (let turn = 0; at < bytes.length; turn += 1) {
    const end = Math.min(bytes.length, at + (sizes[turn % sizes.length] ?? bytes.length));
    for (const { raw, events } of cutter.push(bytes.subarray(at, end)))
      pieces.push({
        raw: Buffer.from(raw).toString('latin1'),
        data: events.map(({ data }) => Buffer.from(data).toString()),
      });
    at = end;
  }
  return pieces;
}

describe('a stream', () => {
  it('is cut at its events', () => {
    expect(cut('event: message\r\ndata: {"a":1}\r\n\r\nid: 1\ndata: x\ndata: y\n\ndata: rest\n')).toEqual([
      { raw: 'event: message\r\ndata: {"a":1}\r\n\r', data: ['{"a":1}'] },
      { raw: '\n', data: [] },
      { raw: 'id: 1\ndata: x\ndata: y\n\n', data: ['x\ny'] },
    ]);
  });

  it('hands on comments at once, and what is not complete not at all', () => {
    expect(cut(': hello\n')).toEqual([{ raw: ': hello\n', data: [] }]);
    expect(cut(': hel')).toEqual([{ raw: ': hel', data: [] }]);
    expect(cut('data: 1\n: within\n')).toEqual([]);
    expect(cut(`: ${'x'.repeat(10_000)}\n`, [100]).length).toBeGreaterThan(10);
  });

  it('without data has no events, and passes', () => {
    expect(cut('id: 7\nretry: 10\n\n')).toEqual([{ raw: 'id: 7\nretry: 10\n\n', data: [] }]);
  });

  it('with an event that is too long is refused, at one byte too many', () => {
    const event = `data: ${'x'.repeat(92)}\n\n`;
    expect(cut(event, [7], 100)).toMatchObject([{ raw: event }]);
    expect(() => cut(event, [7], 99)).toThrow(RangeError);
    expect(() => cut(event, [1_000], 99)).toThrow(RangeError);
    expect(() => cut('x'.repeat(200), [7], 100)).toThrow(RangeError);
  });

  it('of any bytes, cut anywhere, passes as it came, with the events that a reader sees', () => {
    const part = fc.constantFrom(
      'data: ',
      'data',
      ':',
      ' ',
      '\n',
      '\r',
      '\r\n',
      'id: 1',
      'event: e',
      'x',
      '\ufeff',
    );
    fc.assert(
      fc.property(
        fc.array(part),
        fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1 }),
        (parts, sizes) => {
          const text = parts.join('');
          const pieces = cut(text, sizes);
          const passed = pieces.map(({ raw }) => raw).join('');
          expect(Buffer.from(text).toString('latin1').startsWith(passed)).toBe(true);
          const whole = new EventStreamReader()
            .push(Buffer.from(text))
            .map(({ data }) => Buffer.from(data).toString());
          const seen = pieces.flatMap(({ data }) => data);
          // A mark that is not at the very beginning is none, and is read as if it were.
          if (!text.includes('\ufeff')) expect(seen).toEqual(whole);
          // No event passes before it was seen.
          for (let count = 0; count < pieces.length; count += 1) {
            const until = pieces.slice(0, count + 1);
            const events = new EventStreamReader().push(
              Buffer.from(until.map(({ raw }) => raw).join(''), 'latin1'),
            );
            expect(events.length).toBeLessThanOrEqual(until.flatMap(({ data }) => data).length);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  });
});

describe('an event with other data', () => {
  it('keeps its type and its id', () => {
    const event = { event: 'message', id: '7' };
    expect(Buffer.from(writeEvent(event, Buffer.from('{}'))).toString()).toBe(
      'event: message\nid: 7\ndata: {}\n\n',
    );
    expect(Buffer.from(writeEvent(event, undefined)).toString()).toBe('id: 7\n\n');
    expect(writeEvent({ event: 'message', id: undefined }, undefined)).toHaveLength(0);
  });
});
