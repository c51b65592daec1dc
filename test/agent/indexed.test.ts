/** Programs that act over an index and by a trust policy: what each knows is exact all the same. */

import { existsSync, statSync } from 'node:fs';
import { expect, it } from 'vitest';
import { MIN_INDEXED_BYTES } from '../../src/log/cache/ledger-index.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import type { Key, TrustPolicy } from '../../src/format/schema/generated/types.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import { codeOf, noticeBoard, otherSigner } from '../writer/support.js';
import { Agents } from './agents.js';
import { filePlace, grant, keysOf, leftOf, openLive, request } from './support.js';

type FilePlace = ReturnType<typeof filePlace>;

/** A ledger that is large enough to get an index. */
async function largePlace(): Promise<FilePlace> {
  const place = filePlace();
  const ledger = await openLive(place, { index: false });
  for (let n = 0; n < 5; n += 1)
    await ledger.append({ event: { event_type: 'x.large', n, text: 'a'.repeat(60_000) } });
  await ledger.close();
  expect(statSync(place.path).size).toBeGreaterThan(MIN_INDEXED_BYTES);
  expect(existsSync(`${place.path}.index`)).toBe(false);
  return place;
}

/** Every entry of the index is what the ledger gives. */
async function expectRight({ path }: FilePlace, trust?: TrustPolicy): Promise<void> {
  expect(existsSync(`${path}.index`)).toBe(true);
  expect((await maintainIndex(path, { check: true })).differences).toEqual([]);
  expect(await verifyLedger(path, { ...(trust === undefined ? {} : { trust }) })).toMatchObject({
    verdict: 'ok',
  });
}

async function policyOf({ path }: FilePlace, change: (key: Key) => Key = (key) => key): Promise<TrustPolicy> {
  return { trust_version: '1', keys: (await keysOf(path)).map(change) };
}

it('a large ledger gets an index, over which several act, and one without it', async () => {
  const place = await largePlace();
  const { notices, onNotice } = noticeBoard();
  const ledgers = [
    await openLive(place, { onNotice }),
    await openLive(place, { onNotice }),
    await openLive(place, { onNotice, index: false }),
  ];
  const grantId = await grant(ledgers[0], { meterCaps: { calls: 12, usd: '10' } });
  const outcomes = await Promise.allSettled(
    Array.from({ length: 15 }, (_, n) =>
      ledgers[n % 3].guard('fs.read', { n }, ({ meter }) => meter.add('usd', '0.5'), {
        reserve: { usd: '0.5' },
      }),
    ),
  );
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(12);
  for (const ledger of ledgers) {
    expect(await leftOf(ledger, grantId)).toBe('0');
    expect(await leftOf(ledger, grantId, 'usd')).toBe('4');
  }
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  expect(notices.filter(({ code }) => code !== 'LEDGER_WAITING')).toEqual([]);
  await expectRight(place);
  const next = await openLive(place);
  expect(await leftOf(next, grantId)).toBe('0');
  expect(await next.authorize(request(1))).toMatchObject({ decision: 'deny' });
});

it('what is begun and reserved is known to the next by the index', async () => {
  const place = await largePlace();
  const first = await openLive(place);
  const grantId = await grant(first, { meterCaps: { calls: 5, usd: '10' } });
  const open = await first.authorize(request(1, { calls: 1, usd: 2 }));
  const { recorded } = await first.authorize(request(2, { calls: 1, usd: 3 }));
  const { permission } = await first.start(recorded.eventId, { paramsDigest: request(2).paramsDigest });
  await first.close();
  const second = await openLive(place);
  const balances = await second.balances(grantId);
  const budget = await second.budget(grantId);
  expect(balances).toEqual(budget.balances);
  expect(budget.started.map(({ eventId }) => eventId)).toEqual([permission.startId]);
  expect([await leftOf(second, grantId), await leftOf(second, grantId, 'usd')]).toEqual(['3', '5']);
  await second.abandon(recorded.eventId);
  const startedAt = new Date().toISOString();
  const done = { startedAt, endedAt: startedAt, meterUsed: [], outcome: 'failure' } as const;
  await second.record(open.recorded.eventId, { ...done, errorCode: 'ABANDONED' });
  // What was begun is not given back.
  expect([await leftOf(second, grantId), await leftOf(second, grantId, 'usd')]).toEqual(['4', '7']);
  await second.close();
  await expectRight(place);
});

it('two processes share one index and one budget, also when one of them is killed', async () => {
  const place = await largePlace();
  const ledger = await openLive(place);
  const grantId = await grant(ledger, { meterCaps: { calls: 40, usd: '2' } });
  const task = { path: place.path, agents: 3, reserve: { usd: '0.1' } };
  const agents = new Agents(task);
  const hanging = new Agents({ ...task, hangs: true });
  await Promise.all([agents.until('ready'), hanging.until('ready')]);
  hanging.begin();
  await hanging.until('running', 3);
  agents.begin();
  await agents.until('done', 3);
  await hanging.kill();
  expect(await agents.ended).toBe(0);
  expect(agents.said.filter(({ done }) => done !== undefined)).toHaveLength(17);
  const { started } = await ledger.budget(grantId);
  expect(started).toHaveLength(3);
  expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
  for (const { authorizationId, eventId } of started)
    await ledger.abandon(authorizationId, { start: eventId });
  expect(await leftOf(ledger, grantId, 'usd')).toBe('0');
  await ledger.close();
  await expectRight(place);
});

it.each([
  ['over an index', largePlace],
  ['without one', () => Promise.resolve(filePlace())],
])('programs with and without a trust policy share one budget, %s', async (_name, makePlace) => {
  const place = await makePlace();
  const own = await openLive(place);
  const trust = await policyOf(place);
  const pinned = await openLive(place, { trust });
  const grantId = await grant(pinned, { meterCaps: { calls: 9 } });
  const ledgers = [own, pinned];
  const outcomes = await Promise.allSettled(
    Array.from({ length: 14 }, (_, n) => ledgers[n % 2].guard('fs.read', { n }, () => n)),
  );
  expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(9);
  expect([await leftOf(own, grantId), await leftOf(pinned, grantId)]).toEqual(['0', '0']);
  await Promise.all(ledgers.map((ledger) => ledger.close()));
  expect(await verifyLedger(place.path, { trust })).toMatchObject({ verdict: 'ok' });
  const again = await openLive(place, { trust });
  expect(await leftOf(again, grantId)).toBe('0');
  expect(await codeOf(again.guard('fs.read', {}, () => expect.fail('it was run')))).toBe(
    'RESERVATION_OVER_CAP',
  );
  await again.close();
  if (existsSync(`${place.path}.index`)) await expectRight(place, trust);
});

it('one request for approval is known to the next by the index', async () => {
  const place = await largePlace();
  const first = await openLive(place);
  const approvalRules = [{ tools: ['*'], approvers: ['human:*'] }];
  await grant(first, { meterCaps: { calls: 9 }, approvals: approvalRules });
  const asked = [];
  for (let n = 0; n < 3; n += 1) asked.push(await first.authorize(request(n)));
  await first.close();
  const second = await openLive(place);
  const [, { recorded }] = asked;
  const found = await second.request(recorded.eventId);
  expect(found).toMatchObject({ eventId: recorded.eventId, seq: recorded.seq, status: 'waiting' });
  expect((await second.requests())[1]).toEqual(found);
  await second.close();
});

it('nothing is run where the policy trusts other keys than the ledger declares', async () => {
  const place = await largePlace();
  const own = await openLive(place);
  await grant(own, { meterCaps: { calls: 9 } });
  const trust = await policyOf(place, (key) => ({ ...key, roles: ['event', 'checkpoint'] }));
  const { bytes, keyid } = otherSigner.publicKey;
  const authority: Key = {
    keyid,
    public_key: `ed25519:${Buffer.from(bytes).toString('base64url')}`,
    roles: ['authority'],
    principals: ['*'],
  };
  const pinned = await openLive(place, { trust: { ...trust, keys: [...trust.keys, authority] } });
  const before = place.events().length;
  const run = (): never => expect.fail('it was run');
  expect(await codeOf(pinned.guard('fs.read', {}, run))).toBe('LEDGER_INVALID');
  expect(await codeOf(pinned.authorize(request(1)))).toBe('LEDGER_INVALID');
  expect(place.events()).toHaveLength(before);
  expect(await own.guard('fs.read', {}, () => 'runs')).toBe('runs');
});
