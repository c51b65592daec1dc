/** Northroot journals: written, read strictly, and held to the rule by which their own tools judge an event's id. */

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import type { ByteSink } from '../../src/base/bytes/byte-sink.js';
import { canonicalText } from '../../src/base/json/canonicalize.js';
import type { JsonObject } from '../../src/base/json/value.js';
import { exportJournal } from '../../src/out/export/journal/export-journal.js';
import { parseJournalEvent, toJournalPayload } from '../../src/out/export/journal/journal-event.js';
import {
  formatJournalFrame,
  formatJournalHeader,
  isJournal,
  readJournal,
  type JournalMode,
} from '../../src/out/export/journal/journal-file.js';
import { makeLines } from '../proof/support.js';
import { ledgerOf } from '../verify/support.js';

const lines = await makeLines({ events: [2] });
const events = lines.map((line) => (JSON.parse(line.toString()) as { event: JsonObject }).event);
const journal = await written(ledgerOf(lines));

async function written(ledger: Uint8Array, skipped = 0): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const sink: ByteSink = {
    write: (piece) => void pieces.push(typeof piece === 'string' ? Buffer.from(piece) : piece),
  };
  expect((await exportJournal(ledger, sink)).skipped).toBe(skipped);
  return Buffer.concat(pieces);
}

async function read(
  bytes: Uint8Array,
  mode?: JournalMode,
  size = 7,
): Promise<{ offset: number; text: string }[]> {
  const chunks: Uint8Array[] = [];
  for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size));
  const found = [];
  for await (const { offset, payload } of readJournal(chunks, mode)) {
    found.push({ offset, text: Buffer.from(payload).toString() });
  }
  return found;
}

/** The id that journals' own tools compute: of all members but event_id. */
function journalId(event: JsonObject): string {
  const rest = { ...event };
  delete rest['event_id'];
  return createHash('sha256').update('northroot:event:v1\0').update(canonicalText(rest)).digest('base64url');
}

function withId(content: JsonObject): Buffer {
  return Buffer.from(JSON.stringify({ event_id: { alg: 'sha-256', b64: journalId(content) }, ...content }));
}

describe('a journal of a ledger', () => {
  it('has its header and a frame for each event, byte for byte', () => {
    expect(journal.subarray(0, 16).toString('hex')).toBe('4e524a31010000000000000000000000');
    expect(isJournal(journal)).toBe(true);
    expect(journal.subarray(16, 20).toString('hex')).toBe('01000000');
    const length = journal.readUInt32LE(20);
    expect(JSON.parse(journal.subarray(24, 24 + length).toString())).toMatchObject({ event_type: 'genesis' });
  });

  it('has ids that are right by the rule of journals, and gives the same events again', async () => {
    const frames = await read(journal);
    expect(frames).toHaveLength(events.length);
    for (const [i, { text }] of frames.entries()) {
      const event = JSON.parse(text) as JsonObject & { event_id: { b64: string } };
      expect(event.event_id.b64).toBe(journalId(event));
      expect(parseJournalEvent(Buffer.from(text)).own).toEqual(events[i]);
    }
  });

  it('leaves out an event whose payload_digest is wrong, as that would not show', async () => {
    const line = lines[1]?.toString() ?? '';
    const spoilt = line.replace(
      /"payload_digest":\{"alg":"sha-256","b64":"./,
      (start) => `${start.slice(0, -1)}${start.endsWith('A') ? 'B' : 'A'}`,
    );
    const frames = await read(await written(ledgerOf([lines[0], Buffer.from(spoilt)]), 1));
    expect(frames).toHaveLength(1);
  });
});

describe('reading a journal', () => {
  const frame = formatJournalFrame(Buffer.from('{}'));
  const header = formatJournalHeader();
  const other = Buffer.from([9, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3]);

  it.each([1, 3, 1000])('passes over frames of other kinds, in chunks of %i', async (size) => {
    const bytes = Buffer.concat([header, other, frame, other]);
    expect(await read(bytes, 'strict', size)).toEqual([{ offset: 27, text: '{}' }]);
  });

  it('takes one without frames', async () => {
    expect(await read(header)).toEqual([]);
  });

  it('refuses one that ends within a frame, and is permissive where that is asked for', async () => {
    const whole = Buffer.concat([header, frame, frame]);
    for (let cut = 1; cut < whole.length; cut += 1) {
      const bytes = whole.subarray(0, cut);
      const isBetween = cut === header.length || cut === header.length + frame.length;
      if (isBetween) expect((await read(bytes)).length).toBe(cut === header.length ? 0 : 1);
      else await expect(read(bytes)).rejects.toMatchObject({ code: 'JOURNAL_TORN' });
      if (cut >= header.length) {
        expect((await read(bytes, 'permissive')).length).toBe(cut < header.length + frame.length ? 0 : 1);
      }
    }
  });

  it.each<[string, () => Uint8Array, string]>([
    ['another version', () => spoil(header, 4, 2), 'JOURNAL_MALFORMED'],
    ['flags', () => spoil(header, 6, 1), 'JOURNAL_MALFORMED'],
    ['reserved bytes of the header', () => spoil(header, 15, 1), 'JOURNAL_MALFORMED'],
    ['reserved bytes of a frame', () => Buffer.concat([header, spoil(frame, 3, 1)]), 'JOURNAL_MALFORMED'],
    [
      'a length of 2^32 - 1',
      () => Buffer.concat([header, spoil(frame, 4, 255, 255, 255, 255)]),
      'JOURNAL_MALFORMED',
    ],
    [
      'another kind of that length',
      () => Buffer.concat([header, spoil(other, 4, 255, 255, 255, 255)]),
      'JOURNAL_MALFORMED',
    ],
    [
      'an event of 16 MiB',
      () => Buffer.concat([header, spoil(frame, 4, 0, 0, 0, 1)]),
      'JOURNAL_EVENT_TOO_LARGE',
    ],
    ['nothing', () => Buffer.alloc(0), 'JOURNAL_TORN'],
  ])('refuses %s', async (_, bytes, code) => {
    await expect(read(bytes())).rejects.toMatchObject({ code });
    if (code === 'JOURNAL_MALFORMED')
      await expect(read(bytes(), 'permissive')).rejects.toMatchObject({ code });
  });
});

function spoil(bytes: Uint8Array, at: number, ...values: number[]): Uint8Array {
  const spoilt = Uint8Array.from(bytes);
  spoilt.set(values, at);
  return spoilt;
}

describe('an event of a journal', () => {
  const content = { event_type: 'test', canonical_profile_id: 'northroot-canonical-v1', data: { n: 1 } };

  it('of another profile is right in itself, and none of a ledger', () => {
    expect(parseJournalEvent(withId(content))).toMatchObject({ eventId: journalId(content), own: undefined });
  });

  it('with a payload_digest under its id is none of a ledger', () => {
    const [event] = events as [JsonObject];
    const rest = { ...event };
    delete rest['event_id'];
    expect(parseJournalEvent(withId(rest)).own).toBeUndefined();
    expect(parseJournalEvent(toJournalPayload(event)).own).toEqual(event);
  });

  it.each<[string, Buffer, string]>([
    ['changed', Buffer.from(withId(content).toString().replace('test', 'tost')), 'EVENT_ID_MISMATCH'],
    ['without an id', Buffer.from(JSON.stringify(content)), 'JOURNAL_MALFORMED'],
    [
      'with a member twice',
      Buffer.from(withId(content).toString().replace('{', '{"data":1,')),
      'JOURNAL_MALFORMED',
    ],
    ['that is an array', Buffer.from('[]'), 'JOURNAL_MALFORMED'],
    ['that is not UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), 'JOURNAL_MALFORMED'],
    ['that is empty', Buffer.alloc(0), 'JOURNAL_MALFORMED'],
  ])('%s is refused', (_, payload, code) => {
    expect(() => parseJournalEvent(payload)).toThrow(expect.objectContaining({ code }) as Error);
  });
});
