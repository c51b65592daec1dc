/** What is said of a record that was made here is what examining its line says. */

import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { completeDraft, completeWhole, writeDraft } from '../../src/format/event/build.js';
import { identifyEvent } from '../../src/format/event/identity.js';
import { canonicalBytes, canonicalTextOfAny } from '../../src/base/json/canonicalize.js';
import { CANONICAL_PROFILE_ID } from '../../src/base/json/profile.js';
import { readDigestTexts } from '../../src/format/event/references.js';
import { examineLine, examineMade, type ExaminedLine } from '../../src/format/record/examine-line.js';
import { LINE_ROOM, placeFastEvent, scanFastEvent } from '../../src/fast/writer/fast-line.js';
import { MAX_LINE_BYTES } from '../../src/format/record/line-splitter.js';
import { EVENT_START, formatRecordAround } from '../../src/format/record/record.js';
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

const DIGEST = { alg: 'sha-256', b64: 'A'.repeat(43) };
/** What a line says, of every member that is asked of one. */
const factsOf = (line: ExaminedLine): unknown => {
  const { layout, faults, seq, prev, signatures, wellFormed, type, eventId, ledgerId, previousId } = line;
  const { eventType, occurredAt, principalId, toolName, span } = line;
  const event = [eventId, ledgerId, previousId, eventType, occurredAt, principalId, toolName];
  const outline = line.wellFormed ? line.outline() : undefined;
  return { layout, faults, seq, prev, signatures, wellFormed, type, event, span, outline, json: line.json() };
};
const usualDraft = fc.oneof(
  draft,
  fc
    .record({ unit: fc.constantFrom('usd', 'calls'), v: fc.nat(), text: fc.string(), deny: fc.boolean() })
    .map(({ unit, v, text, deny }) => ({
      event_type: 'authorization',
      intents: { intent_digest: DIGEST },
      policy_id: `p${text}`,
      policy_digest: 'blake3:AAAA',
      decision: deny ? 'deny' : 'allow',
      decision_code: 'ALLOW',
      authorization: {
        kind: 'action',
        grant_event_id: `sha-256:${DIGEST.b64}`,
        action: {
          tool_name: 'fs.read',
          tool_params_digest: DIGEST,
          meter_reservation: [{ unit, amount: { t: 'int', v: String(v) } }],
        },
      },
    })),
);

describe('the line of a scannable record that was made here', () => {
  const signature = around.signatures[0];

  it('is the one that is written otherwise, and says what it says', () => {
    let usual = 0;
    fc.assert(
      fc.property(usualDraft, fc.boolean(), fc.nat(), (given, isSigned, more) => {
        const { whole, bytes } = writeDraft(given, defaults, LINE_ROOM);
        const made = scanFastEvent(whole);
        if (made === undefined) return;
        usual += 1;
        const seq = more % 2 === 0 ? more : Number.MAX_SAFE_INTEGER - more;
        const signatures = isSigned ? [signature] : [];
        const placed = placeFastEvent(made, 'E'.repeat(43), seq, signatures[0]);
        const line = formatRecordAround(bytes, { prev: 'E'.repeat(43), seq, signatures });
        expect(Buffer.from(placed?.bytes ?? []).equals(line)).toBe(true);
        const examined = examineLine(line.subarray(0, -1), 'records');
        expect(placed && factsOf(placed.examined)).toEqual(factsOf(examined));
      }),
      { numRuns: times(200, 100_000), seed: 12 },
    );
    expect(usual).toBeGreaterThan(100);
  });

  it('is no longer than a line may be', () => {
    const place = (length: number): number | undefined => {
      const text = 'x'.repeat(length);
      const { whole } = writeDraft({ event_type: 'x.made', text }, defaults, LINE_ROOM);
      const made = scanFastEvent(whole);
      return made && placeFastEvent(made, 'E'.repeat(43), 9, signature)?.bytes.length;
    };
    const most = 60_000 + MAX_LINE_BYTES + 1 - (place(60_000) ?? 0);
    expect(place(most)).toBe(MAX_LINE_BYTES + 1);
    expect(place(most + 1)).toBeUndefined();
  });
});

/** By the definitions alone: the digests are put in before anything is written. */
const identityWithDigests = (given: Record<string, unknown>): unknown =>
  identifyEvent({
    event_version: '1',
    canonical_profile_id: CANONICAL_PROFILE_ID,
    occurred_at: defaults.occurredAt,
    principal_id: defaults.principalId,
    ...readDigestTexts(given),
  });

describe('a draft whose digests are texts', () => {
  const text = fc.constantFrom(`sha-256:${DIGEST.b64}`, 'a'.repeat(64), 'blake3:AAAA', 'sha-256:A', 'no');
  const nested = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 11, depthIdentifier: 'any' },
      text,
      fc.array(tie('any'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('digest', 'root', 'ledger_id', 'a', 'context_digest'), tie('any'), {
        maxKeys: 3,
      }),
    ),
  }));

  it.each(['x.made', 'execution', undefined])('of type %s is the one with digests', (type) => {
    fc.assert(
      fc.property(nested.any, nested.any, (first, second) => {
        const given = { ...(type && { event_type: type }), context_digest: first, a: second };
        expect(writeDraft(given, defaults).identity).toEqual(identityWithDigests(given));
      }),
      { numRuns: times(120, 30_000), seed: 12 },
    );
  });
});

describe('a draft with a digest that is a text', () => {
  it.each(Array.from({ length: 12 }, (_, depth) => depth))('%d levels deep is the one with it', (depth) => {
    let inner: object = { digest: `sha-256:${DIGEST.b64}` };
    for (let level = 0; level < depth; level += 1) inner = level % 2 === 0 ? { a: inner } : { a: [inner] };
    const given = { event_type: 'execution', ...inner };
    expect(writeDraft(given, defaults).identity).toEqual(identityWithDigests(given));
  });
});

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
      { numRuns: times(200, 100_000), seed: 12 },
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
      { numRuns: times(200, 100_000), seed: 12 },
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
