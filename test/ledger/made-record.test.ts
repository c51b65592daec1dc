/** What is said of a record that was made here is what examining its line says. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completeDraft, completeWhole } from '../../src/event/build.js';
import { identifyEvent } from '../../src/event/identity.js';
import { canonicalBytes, canonicalTextOfAny } from '../../src/json/canonicalize.js';
import { examineLine, examineMade } from '../../src/ledger/examine-line.js';
import { EVENT_START, formatRecordAround } from '../../src/ledger/record.js';
import { canonicalValue } from '../json/arbitrary.js';
import { times } from '../slow.js';

const defaults = { occurredAt: '2026-01-01T00:00:00Z', principalId: 'service:test' };
const around = {
  seq: 7,
  prev: 'A'.repeat(43),
  signatures: [{ keyid: 'E'.repeat(43), sig: `${'C'.repeat(85)}A` }],
};
const name = fc.oneof(
  fc.constantFrom('a', 'event_i', 'event_ie', 'payload_digesu', 'z', '', 'é'),
  fc.string({ maxLength: 8 }),
);
const members = fc.dictionary(
  name.filter(
    (each) =>
      !/^(?:event_|payload_digest$|context_|ledger_id|prev_|canonical_|occurred_|principal_)/.test(each) ||
      each.startsWith('event_i'),
  ),
  canonicalValue,
  { maxKeys: 6 },
);
const draft = members
  .filter((each) => !('event_id' in each))
  .map((each) => ({ ...each, event_type: 'x.made' }));

describe('a record that was made here', () => {
  it('is what its line says', () => {
    fc.assert(
      fc.property(draft, (given) => {
        const { event, bytes } = completeDraft(given, defaults);
        const line = formatRecordAround(bytes, around).subarray(0, -1);
        const made = examineMade(
          event as never,
          { start: EVENT_START, end: EVENT_START + bytes.length },
          around,
        );
        const examined = examineLine(line, 'records');
        expect({ ...made }).toEqual({ ...examined });
        expect(made.json()).toEqual(examined.json());
      }),
      { numRuns: times(500, 100_000), seed: 12 },
    );
  });

  it('has the bytes and the ids that the definitions give', () => {
    fc.assert(
      fc.property(draft, (given) => {
        const { event, bytes } = completeDraft(given, defaults);
        expect(Buffer.from(bytes).toString()).toBe(canonicalTextOfAny(event));
        const { eventId, payloadDigest } = identifyEvent(event);
        expect([event.event_id.b64, event.payload_digest.b64]).toEqual([eventId, payloadDigest]);
        expect(completeWhole(event).bytes).toEqual(bytes);
        expect(completeWhole(JSON.parse(Buffer.from(bytes).toString()) as object).event).toEqual(event);
      }),
      { numRuns: times(500, 100_000), seed: 12 },
    );
  });

  it('keeps nothing that its maker may change', () => {
    const given = { event_type: 'x.made', list: [{ a: 1 }] };
    const { event, bytes } = completeDraft(given, defaults);
    given.list[0].a = 2;
    expect(canonicalBytes(event)).toEqual(new Uint8Array(bytes));
  });

  it.each<[string, (event: Record<string, unknown>) => void]>([
    ['an id of another content', (event) => (event['a'] = 1)],
    ['a digest that says more', (event) => Object.assign(event['event_id'] as object, { more: 1 })],
    ['no digest of its payload', (event) => delete event['payload_digest']],
    [
      'a member that is no JSON',
      (event) => Object.defineProperty(event, 'b', { get: () => 1, enumerable: true }),
    ],
  ])('refuses a whole event with %s', (_, change) => {
    const event = { ...completeDraft({ event_type: 'x.made' }, defaults).event };
    change(event);
    expect(() => completeWhole(event)).toThrow();
  });
});
