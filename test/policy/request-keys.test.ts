/** Request keys and times to live, as who decides live keeps them (SPEC §8 rules 3 and 18). */

import { existsSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { MIN_INDEXED_BYTES } from '../../src/log/cache/ledger-index.js';
import { authorizeAction } from '../../src/log/policy/authorize.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { draftGrant } from '../../src/log/policy/draft-grant.js';
import type { LiveLedger } from '../../src/log/agent/live-ledger.js';
import type { LiveRequest } from '../../src/log/agent/guard.js';
import { codeOf } from '../writer/support.js';
import { AGENT, filePlace, grant, leftOf, memoryPlace, openLive, request } from '../agent/support.js';

const T0 = Date.parse('2026-03-01T12:00:00Z');
const KEYED = { ...request(1), requestKey: 'job/1' };

/** A clock that a test sets, in milliseconds after noon. */
function clock(): { now: () => string; at: number } {
  const hand = { at: 0, now: () => new Date(T0 + hand.at).toISOString() };
  return hand;
}

async function execute(ledger: LiveLedger, id: string, asked: LiveRequest = KEYED): Promise<void> {
  const { startedAt, recorded } = await ledger.start(id, { paramsDigest: asked.paramsDigest });
  await ledger.record(id, {
    startedAt,
    endedAt: startedAt,
    meterUsed: asked.meters ?? [],
    outcome: 'success',
    start: recorded.eventId,
  });
}

describe('a request key', () => {
  it('gets the answer that it has, and nothing is recorded or reserved', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 5 } });
    const first = await ledger.authorize(KEYED);
    const events = place.events().length;
    const again = await ledger.authorize({ ...KEYED, grantId });
    expect(again).toMatchObject({ decision: 'allow', decisionCode: 'ALLOW', grantId });
    expect(again.recorded).toMatchObject({ eventId: first.recorded.eventId, seq: 2, status: 'exists' });
    expect(place.events()).toHaveLength(events);
    expect(await leftOf(ledger, grantId)).toBe('4');
    await execute(ledger, again.recorded.eventId);
    expect(await place.verdict()).toBe('ok');
  });

  it('is one request for all who ask at once, in one process and in others', async () => {
    const place = filePlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 5 } });
    const other = await openLive(place);
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, n) => (n % 2 === 0 ? ledger : other).authorize(KEYED)),
    );
    expect(new Set(answers.map(({ recorded }) => recorded.eventId)).size).toBe(1);
    expect(answers.filter(({ recorded }) => recorded.status === 'appended')).toHaveLength(1);
    expect(place.events()).toHaveLength(3);
  });

  it('is in conflict with another tool and with other parameters, and neither is recorded', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 5 } });
    await ledger.authorize(KEYED);
    const others = [
      { ...KEYED, toolName: 'fs.write' },
      { ...request(2), requestKey: KEYED.requestKey },
    ];
    for (const each of others) expect(await codeOf(ledger.authorize(each))).toBe('REQUEST_CONFLICT');
    expect(place.events()).toHaveLength(3);
    expect((await ledger.authorize(request(2))).recorded.status).toBe('appended');
  });

  it('is of one principal, under one root grant', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const [one, two] = [
      await grant(ledger, { meterCaps: { calls: 5 } }),
      await grant(ledger, { meterCaps: { calls: 6 } }),
    ];
    await ledger.append({
      event: draftGrant({ principalId: 'agent:a2', allowedTools: ['fs.*'], meterCaps: { calls: 5 } }),
    });
    const answers = [
      await ledger.authorize({ ...KEYED, grantId: one }),
      await ledger.authorize({ ...KEYED, grantId: two }),
      await ledger.authorize({ ...KEYED, principalId: 'agent:a2' }),
    ];
    expect(answers.map(({ recorded }) => recorded.status)).toEqual(['appended', 'appended', 'appended']);
    expect(await place.verdict()).toBe('ok');
  });

  it('is refused once its action was executed or released', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 5 } });
    const first = await ledger.authorize(KEYED);
    await execute(ledger, first.recorded.eventId);
    const released = { ...request(2), requestKey: 'job/2' };
    await ledger.abandon((await ledger.authorize(released)).recorded.eventId);
    const events = place.events().length;
    for (const each of [KEYED, released])
      expect(await ledger.authorize(each)).toMatchObject({
        decision: 'deny',
        decisionCode: 'AUTHORIZATION_REUSED',
        recorded: { status: 'exists' },
      });
    expect(await codeOf(ledger.authorize({ ...KEYED, toolName: 'fs.write' }))).toBe('REQUEST_CONFLICT');
    expect(place.events()).toHaveLength(events);
  });

  it('is not used up by a denial', async () => {
    const ledger = await openLive(memoryPlace());
    expect((await ledger.authorize(KEYED)).decision).toBe('deny');
    await grant(ledger, { meterCaps: { calls: 5 } });
    expect((await ledger.authorize(KEYED)).decision).toBe('allow');
  });

  it('is of its form', async () => {
    const ledger = await openLive(memoryPlace());
    for (const requestKey of ['', 'a b', 'x'.repeat(129)])
      await expect(ledger.authorize({ ...KEYED, requestKey })).rejects.toThrow(TypeError);
    expect((await ledger.authorize({ ...KEYED, requestKey: 'x'.repeat(128) })).recorded.seq).toBe(1);
  });

  it('is known over an index', async () => {
    const place = filePlace();
    const ledger = await openLive(place, { index: false });
    for (let n = 0; n < 5; n += 1)
      await ledger.append({ event: { event_type: 'x.large', n, text: 'a'.repeat(60_000) } });
    expect(statSync(place.path).size).toBeGreaterThan(MIN_INDEXED_BYTES);
    await grant(ledger, { meterCaps: { calls: 5 } });
    const first = await ledger.authorize(KEYED);
    for (let n = 0; n < 3; n += 1) {
      const indexed = await openLive(place);
      const again = await indexed.authorize(KEYED);
      expect(again.recorded).toMatchObject({ status: 'exists', eventId: first.recorded.eventId });
      expect(await codeOf(indexed.authorize({ ...KEYED, toolName: 'fs.write' }))).toBe('REQUEST_CONFLICT');
      await indexed.append({ event: { event_type: 'x.note', n } });
      await indexed.close();
    }
    expect(existsSync(`${place.path}.index`)).toBe(true);
    expect((await maintainIndex(place.path, { check: true })).differences).toEqual([]);
    expect((await verifyLedger(place.path)).verdict).toBe('ok');
  });
});

describe('a time to live', () => {
  it('is until when the action may be begun; what it reserved is given back with the next question', async () => {
    const place = memoryPlace();
    const hand = clock();
    const ledger = await openLive(place, { now: hand.now });
    const grantId = await grant(ledger, { meterCaps: { calls: 5 } });
    const asked = { ...KEYED, ttlMs: 60_000 };
    const { recorded } = await ledger.authorize(asked);
    hand.at = 59_999;
    expect((await ledger.authorize(asked)).decision).toBe('allow');
    hand.at = 60_000;
    expect(await ledger.authorize(asked)).toMatchObject({
      decision: 'deny',
      decisionCode: 'AUTHORIZATION_REUSED',
      recorded: { status: 'exists' },
    });
    expect(await leftOf(ledger, grantId)).toBe('5');
    const starts = ledger.start(recorded.eventId, { paramsDigest: KEYED.paramsDigest });
    expect(await codeOf(starts)).toBe('AUTHORIZATION_REUSED');
    expect(await place.verdict()).toBe('ok');
  });

  it('is as good as a time, of which one that is past allows nothing', async () => {
    const hand = clock();
    const ledger = await openLive(memoryPlace(), { now: hand.now });
    await grant(ledger, { meterCaps: { calls: 5 } });
    const at = (ms: number): LiveRequest => ({ ...request(1), expiresAt: new Date(T0 + ms).toISOString() });
    expect(await ledger.authorize(at(0))).toMatchObject({
      decision: 'deny',
      decisionCode: 'ACTION_EXPIRED',
      recorded: { status: 'appended' },
    });
    expect((await ledger.authorize(at(1))).decision).toBe('allow');
  });

  it('is of its form', async () => {
    const place = filePlace();
    await (await openLive(place)).close();
    const asked = { ...KEYED, principalId: AGENT };
    const ask = (more: object): Promise<unknown> => authorizeAction(place.path, { ...asked, ...more });
    for (const ttlMs of [0, -1, NaN]) await expect(ask({ ttlMs })).rejects.toThrow(RangeError);
    await expect(ask({ ttlMs: 1, expiresAt: '2026-03-01T12:00:00Z' })).rejects.toThrow(TypeError);
    await expect(ask({ expiresAt: 'tomorrow' })).rejects.toThrow(TypeError);
  });
});
