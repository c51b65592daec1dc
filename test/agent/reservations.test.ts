/** What is reserved and never begun is given back: by whoever decides next once it has expired, or by whoever says so. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Digest, toDigestText } from '../../src/base/value/digest.js';
import { LiveLedger, type LiveLedgerOptions } from '../../src/log/agent/live-ledger.js';
import { GrantEvaluator } from '../../src/log/policy/evaluator.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import type { LedgerStore } from '../../src/log/store/ledger-store.js';
import { ownKeyEntry } from '../../src/log/writer/genesis.js';
import { soundFileSystem, VolatileFileSystem } from '../writer/file-systems.js';
import { codeOf, otherSigner, signer } from '../writer/support.js';
import { AGENT, filePlace, grant, leftOf, memoryPlace, openLive, request, type Event } from './support.js';

/** A clock that tests set. */
class Clock {
  ms = Date.parse('2026-03-01T10:00:00Z');
  readonly now = (): string => new Date(this.ms).toISOString();
  pass(ms: number): void {
    this.ms += ms;
  }
}

interface ActionEvent {
  readonly event_id: Digest;
  readonly authorization: { readonly action: { readonly tool_params_digest: Digest } };
}

const MINUTE = 60_000;
const CAPS = { calls: 100, usd: 1 };

function lastCodes(events: readonly Event[], count: number): (string | undefined)[] {
  return events.slice(-count).map(({ error_code, decision, outcome }) => error_code ?? decision ?? outcome);
}

describe.each([
  ['memory', memoryPlace],
  ['memory without locks', () => memoryPlace(false)],
  ['a file', filePlace],
  [
    'a file with an index',
    () => {
      const place = filePlace();
      mkdirSync(`${place.path}.index`);
      return place;
    },
  ],
])('a reservation that expires, over %s', (_name, makePlace) => {
  it('is given back with the next decision, unless it was begun', async () => {
    const place = makePlace();
    const clock = new Clock();
    const ledger = await openLive(place, { now: clock.now });
    const grantId = await grant(ledger, { meterCaps: CAPS, notBefore: clock.now() });
    const asked = { ...request(1, { usd: '0.4' }), ttlMs: MINUTE };
    const unstarted = (await ledger.authorize(asked)).recorded.eventId;
    const begun = (await ledger.authorize({ ...request(2, { usd: '0.4' }), ttlMs: MINUTE })).recorded.eventId;
    await ledger.start(begun, { paramsDigest: request(2).paramsDigest });
    // By another program, which knows of it from the ledger alone.
    await ledger.close();
    const other = await openLive(place, { now: clock.now });
    clock.pass(MINUTE - 1);
    expect((await other.authorize(request(3, { usd: '0.4' }))).decisionCode).toBe('RESERVATION_OVER_CAP');
    clock.pass(1);
    expect(await codeOf(other.start(unstarted, { paramsDigest: asked.paramsDigest }))).toBe('ACTION_EXPIRED');
    expect((await other.authorize(request(4, { usd: '0.4' }))).decision).toBe('allow');
    expect(lastCodes(place.events(), 2)).toEqual(['ABANDONED', 'allow']);
    // What runs is not touched.
    expect((await other.authorize(request(5, { usd: '0.4' }))).decision).toBe('deny');
    expect(await leftOf(other, grantId, 'usd')).toBe('0.2');
    expect(await codeOf(other.start(unstarted, { paramsDigest: asked.paramsDigest }))).toBe(
      'AUTHORIZATION_REUSED',
    );
    await other.close();
    expect(await place.verdict()).toBe('ok');
    const { path } = place as { readonly path?: string };
    if (path !== undefined && existsSync(`${path}.index`))
      expect((await maintainIndex(path, { check: true })).differences).toEqual([]);
  });

  it('is listed, and settled by whoever says so', async () => {
    const place = makePlace();
    const clock = new Clock();
    const ledger = await openLive(place, { now: clock.now });
    const grantId = await grant(ledger, { meterCaps: CAPS, notBefore: clock.now() });
    const old = (await ledger.authorize(request(1, { usd: '0.1' }))).recorded;
    const begun = (await ledger.authorize(request(2, { usd: '0.2' }))).recorded;
    await ledger.start(begun.eventId, { paramsDigest: request(2).paramsDigest });
    clock.pass(50 * MINUTE);
    const late = (await ledger.authorize({ ...request(3, { usd: '0.3' }), ttlMs: MINUTE })).recorded;
    const fresh = (await ledger.authorize(request(4, { usd: '0.4' }))).recorded;
    clock.pass(11 * MINUTE);
    await ledger.close();
    const other = await openLive(place, { now: clock.now });
    const balances = await other.balances(grantId);
    const budget = await other.budget(grantId);
    expect(balances).toEqual(budget.balances);
    expect(budget.unstarted).toMatchObject([
      { eventId: old.eventId, seq: old.seq, occurredAt: '2026-03-01T10:00:00.000Z' },
      { eventId: late.eventId, expiresAt: '2026-03-01T10:51:00Z' },
      { eventId: fresh.eventId, grantId, principalId: AGENT, toolName: 'fs.read' },
    ]);
    expect((await other.budget())[0]?.unstarted).toEqual(budget.unstarted);
    const expired = await other.abandonOpen({ expired: true });
    expect(expired).toMatchObject({ settled: [{ authorizationId: late.eventId }], refused: [] });
    expect(await other.abandonOpen({ expired: true })).toEqual({ settled: [], refused: [] });
    const aged = await other.abandonOpen({ olderThanMs: 60 * MINUTE });
    expect(aged.settled.map(({ authorizationId }) => authorizationId)).toEqual([old.eventId, begun.eventId]);
    expect(lastCodes(place.events(), 3)).toEqual(['ABANDONED', 'ABANDONED', 'unknown']);
    expect(place.events().at(-1)).toMatchObject({ meter_basis_by_unit: { usd: 'estimated' } });
    // What was begun is charged; what is neither old nor expired stays reserved.
    expect(await leftOf(other, grantId, 'usd')).toBe('0.4');
    await other.close();
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a reservation', () => {
  it('of a guard expires in 15 minutes unless the call says otherwise', async () => {
    const place = memoryPlace();
    const clock = new Clock();
    const ledger = await openLive(place, { now: clock.now });
    await grant(ledger, { meterCaps: CAPS, notBefore: clock.now() });
    const expiries = (): unknown[] =>
      place.events().flatMap(({ authorization }) => authorization?.action?.expires_at ?? []);
    // A call that takes its time has begun, and renews nothing.
    await ledger.guard('fs.read', {}, () => clock.pass(60 * MINUTE));
    expect(expiries()).toEqual(['2026-03-01T10:15:00Z']);
    await ledger.guard('fs.read', {}, () => undefined, { ttlMs: 1_500 });
    expect(expiries().at(-1)).toBe('2026-03-01T11:00:01.5Z');
    await ledger.guard('fs.read', {}, () => undefined, { ttlMs: Infinity });
    expect(expiries()).toHaveLength(2);
    for (const ttlMs of [0, -1, NaN])
      await expect(ledger.guard('fs.read', {}, () => undefined, { ttlMs })).rejects.toThrow(RangeError);
    const both = { ...request(1), ttlMs: 1, expiresAt: '2026-03-01T12:00:00Z' };
    await expect(ledger.authorize(both)).rejects.toThrow(TypeError);
    const past = { ...request(1), expiresAt: '2026-03-01T11:00:00Z' };
    expect((await ledger.authorize(past)).decisionCode).toBe('ACTION_EXPIRED');
    expect(await place.verdict()).toBe('ok');
  });

  it('of another principal stays where the key may not sign for it, and holds nobody up', async () => {
    const place = filePlace();
    const clock = new Clock();
    const ledger = await openLive(place, { now: clock.now });
    const key = { ...ownKeyEntry(otherSigner.publicKey), roles: ['event'], principals: ['agent:a2'] };
    await ledger.append({ event: { event_type: 'key', action: 'add', key } });
    const own = await grant(ledger, { meterCaps: CAPS, notBefore: clock.now() });
    const others = await grant(ledger, { principalId: 'agent:a2', meterCaps: CAPS, notBefore: clock.now() });
    await ledger.authorize({ ...request(1, { usd: 1 }), ttlMs: MINUTE });
    const second = { ...request(2, { usd: 1 }), principalId: 'agent:a2', ttlMs: MINUTE };
    await ledger.authorize(second);
    clock.pass(MINUTE);
    const limited = await openLive(place, { now: clock.now, signer: otherSigner });
    expect((await limited.authorize(second)).decision).toBe('allow');
    expect(await leftOf(limited, others, 'usd')).toBe('0');
    expect(await leftOf(limited, own, 'usd')).toBe('0');
    const { settled, refused } = await limited.abandonOpen({ expired: true });
    expect([settled, refused]).toMatchObject([[], [{ error: { code: 'KEY_NOT_FOR_PRINCIPAL' } }]]);
    expect((await ledger.authorize(request(3, { usd: 1 }))).decision).toBe('allow');
    expect(await place.verdict()).toBe('ok');
  });

  it('is not released by a guard whose action another process has begun', async () => {
    const place = memoryPlace();
    const store = place.open() as LedgerStore;
    const acquire = store.acquire.bind(store);
    let isDecided = false;
    const two = await openLive(place);
    const begin = async (): Promise<void> => {
      const decided = place.events().at(-1) as unknown as ActionEvent;
      const { tool_params_digest: paramsDigest } = decided.authorization.action;
      await two.start(toDigestText(decided.event_id.b64), { paramsDigest });
    };
    store.acquire = async (options) => {
      // The turn after the decision is that of the guard's release.
      if (isDecided) await begin();
      isDecided = false;
      return acquire(options);
    };
    const controller = new AbortController();
    const policy: LiveLedgerOptions['policy'] = (state) => {
      isDecided = true;
      controller.abort(new Error('enough'));
      return new GrantEvaluator(state);
    };
    const one = await LiveLedger.open(store, { signer, principalId: AGENT, lingerMs: 0, policy });
    const grantId = await grant(two, { meterCaps: CAPS });
    const { signal } = controller;
    const ran = one.guard('fs.read', {}, () => expect.unreachable(), { reserve: { usd: 1 }, signal });
    await expect(ran).rejects.toThrow('enough');
    expect(isDecided).toBe(false);
    expect(place.events().map(({ event_type: type }) => type)).not.toContain('execution');
    expect(await leftOf(two, grantId, 'usd')).toBe('0');
    await one.close();
    expect(await place.verdict()).toBe('ok');
  });

  it('is not released when somebody begins it before that is recorded', async () => {
    const place = filePlace();
    const ledgers = [await openLive(place), await openLive(place)] as const;
    await grant(ledgers[0], { meterCaps: CAPS });
    const { recorded } = await ledgers[0].authorize(request(1, { usd: 1 }));
    const started = ledgers[0].start(recorded.eventId, { paramsDigest: request(1).paramsDigest });
    const abandoned = ledgers[1].abandonOpen({ olderThanMs: 0 });
    const [start, { settled, refused }] = await Promise.all([started.catch(() => undefined), abandoned]);
    expect(refused).toEqual([]);
    // Either came first; the other left it alone.
    const codes = place.events().map(({ error_code, outcome }) => error_code ?? outcome);
    expect(codes.includes('ABANDONED')).toBe(start === undefined);
    expect(settled.length).toBeLessThanOrEqual(1);
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a decision that releases what has expired', () => {
  it('is on disk with the release or not at all, wherever its process is stopped', async () => {
    const clock = new Clock();
    const place = filePlace();
    const before = await openLive(place, { now: clock.now, index: false, position: false });
    const grantId = await grant(before, { meterCaps: CAPS, notBefore: clock.now() });
    await before.authorize({ ...request(1, { usd: '0.7' }), ttlMs: MINUTE });
    await before.authorize({ ...request(2, { usd: '0.2' }), ttlMs: MINUTE });
    await before.close();
    clock.pass(MINUTE);
    const begin = readFileSync(place.path);
    const met = { none: 0, all: 0 };
    for (let lifetime = 0; ; lifetime += 1) {
      writeFileSync(place.path, begin);
      const fileSystem = new VolatileFileSystem();
      fileSystem.startProcess(lifetime);
      const dying = LiveLedger.open(place.path, {
        signer,
        now: clock.now,
        index: false,
        position: false,
        fileSystem,
      });
      const decided = await dying
        .then(async (ledger) => {
          const asked = ledger.authorize({ ...request(3, { usd: '0.9' }), principalId: AGENT });
          return asked.finally(() => ledger.close().catch(() => undefined));
        })
        .catch(() => undefined);
      // A torn group is cut off by whoever comes next, who asks again.
      const next = await openLive(place, {
        now: clock.now,
        index: false,
        position: false,
        fileSystem: soundFileSystem,
      });
      const reserved = (await next.budget(grantId)).unstarted.map(({ seq }) => seq);
      // Of a torn group the releases may be whole.
      expect([[2, 3], [3], [], [6]]).toContainEqual(reserved);
      if (decided !== undefined) expect([decided.decision, reserved]).toEqual(['allow', [6]]);
      met[reserved.includes(6) ? 'all' : 'none'] += 1;
      const again = await next.authorize(request(4, { usd: '0.1' }));
      expect(again.decision).toBe('allow');
      await next.close();
      expect(await place.verdict()).toBe('ok');
      if (fileSystem.operations <= lifetime) break;
    }
    expect(met.none).toBeGreaterThan(0);
    expect(met.all).toBeGreaterThan(0);
  });
});

describe('abandonOpen', () => {
  it('says what it needs', async () => {
    const ledger = await openLive(memoryPlace());
    await expect(ledger.abandonOpen({})).rejects.toThrow(TypeError);
    await expect(ledger.abandonOpen({ expired: false })).rejects.toThrow(TypeError);
    for (const olderThanMs of [-1, NaN, Infinity])
      await expect(ledger.abandonOpen({ olderThanMs })).rejects.toThrow(RangeError);
    expect(await ledger.abandonOpen({ olderThanMs: Number.MAX_SAFE_INTEGER })).toEqual({
      settled: [],
      refused: [],
    });
    const aborted = ledger.abandonOpen({ expired: true, signal: AbortSignal.abort('enough') });
    await expect(aborted).rejects.toBe('enough');
  });
});
