/** Several services of one ledger: one decides, the others forward to it, or take over when it is gone. */

import { describe, expect, it } from 'vitest';
import { expectOk, Workshop } from '../cli/runner.js';
import { type PeerService, PeerServices } from './peer-services.js';
import { eventsIn, newLedger } from './service-process.js';

const shop = new Workshop();
const callOf = (n: number): object => ({ ref: `c${n}`, tool: 'fs.read', params: { n } });

/** Asks for many calls at once through all services, while something happens to them. */
async function load(
  services: PeerServices,
  count: number,
  width: number,
  during: (done: number) => void,
): Promise<{ answers: Record<string, unknown>[]; odd: unknown[] }> {
  const answers: Record<string, unknown>[] = [];
  const odd: unknown[] = [];
  let [next, done] = [0, 0];
  const client = async (which: number): Promise<void> => {
    while (next < count) {
      const n = (next += 1) - 1;
      answers[n] = await services.askAny(which + n, '/v1/decide', callOf(n), odd, 10_000);
      during((done += 1));
    }
  };
  await Promise.all(Array.from({ length: width }, (_, which) => client(which)));
  return { answers, odd };
}

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
    const { answers, odd } = await load(services, 150, 12, (done) => {
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
    const during = load(services, 40, 6, () => undefined);
    await services.settled(others);
    const { answers } = await during;
    leader.kill('SIGCONT');
    // A busy machine may have yet another one lead; of two one is left.
    await services.settled();
    expect(answers[0]).toMatchObject({ authorization: first['authorization'] });
    const after = await load(services, 80, 6, () => undefined);
    expect([...odd, ...after.odd]).toEqual([]);
    expect(after.answers.slice(0, 40).map(({ authorization }) => authorization)).toEqual(
      answers.map(({ authorization }) => authorization),
    );
    await services.stop();
    expectExact(ledger, after.answers, 60);
  });
});
