/** Several services of one ledger: one decides, the others forward to it, or take over when it is gone. */

import { describe, expect, it } from 'vitest';
import { expectOk, Workshop } from '../cli/runner.js';
import { type PeerService, PeerServices } from './peer-services.js';
import { eventsIn, newLedger } from './service-process.js';

const shop = new Workshop();
const callOf = (n: number): object => ({ ref: `c${n}`, tool: 'fs.read', params: { n } });

const callsOf = (count: number): object[] => Array.from({ length: count }, (_, n) => callOf(n));

/** What was acknowledged is in the ledger, once; what was allowed is no more than the cap. */
function expectExact(ledger: string, answers: readonly Record<string, unknown>[], cap: number): void {
  const ids = shop
    .records(ledger)
    .flatMap(({ event }) => (event.event_type === 'authorization' ? [`sha-256:${event.event_id.b64}`] : []));
  const allowed = answers.filter(({ effect }) => effect === 'allow');
  expect(allowed).toHaveLength(cap);
  for (const { authorization } of answers) expect(ids.filter((id) => id === authorization)).toHaveLength(1);
  expect(new Set(answers.map(({ authorization }) => authorization)).size).toBe(answers.length);
  const keys = eventsIn(shop, ledger, 'authorization').flatMap((event) => {
    const { action } = event['authorization'] as { readonly action?: { readonly request_key?: string } };
    const key = action?.request_key;
    return event['decision'] === 'allow' && key !== undefined ? [key] : [];
  });
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys).toHaveLength(cap);
  expect(eventsIn(shop, ledger, 'x.northroot.start')).toHaveLength(cap);
  expectOk(shop.run(['verify', ledger]));
}

describe('three services of one ledger', () => {
  it('one leads, and the others forward to it; each knows the clients itself', async () => {
    const ledger = newLedger(shop, 'calls=10');
    const services = await PeerServices.start(shop, ledger, 3);
    const leader = await services.settled();
    const followers = services.all.filter((each) => each !== leader);
    const [first] = followers as [PeerService];
    const { body } = await first.ask('/v1/decide', services.token, callOf(1));
    expect(body).toMatchObject({ effect: 'allow', is_repeated: false });
    for (const each of services.all) {
      const again = await each.ask('/v1/decide', services.token, callOf(1));
      expect(again.body).toMatchObject({ authorization: body['authorization'], is_repeated: true });
      const open = await each.ask('/v1/open', services.token);
      expect(open.body['open']).toMatchObject([{ ref: 'c1' }]);
      expect((await each.ask('/v1/decide', 'nr_other', callOf(2))).body).toMatchObject({
        error: { code: 'TOKEN_INVALID' },
      });
      const foreign = { ...callOf(2), principal: 'human:olga' };
      expect((await each.ask('/v1/decide', services.token, foreign)).body).toMatchObject({
        error: { code: 'NOT_ALLOWED' },
      });
    }
    for (const { process } of followers) expect(process.stderr).toMatch(/"forwarded":true/);
    expect(leader.process.stderr).not.toMatch(/"forwarded":true/);
    // What is not known to a follower never comes to the leader.
    expect(leader.process.stderr.match(/TOKEN_INVALID/g)).toHaveLength(1);
    const settled = await first.ask('/v1/settle', services.token, { ref: 'c1', outcome: 'success' });
    expect(settled.body['recorded']).toMatchObject({ verdict: 'ok' });
    expect((await services.stop()).map(({ status }) => status)).toEqual([0, 0, 0]);
    expectExact(ledger, [body], 1);
  });

  it('whose leader is killed under load: nothing is lost, nothing is doubled, and another one leads', async () => {
    const ledger = newLedger(shop, 'calls=100');
    const services = await PeerServices.start(shop, ledger, 3);
    const leader = await services.settled();
    const odd: unknown[] = [];
    const answers = await services.load(callsOf(150), 12, odd, (done) => {
      if (done === 30) leader.kill('SIGKILL');
    });
    expect(odd).toEqual([]);
    expect(answers).toHaveLength(150);
    const left = services.all.filter((each) => each !== leader);
    const second = await services.settled(left);
    second.kill('SIGKILL');
    const [last] = left.filter((each) => each !== second) as [PeerService];
    const more = await services.askAny(0, '/v1/decide', callOf(1), odd);
    expect(more).toMatchObject({ authorization: answers[1]?.['authorization'], is_repeated: true });
    expect(await last.role()).toBe('leader');
    await services.stop();
    expectExact(ledger, answers, 100);
  });

  it('whose leader is paused and goes on: one of two leaders is left, and nothing is doubled', async () => {
    const ledger = newLedger(shop, 'calls=60');
    const services = await PeerServices.start(shop, ledger, 3);
    const leader = await services.settled();
    const others = services.all.filter((each) => each !== leader);
    // Between two requests, so that it does not hold the lock of the file for good.
    const odd: unknown[] = [];
    const first = await services.askAny(0, '/v1/decide', callOf(0), odd);
    await new Promise((resolve) => setTimeout(resolve, 700));
    leader.kill('SIGSTOP');
    const during = services.load(callsOf(40), 6, odd);
    await services.settled(others);
    const answers = await during;
    leader.kill('SIGCONT');
    // A busy machine may have yet another one lead; of two one is left.
    await services.settled();
    expect(answers[0]).toMatchObject({ authorization: first['authorization'] });
    const after = await services.load(callsOf(80), 6, odd);
    expect(odd).toEqual([]);
    const idsOf = (all: typeof answers): unknown[] => all.map(({ authorization }) => authorization);
    expect(idsOf(after.slice(0, 40))).toEqual(idsOf(answers));
    await services.stop();
    expectExact(ledger, after, 60);
  });
});
