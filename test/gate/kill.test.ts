/** A service that is killed at each step of a call: whoever comes next gives the same answers, and nothing is recorded twice. */

import { mkdirSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { formatQuantity, type Quantity } from '../../src/base/value/quantity.js';
import { expectOk, parse, type RecordJson, Workshop } from '../cli/runner.js';
import { type Answer, eventsIn, type Fault, newLedger, Service } from './service-process.js';

const shop = new Workshop();
const makeLedger = (...caps: string[]): string =>
  newLedger(shop, ...(caps.length === 0 ? ['calls=2', 'usd=1'] : caps));

const CALL = { ref: 'c1', session: 's', tool: 'fs.read', params: { path: '/x' }, reserve: { usd: '0.40' } };
const DONE = { ref: 'c1', session: 's', outcome: 'success', used: { usd: '0.10' } };

const eventsOf = (ledger: string, type: string): RecordJson['event'][] => eventsIn(shop, ledger, type);

/** Asks, and reports; what a client that sees the service die does not know, it asks again. */
async function callOnce(service: Service): Promise<(Answer | undefined)[]> {
  const decided = await service.try('/v1/decide', CALL);
  if (decided === undefined) return [decided];
  return [decided, await service.try('/v1/settle', DONE)];
}

/** Writes of the service: the first is the decision with its start, the second the execution. */
const MOMENTS: readonly (readonly [string, Omit<Fault, 'file'>])[] = [
  ['before the decision is written', { at: 1, manner: 'before' }],
  ['amid the line of the decision', { at: 1, manner: 'torn', bytes: 300 }],
  ['between the decision and its start', { at: 1, manner: 'torn', bytes: 'line' }],
  ['before the last byte of the start', { at: 1, manner: 'torn', bytes: -1 }],
  ['once the decision is written', { at: 1, manner: 'written' }],
  ['before the decision is answered', { at: 1, manner: 'synced' }],
  ['before the execution is written', { at: 2, manner: 'before' }],
  ['amid the line of the execution', { at: 2, manner: 'torn', bytes: 300 }],
  ['once the execution is written', { at: 2, manner: 'written' }],
  ['before the report is answered', { at: 2, manner: 'synced' }],
];

describe.each([
  ['that has all of its ledger in memory', false],
  ['that keeps an index', true],
])('a service %s and is killed', (_name, isIndexed) => {
  it.each(MOMENTS)('%s: the next one goes on where it ended', async (_, fault) => {
    const ledger = makeLedger();
    // A folder that is there already makes a small ledger have one.
    if (isIndexed) mkdirSync(shop.path(`${ledger}.index`));
    const service = await Service.start(shop, ledger, { fault: { ...fault, file: shop.path(ledger) } });
    const [first, reported] = await callOnce(service);
    expect((await service.process.end()).status).toBeNull();
    // It died at the decision or at the report.
    expect([first, reported].filter((answer) => answer !== undefined)).toHaveLength(fault.at - 1);

    const next = await Service.start(shop, ledger);
    const again = await next.ask('/v1/decide', CALL);
    const wasReported = eventsOf(ledger, 'execution').length === 1;
    if (wasReported) expect(again.body).toMatchObject({ effect: 'deny', code: 'AUTHORIZATION_REUSED' });
    else expect(again.body).toMatchObject({ effect: 'allow', ref: 'c1' });
    if (first !== undefined) {
      expect(again.body).toMatchObject({ authorization: first.body['authorization'], is_repeated: true });
      if (!wasReported) expect(again.body).toMatchObject({ start: first.body['start'] });
    }
    const settled = await next.ask('/v1/settle', DONE);
    expect(settled.body).toMatchObject({ authorization: again.body['authorization'] });
    expect(settled.body['recorded'] === null).toBe(wasReported);
    expect((await next.ask('/v1/settle', DONE)).body['recorded']).toBeNull();
    expect((await next.stop()).status).toBe(0);

    expect(eventsOf(ledger, 'authorization')).toHaveLength(2);
    expect(eventsOf(ledger, 'x.northroot.start')).toHaveLength(1);
    expect(eventsOf(ledger, 'execution')).toMatchObject([{ outcome: 'success' }]);
    const report = parse<{ verdict: string; grants: { meters: { unit: string; used: Quantity }[] }[] }>(
      expectOk(shop.run(['verify', ledger, '--format', 'json'])),
    );
    expect(report.verdict).toBe('ok');
    const [grant] = report.grants;
    expect(grant?.meters.map(({ unit, used }) => [unit, formatQuantity(used)])).toEqual([
      ['calls', '1'],
      ['usd', '0.1'],
    ]);
  });
});

it('a service that is killed amid many calls keeps what it answered, and the next one settles all of it', async () => {
  const ledger = makeLedger('calls=1000');
  const service = await Service.start(shop, ledger);
  const call = (n: number): object => ({ ref: `c${n}`, tool: 'fs.read', params: { n } });
  const asked = Array.from({ length: 200 }, (_, n) => service.try('/v1/decide', call(n)));
  await Promise.any(asked);
  await service.kill();
  const answered = (await Promise.all(asked)).flatMap((answer, n) =>
    answer?.body['effect'] === 'allow' ? [{ n, authorization: answer.body['authorization'] }] : [],
  );
  expect(answered.length).toBeGreaterThan(0);

  const next = await Service.start(shop, ledger);
  for (const { n, authorization } of answered) {
    const again = await next.ask('/v1/decide', call(n));
    expect(again.body).toMatchObject({ effect: 'allow', authorization, is_repeated: true });
  }
  const open = eventsOf(ledger, 'x.northroot.start').length;
  expect(open).toBeGreaterThanOrEqual(answered.length);
  for (let n = 0; n < asked.length; n += 1)
    await next.ask('/v1/settle', { ref: `c${n}`, outcome: 'success' });
  await next.stop();
  expect(eventsOf(ledger, 'execution')).toHaveLength(open);
  expectOk(shop.run(['verify', ledger]));
});
