/** What a program that keeps a ledger open is told, and that no number of agents spends more than was granted. */

import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { LiveLedger } from '../../src/log/agent/live-ledger.js';
import { formatQuantity } from '../../src/base/value/quantity.js';
import { codeOf, errorOf } from '../writer/support.js';
import { AGENT, filePlace, gate, grant, keysOf, leftOf, memoryPlace, openLive, request } from './support.js';

const PLACES = [
  { name: 'a file', place: filePlace },
  { name: 'memory', place: memoryPlace },
  { name: 'memory without locks', place: () => memoryPlace(false) },
];

describe.each(PLACES)('agents of one process, over $name', ({ place: makePlace }) => {
  it('never exceed a cap, and reach it', async () => {
    const place = makePlace();
    // Two objects on one ledger, five agents on them.
    const ledgers = [await openLive(place), await openLive(place)];
    const grantId = await grant(ledgers[0], { meterCaps: { calls: 17, usd: '1' } });
    let done = 0;
    const act = async (agent: number): Promise<void> => {
      for (let n = 0; ; n += 1) {
        try {
          const run = ({ meter }: { meter: { add: (unit: string, amount: string) => void } }): void =>
            meter.add('usd', '0.05');
          await ledgers[agent % 2].guard('fs.read', { agent, n }, run, { reserve: { usd: '0.1' } });
          done += 1;
        } catch (error) {
          expect(error).toMatchObject({ name: 'DeniedError' });
          // What another has only reserved may come free again.
          if ((await ledgers[0].budget(grantId)).started.length === 0) return;
        }
      }
    };
    await Promise.all([0, 1, 2, 3, 4].map(act));
    expect(done).toBe(17);
    expect(await leftOf(ledgers[1], grantId)).toBe('0');
    expect(await leftOf(ledgers[1], grantId, 'usd')).toBe('0.15');
    expect(await place.verdict()).toBe('ok');
  });

  it('never run more at a time, or in a window, than is allowed', async () => {
    const place = makePlace();
    const ledgers = [await openLive(place), await openLive(place)];
    await grant(ledgers[0], { meterCaps: { calls: 100 }, concurrencyLimit: 2 });
    const ending = gate();
    let running = 0;
    const outcomes = [0, 1, 2, 3, 4].map(async (agent) => {
      const run = async (): Promise<void> => {
        running += 1;
        await ending.opened;
      };
      const guarded = ledgers[agent % 2].guard('fs.read', { agent }, run);
      return guarded.then(
        () => 'ran',
        (error: { code: string }) => {
          expect(running).toBeLessThanOrEqual(2);
          return error.code;
        },
      );
    });
    const first = Promise.race(outcomes);
    expect(await first).toBe('CONCURRENCY_EXCEEDED');
    await Promise.all(outcomes.map((each) => Promise.race([each, untilRefused(outcomes, 3)])));
    ending.open();
    expect((await Promise.all(outcomes)).sort()).toEqual([
      'CONCURRENCY_EXCEEDED',
      'CONCURRENCY_EXCEEDED',
      'CONCURRENCY_EXCEEDED',
      'ran',
      'ran',
    ]);
    await grant(ledgers[0], {
      principalId: 'agent:a2',
      meterCaps: { calls: 100 },
      rateLimits: { 'calls.per_day': 3 },
    });
    const rated = await Promise.allSettled(
      [0, 1, 2, 3, 4].map((agent) =>
        ledgers[agent % 2].guard('fs.read', { agent }, () => agent, { principalId: 'agent:a2' }),
      ),
    );
    expect(rated.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
    expect(rated.filter(({ status }) => status === 'rejected')).toMatchObject([
      { reason: { code: 'RATE_LIMIT_EXCEEDED' } },
      { reason: { code: 'RATE_LIMIT_EXCEEDED' } },
    ]);
    expect(await place.verdict()).toBe('ok');
  });
});

/** Settles when so many ended without having run. */
async function untilRefused(outcomes: readonly Promise<string>[], count: number): Promise<void> {
  await new Promise<void>((resolve) => {
    let refused = 0;
    for (const outcome of outcomes) {
      void outcome.then(() => {
        refused += 1;
        if (refused === count) resolve();
      });
    }
  });
}

describe('LiveLedger', () => {
  it('decides in the order of the calls, each on those before it', async () => {
    const ledger = await openLive(memoryPlace());
    const grantId = await grant(ledger, { meterCaps: { calls: 30 } });
    const decisions = await Promise.all(Array.from({ length: 50 }, (_, n) => ledger.authorize(request(n))));
    expect(decisions.map(({ decision }) => decision)).toEqual([
      ...Array.from({ length: 30 }, () => 'allow'),
      ...Array.from({ length: 20 }, () => 'deny'),
    ]);
    expect(decisions.map(({ recorded }) => recorded.seq)).toEqual(
      Array.from({ length: 50 }, (_, n) => n + 2),
    );
    const [{ balances }] = [(await ledger.budget())[0]];
    expect(formatQuantity(balances[0].reserved)).toBe('30');
    expect(await leftOf(ledger, grantId)).toBe('0');
  });

  it('starts, records and abandons what is done without a guard', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    const grantId = await grant(ledger, { meterCaps: { calls: 10, usd: 5 } });
    const { recorded } = await ledger.authorize(request(1, { calls: 1, usd: 2 }));
    const asked = { paramsDigest: request(1).paramsDigest };
    const { startedAt, permission } = await ledger.start(recorded.eventId, asked);
    expect(await ledger.budget(grantId)).toMatchObject({ started: [{ eventId: permission.startId }] });
    expect(await codeOf(ledger.start(recorded.eventId, asked))).toBe('AUTHORIZATION_STARTED');
    const done = { startedAt, endedAt: startedAt, outcome: 'success', start: true } as const;
    const used = [{ unit: 'usd', amount: { t: 'int', v: '1' } }] as const;
    expect((await ledger.record(recorded.eventId, { ...done, meterUsed: used })).verdict).toBe('ok');
    expect(await leftOf(ledger, grantId, 'usd')).toBe('4');

    const other = await ledger.authorize(request(2, { calls: 1, usd: 2 }));
    await ledger.start(other.recorded.eventId, { paramsDigest: request(2).paramsDigest });
    await ledger.abandon(other.recorded.eventId);
    expect(place.events().at(-1)).toMatchObject({
      outcome: 'unknown',
      meter_basis_by_unit: { usd: 'estimated' },
    });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('2');
    expect(await codeOf(ledger.abandon(other.recorded.eventId))).toBe('AUTHORIZATION_REUSED');
    // What was never started is released.
    const open = await ledger.authorize(request(3, { calls: 1, usd: 2 }));
    expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
    await ledger.abandon(open.recorded.eventId);
    expect(place.events().at(-1)).toMatchObject({ error_code: 'ABANDONED' });
    expect(await leftOf(ledger, grantId, 'usd')).toBe('2');
    expect(await place.verdict()).toBe('ok');
  });

  it('takes an id, the beginning of one and a number for an authorization, with an index and a policy too', async () => {
    const place = filePlace();
    mkdirSync(`${place.path}.index`);
    const own = await openLive(place);
    await grant(own, { meterCaps: { calls: 10 } });
    const trust = { trust_version: '1', keys: await keysOf(place.path) } as const;
    for (const ledger of [own, await openLive(place, { trust })]) {
      const one = (await ledger.authorize(request(1))).recorded;
      const { paramsDigest } = request(1);
      const { startedAt } = await ledger.start(one.eventId.slice(0, 20), { paramsDigest });
      const done = { startedAt, endedAt: startedAt, outcome: 'success', meterUsed: [] } as const;
      expect(await ledger.record(String(one.seq), done)).toMatchObject({ seq: one.seq + 2, verdict: 'ok' });
      expect(await codeOf(ledger.record(one.eventId.slice(8, 20), done))).toBe('AUTHORIZATION_REUSED');
      const two = (await ledger.authorize(request(2))).recorded;
      await ledger.start(String(two.seq), { paramsDigest: request(2).paramsDigest });
      await ledger.abandon(two.eventId.slice(0, 20), { start: String(two.seq + 1) });
      expect(place.events().at(-1)).toMatchObject({ outcome: 'unknown' });
      expect(await codeOf(ledger.abandon('999999'))).toBe('AUTH_NOT_FOUND');
      expect(await codeOf(ledger.record('0', done))).toBe('AUTH_NOT_AN_AUTHORIZATION');
      expect(await codeOf(ledger.abandon('not an id'))).toBe('USAGE');
    }
    expect(await place.verdict()).toBe('ok');
  });

  it('queues what names an authorization whole in the order of the calls', async () => {
    const ledger = await openLive(memoryPlace());
    await grant(ledger, { meterCaps: { calls: 10 } });
    const { recorded } = await ledger.authorize(request(1));
    const at = new Date().toISOString();
    const done = { startedAt: at, endedAt: at, outcome: 'success', meterUsed: [] } as const;
    const [{ verdict }] = await Promise.all([ledger.record(recorded.eventId, done), ledger.close()]);
    expect(verdict).toBe('ok');
  });

  it('closes behind what was asked for by a number', async () => {
    const ledger = await openLive(memoryPlace());
    await grant(ledger, { meterCaps: { calls: 10 } });
    const { recorded } = await ledger.authorize(request(1));
    const at = new Date().toISOString();
    const done = { startedAt: at, endedAt: at, outcome: 'success', meterUsed: [] } as const;
    const recording = ledger.record(String(recorded.seq), done);
    await ledger.close();
    expect(await recording).toMatchObject({ verdict: 'ok' });
  });

  it('knows what others write, and tells of it', async () => {
    const place = filePlace();
    const [own, other] = [await openLive(place), await openLive(place)];
    const watched = own.watch();
    const grantId = await grant(other, { meterCaps: { calls: 2 } });
    expect((await watched.next()).value).toMatchObject({ seq: 1, eventId: grantId });
    await other.authorize(request(1));
    expect(await leftOf(own, grantId)).toBe('1');
    expect(await own.authorize(request(2))).toMatchObject({ decision: 'allow' });
    expect(await other.authorize(request(3))).toMatchObject({ decision: 'deny' });
  });

  it('withdraws what waits when its signal aborts, and nothing of it is written', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place);
    await grant(ledger, { meterCaps: { calls: 10 } });
    const store = place.open();
    if (typeof store === 'string') throw new Error('expected a store');
    const turn = await store.acquire({ timeoutMs: 0, signal: undefined, onWait: () => undefined });
    const controller = new AbortController();
    const { signal } = controller;
    const waiting = [
      ledger.authorize(request(1), { signal }),
      ledger.append({ event: { event_type: 'x.test' } }, { signal }),
      ledger.budget(`sha-256:${'A'.repeat(43)}`, { signal }),
      ledger.guard('fs.read', {}, () => expect.fail('it was run'), { signal }),
    ];
    const errors = Promise.all(waiting.map(errorOf));
    const kept = ledger.authorize(request(2));
    controller.abort(new Error('enough'));
    expect((await errors).map((error) => (error as Error).message)).toEqual(Array(4).fill('enough'));
    await turn.release();
    expect(await kept).toMatchObject({ decision: 'allow', recorded: { seq: 2 } });
    expect(place.events()).toHaveLength(3);
  });

  it('seals, and refuses what would make the ledger invalid', async () => {
    const place = memoryPlace();
    const ledger = await openLive(place, { checkpoints: true });
    expect(await ledger.checkpoint()).toMatchObject({ seq: 1, treeSize: 1 });
    const unlinked = { event_type: 'x.test', prev_event_id: { alg: 'sha-256', b64: 'A'.repeat(43) } };
    expect(await codeOf(ledger.append({ event: unlinked }))).toBe('PREV_EVENT_NOT_FOUND');
    expect(await codeOf(ledger.budget(`sha-256:${'A'.repeat(43)}`))).toBe('GRANT_NOT_FOUND');
    expect(await place.verdict()).toBe('ok');
  });

  it('asks another policy where it is given one', async () => {
    const ledger = await openLive(memoryPlace(), {
      policy: () => ({
        policyId: 'no/1',
        policyDigest: request(0).paramsDigest,
        evaluate: () => ({
          decision: 'deny',
          decisionCode: 'NO',
          checks: [],
          grantId: undefined,
          reservation: [],
          remaining: [],
        }),
      }),
    });
    expect(await codeOf(ledger.guard('fs.read', {}, () => expect.fail('it was run')))).toBe('NO');
  });

  it('refuses what is not of its form, by its name', async () => {
    const place = memoryPlace();
    const opened = (options: object): Promise<unknown> => LiveLedger.open(place.open(), options);
    await expect(opened({ decides: true })).rejects.toThrow(/decides/);
    await expect(opened({ ticks: 1 })).rejects.toThrow(/ticks/);
    await expect(opened({ lockTimeoutMs: -1 })).rejects.toThrow(RangeError);
    const ledger = await openLive(place, { principalId: undefined });
    await expect(ledger.authorize(request(1))).rejects.toThrow(/principalId/);
    const asked = { ...request(1), principalId: AGENT };
    await expect(ledger.authorize({ ...asked, reserve: [] } as never)).rejects.toThrow(/reserve/);
    await expect(ledger.authorize(asked, { timeout: 1 } as never)).rejects.toThrow(/timeout/);
    await expect(ledger.start(1 as never, { paramsDigest: asked.paramsDigest })).rejects.toThrow(
      /authorizationId/,
    );
    await expect(ledger.record('sha-256:A', {} as never)).rejects.toThrow(/startedAt/);
    await expect(ledger.abandon('sha-256:A', { auth: 1 } as never)).rejects.toThrow(/auth/);
    await expect(ledger.budget(1 as never)).rejects.toThrow(/grantId/);
    await expect(ledger.close({ graceMs: -1 })).rejects.toThrow(RangeError);
    await expect(ledger.close({ grace: 1 } as never)).rejects.toThrow(/grace/);
    expect(ledger.size).toBe(1);
  });
});
