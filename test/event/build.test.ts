/** Builders: what they fill in, how events are named, and what they refuse (SPEC §3). */

import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { buildEvent, meters, type AnyEvent } from '../../src/api/index.js';
import { buildGenesis } from '../../src/format/event/build.js';
import * as samples from '../schema/samples.js';

const B64 = samples.key.keyid;
const OTHER = 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA';
const sha256 = { alg: 'sha-256', b64: B64 } as const;
const defaults = {
  occurredAt: '2026-03-01T00:00:00Z',
  principalId: 'agent:a1',
  ledgerId: `sha-256:${OTHER}`,
};

/** Canonical JSON of what these tests hold: members in order, texts of ASCII. */
function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${canonical(member)}`).join(',')}}`;
}

function expectIdentity(event: object): void {
  const { event_id: id, payload_digest: digest, ...payload } = event as AnyEvent;
  const text = canonical(payload);
  const hash = (prefix: string) => createHash('sha256').update(`${prefix}${text}`).digest('base64url');
  expect(digest).toEqual({ alg: 'sha-256', b64: hash('') });
  expect(id).toEqual({ alg: 'sha-256', b64: hash('northroot:event:v1\0') });
}

const refusal = (code: string, pointer: string) =>
  expect.objectContaining({ code, faults: [expect.objectContaining({ code, pointer })] }) as Error;

/** A sample without what a builder adds. */
function draftOf<T extends object>(sample: T): T {
  const rest = { ...sample } as Record<string, unknown>;
  for (const name of ['event_id', 'payload_digest', 'occurred_at', 'principal_id', 'ledger_id'])
    delete rest[name];
  return rest as T;
}

describe('builders', () => {
  const { grant, action, execution, adjustment, checkpoint, attestation, keyEvent, extension } = samples;
  it.each(
    Object.entries({ grant, action, execution, adjustment, checkpoint, attestation, keyEvent, extension }),
  )('bind a draft to its ledger: %s', (_, sample) => {
    const event = buildEvent(draftOf(sample), defaults);
    expect(event).toMatchObject({
      ...draftOf(sample),
      occurred_at: defaults.occurredAt,
      principal_id: 'agent:a1',
      ledger_id: { alg: 'sha-256', b64: OTHER },
    });
    expectIdentity(event);
    // Another ledger, another event: it cannot be replayed.
    const elsewhere = buildEvent(draftOf(sample), { ...defaults, ledgerId: B64 });
    expect(elsewhere.event_id).not.toEqual(event.event_id);
    // What the draft says itself goes before.
    expect(buildEvent({ ...draftOf(sample), ledger_id: sha256 }, defaults)['ledger_id']).toEqual(sha256);
    // Unless it is told which, a builder binds to none.
    const unbound = { occurredAt: defaults.occurredAt, principalId: defaults.principalId };
    expect(buildEvent(draftOf(sample), unbound)).not.toHaveProperty('ledger_id');
  });

  it('never bind genesis, which the others are bound to', () => {
    const event = buildGenesis(draftOf(samples.genesis), defaults);
    expect(event).not.toHaveProperty('ledger_id');
    expectIdentity(event);
    expect(() => buildEvent({ ...samples.genesis, ledger_id: sha256 })).toThrow(
      refusal('SCHEMA', '/ledger_id'),
    );
  });

  it.each([
    ['an adjustment without meters', 'SCHEMA', '/meters', { ...adjustment, meters: [] }],
    [
      'a negative adjustment',
      'METER_NEGATIVE',
      '/meters/0/amount',
      {
        ...adjustment,
        meters: [{ unit: 'usd', amount: { t: 'int', v: '-1' } }],
      },
    ],
    ['an unknown outcome', 'SCHEMA', '/outcome', { ...execution, outcome: 'maybe' }],
    ['a failure without its code', 'SCHEMA', '/error_code', { ...execution, error_code: undefined }],
    [
      'one limit under two names',
      'METER_UNIT_DUPLICATE',
      '/authorization/bounds/rate_limits/1/unit',
      {
        ...grant,
        authorization: {
          kind: 'grant',
          bounds: {
            allowed_tools: ['*'],
            meter_caps: meters({ usd: 1 }),
            rate_limits: [
              { unit: 'usd.per_60m', amount: { t: 'int', v: '1' } },
              { unit: 'usd.per_hour', amount: { t: 'int', v: '2' } },
            ],
          },
        },
      },
    ],
    [
      'an allowed action without grant and reservation',
      'SCHEMA',
      '/authorization/action/meter_reservation',
      {
        ...action,
        authorization: { kind: 'action', action: { tool_name: 'a', tool_params_digest: sha256 } },
      },
    ],
    [
      'a key for notes that signs records',
      'SCHEMA',
      '/key/roles/0',
      {
        ...keyEvent,
        key: { ...samples.noteKey, roles: ['event'] },
      },
    ],
  ])('refuse %s', (_, code, pointer, draft) => {
    const plain = JSON.parse(JSON.stringify(draft)) as object;
    expect(() => buildEvent(plain)).toThrow(refusal(code, pointer));
  });
});
