/** A disk that is full: the gate denies, loses nothing, and goes on when there is room. */

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectOk, Workshop } from '../cli/runner.js';
import { type Answer, eventsIn, newLedger, Service } from './service-process.js';

const shop = new Workshop();
const call = (ref: string): object => ({ ref, tool: 'fs.read', params: { ref }, reserve: { usd: '0.01' } });
const codeOf = ({ status, body }: Answer): unknown[] => [status, body.error?.code ?? body['effect']];

/** Asks until the service is as it was. */
async function untilItRecovers(service: Service, ref: string): Promise<Answer> {
  for (;;) {
    const answer = await service.ask('/v1/decide', call(ref));
    if (answer.status === 200) return answer;
    expect(codeOf(answer)).toEqual([503, 'LEDGER_FAILED']);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

describe('a service whose disk is full', () => {
  it('denies and says so, to health checks too; with room again it goes on, with all that was open', async () => {
    const ledger = newLedger(shop, 'calls=100', 'usd=1');
    const [file, until] = [shop.path(ledger), shop.path(`${ledger}.room`)];
    const service = await Service.start(shop, ledger, { fault: { file, at: 2, manner: 'full', until } });
    expect(codeOf(await service.ask('/v1/decide', call('c1')))).toEqual([200, 'allow']);
    const refused = await service.ask('/v1/decide', call('c2'));
    expect(codeOf(refused)).toEqual([503, 'LEDGER_FAILED']);
    expect(refused.headers['retry-after']).toBe('1');
    const done = { ref: 'c1', outcome: 'success', used: { usd: '0.01' } };
    expect(codeOf(await service.ask('/v1/settle', done))).toEqual([503, 'LEDGER_FAILED']);
    // Until a call is asked for again, nobody knows whether there is room.
    const before = await service.ask('/healthz');
    expect([200, 503]).toContain(before.status);
    expect(eventsIn(shop, ledger, 'execution')).toEqual([]);

    shop.write(`${ledger}.room`, '');
    const answer = await untilItRecovers(service, 'c2');
    expect(answer.body).toMatchObject({ effect: 'allow', is_repeated: false });
    expect((await service.ask('/healthz')).body).toMatchObject({ status: 'ok' });
    expect(codeOf(await service.ask('/v1/decide', call('c1')))).toEqual([200, 'allow']);
    expect((await service.ask('/v1/settle', done)).body['recorded']).toMatchObject({ verdict: 'ok' });
    expect((await service.stop()).status).toBe(0);
    expect(eventsIn(shop, ledger, 'x.northroot.start')).toHaveLength(2);
    expectOk(shop.run(['verify', ledger]));
  });

  it('does so on a real disk too', async (context) => {
    mkdirSync(shop.path('disk'));
    const mount = (kib: number, ...more: string[]): boolean => {
      const options = [...more, `size=${kib}k`].join(',');
      return spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', shop.path('disk')]).status === 0;
    };
    if (!mount(64)) context.skip('a disk cannot be mounted here');
    onTestFinished(() => void spawnSync('umount', ['-l', shop.path('disk')]));
    const ledger = join('disk', 'l.jsonl');
    expectOk(shop.run(['init', ledger]));
    const caps = ['--cap', 'calls=1000', '--cap', 'usd=10'];
    expectOk(shop.run(['grant', ledger, '--to', 'agent:a1', '--tool', 'fs.*', ...caps]));
    const service = await Service.start(shop, ledger);
    let allowed = 0;
    let answer = await service.ask('/v1/decide', call('c0'));
    for (; answer.status === 200 && allowed < 1_000; allowed += 1)
      answer = await service.ask('/v1/decide', call(`c${allowed + 1}`));
    expect(codeOf(answer)).toEqual([503, 'LEDGER_FAILED']);
    expect(allowed).toBeGreaterThan(5);
    expect(mount(4_096, 'remount')).toBe(true);
    await untilItRecovers(service, 'more');
    for (let n = 0; n < allowed; n += 1) {
      const settled = await service.ask('/v1/settle', { ref: `c${n}`, outcome: 'success' });
      expect(settled.body['recorded']).toMatchObject({ verdict: 'ok' });
    }
    await service.stop();
    expectOk(shop.run(['verify', ledger]));
  });
});
