/** A disk that is full: the gate denies, loses nothing, and goes on when there is room. */

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { serveGate } from '../../src/gate/service/serve-gate.js';
import { filePlace, leftOf } from '../agent/support.js';
import { expectOk, Workshop } from '../cli/runner.js';
import { FaultyFileSystem, soundFileSystem } from '../writer/file-systems.js';
import { temporaryFolder } from '../writer/support.js';
import { type Answer, eventsIn, newLedger, send, Service } from './service-process.js';
import { openGate, reopen } from './support.js';

const START = 'x.northroot.start';
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

it('a service that nobody opens anew says that it has failed, to health checks too', async () => {
  const place = filePlace();
  await (await openGate(place)).gate.close();
  const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'once' });
  const gate = await reopen(place, { fileSystem });
  const socket = join(temporaryFolder(), 's.sock');
  const server = await serveGate({ gate, socket });
  onTestFinished(() => server.close());
  expect((await send(socket, '/healthz')).body).toMatchObject({ status: 'ok' });
  for (const ref of ['c1', 'c2'])
    expect(codeOf(await send(socket, '/v1/decide', call(ref)))).toEqual([503, 'LEDGER_FAILED']);
  const health = await send(socket, '/healthz');
  expect([health.status, health.body['status']]).toEqual([503, 'failed']);
  expect(await place.verdict()).toBe('ok');
});

describe.each(['write', 'datasync'] as const)('a %s that fails', (operation) => {
  it.each([
    ['at once', 'once', 1],
    ['when it settles', 'once', 2],
    ['halfway', 'short', 1],
    ['from then on', 'on', 1],
  ] as const)('%s: nothing runs that is not recorded, and another gate goes on', async (_, mode, nth) => {
    const place = filePlace();
    const { gate: first, grantId } = await openGate(place);
    await first.close();
    // Opening syncs once.
    const at = operation === 'datasync' ? nth + 1 : nth;
    const fileSystem = new FaultyFileSystem({ operation, nth: at, errno: 'ENOSPC', mode });
    const faulty = await reopen(place, { fileSystem });
    const ask = { ref: 'c1', tool: 'fs.read', params: {}, reserve: { usd: '0.4' } };
    const done = { outcome: 'success', used: { usd: '0.1' } } as const;
    const decided = await faulty.decide(ask).catch((error: { code: string }) => error.code);
    if (typeof decided === 'string') expect(decided).toBe('LEDGER_FAILED');
    else expect(place.events().filter(({ event_type: type }) => type === START)).toHaveLength(1);
    await faulty.settle(ask, done).catch((error: { code: string }) => error.code);
    await faulty.close().catch(() => undefined);
    const other = await reopen(place, { fileSystem: soundFileSystem });
    await other.decide(ask);
    await other.settle(ask, done);
    const kinds = place.events().map(({ event_type: type }) => type);
    expect(kinds.filter((kind) => kind === START || kind === 'execution')).toEqual([START, 'execution']);
    expect(await leftOf(other.ledger, grantId, 'usd')).toBe('0.9');
    expect(await place.verdict()).toBe('ok');
  });
});

describe('a service whose disk is full', () => {
  it('denies and says so; with room again it goes on, with all that was open', async () => {
    const ledger = newLedger(shop, 'calls=100', 'usd=1');
    const [file, until] = [shop.path(ledger), shop.path(`${ledger}.room`)];
    const service = await Service.start(shop, ledger, { fault: { file, at: 2, manner: 'full', until } });
    expect(codeOf(await service.ask('/v1/decide', call('c1')))).toEqual([200, 'allow']);
    const refused = await service.ask('/v1/decide', call('c2'));
    expect(codeOf(refused)).toEqual([503, 'LEDGER_FAILED']);
    expect(refused.headers['retry-after']).toBe('1');
    const done = { ref: 'c1', outcome: 'success', used: { usd: '0.01' } };
    expect(codeOf(await service.ask('/v1/settle', done))).toEqual([503, 'LEDGER_FAILED']);
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
