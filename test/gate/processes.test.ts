/** Budgets hold between processes: two services, a program and hooks on one ledger. */

import { spawn } from 'node:child_process';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createSigner, Gate, parsePrivateKey } from '../../src/api/index.js';
import { CLI, expectOk, Workshop } from '../cli/runner.js';
import { event } from '../hook/events.js';
import { eventsIn, newLedger, Service } from './service-process.js';

const shop = new Workshop();
const READ = { tool: 'fs.read', params: { path: '/x' } };
const socketAt = (name: string): readonly string[] => ['--socket', name];

describe('two services on one ledger', () => {
  it('asked for one call at once, give one answer', async () => {
    const ledger = newLedger(shop, 'calls=10');
    const services = await Promise.all(
      ['a.sock', 'b.sock'].map((name) => Service.start(shop, ledger, { args: socketAt(name) })),
    );
    for (let n = 0; n < 5; n += 1) {
      const call = { ...READ, ref: `c${n}` };
      const answers = await Promise.all(services.map((service) => service.ask('/v1/decide', call)));
      const [one, other] = answers.map(({ body }) => body);
      expect(one).toMatchObject({ effect: 'allow', authorization: other?.['authorization'] });
      expect(one).toMatchObject({ start: other?.['start'] });
      expect(answers.filter(({ body }) => body['is_repeated'] === true)).toHaveLength(1);
      const done = { ref: `c${n}`, outcome: 'success' };
      const settled = await Promise.all(services.map((service) => service.ask('/v1/settle', done)));
      expect(settled.filter(({ body }) => body['recorded'] !== null)).toHaveLength(1);
    }
    for (const service of services) await service.stop();
    expect(eventsIn(shop, ledger, 'x.northroot.start')).toHaveLength(5);
    expect(eventsIn(shop, ledger, 'execution')).toHaveLength(5);
    expectOk(shop.run(['verify', ledger]));
  });

  it('asked a hundred times each at once, spend a budget of five exactly', async () => {
    const ledger = newLedger(shop, 'calls=5');
    const services = await Promise.all(
      ['c.sock', 'd.sock'].map((name) => Service.start(shop, ledger, { args: socketAt(name) })),
    );
    const answers = await Promise.all(
      services.flatMap((service, which) =>
        Array.from({ length: 100 }, (_, n) => service.ask('/v1/decide', { ...READ, ref: `${which}-${n}` })),
      ),
    );
    const effects = answers.map(({ body }) => body['effect']);
    expect(effects.filter((effect) => effect === 'allow')).toHaveLength(5);
    expect(effects.filter((effect) => effect === 'deny')).toHaveLength(195);
    for (const service of services) await service.stop();
    expectOk(shop.run(['verify', ledger]));
  });
});

/** A hook of Claude Code, in a process of its own. @returns What it printed */
function hook(ledger: string, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const args = ['hook', 'claude-code', '--ledger', ledger, '--principal', 'agent:a1'];
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: shop.folder,
      env: { PATH: process.env['PATH'], HOME: shop.folder },
    });
    let printed = '';
    child.stdout.on('data', (chunk) => (printed += String(chunk)));
    child.on('close', (status) =>
      status === 0 ? resolve(printed) : reject(new Error(`a hook ended with ${status}`)),
    );
    child.stdin.end(text);
  });
}

describe('a runaway loop of a hundred calls at 0.18 against a budget of 1.00', () => {
  const CALLS = 100;
  const USED = { usd: '0.18' };

  it.each(['one after the other', 'at once'])(
    'by a program, a service and hooks, %s: five run',
    async (how) => {
      // Hooks know no amounts: what binds them is the number of calls.
      const ledger = newLedger(shop, 'usd=1', 'calls=5');
      const service = await Service.start(shop, ledger, { args: socketAt(`${how.length}.sock`) });
      const gate = await Gate.open(shop.path(ledger), {
        signer: createSigner(parsePrivateKey(shop.read(`${ledger}.key`))),
        principalId: 'agent:a1',
        lockTimeoutMs: 60_000,
      });
      onTestFinished(() => gate.close());
      let ran = 0;
      const byProgram = async (ref: string): Promise<void> => {
        const call = { ref, tool: 'fs.read', params: { ref }, reserve: USED };
        if ((await gate.decide(call)).effect !== 'allow') return;
        ran += 1;
        await gate.settle(ref, { outcome: 'success', used: USED });
      };
      const byService = async (ref: string): Promise<void> => {
        const call = { ref, tool: 'fs.read', params: { ref }, reserve: USED };
        if ((await service.ask('/v1/decide', call)).body['effect'] !== 'allow') return;
        ran += 1;
        await service.ask('/v1/settle', { ref, outcome: 'success', used: USED });
      };
      const byHook = async (ref: string): Promise<void> => {
        // An allowed call is none of its business.
        if ((await hook(ledger, event('PreToolUse', { tool_use_id: ref }))) !== '') return;
        ran += 1;
        await hook(ledger, event('PostToolUse', { tool_use_id: ref, tool_response: { stdout: 'hello' } }));
      };
      const call = (_: unknown, n: number): Promise<void> => {
        const by = n % 10 === 1 ? byHook : n % 2 === 0 ? byProgram : byService;
        return by(`c${n}`);
      };
      if (how === 'at once') await Promise.all(Array.from({ length: CALLS }, call));
      else for (let n = 0; n < CALLS; n += 1) await call(undefined, n);
      await service.stop();
      expect(ran).toBe(5);
      expect(eventsIn(shop, ledger, 'execution')).toHaveLength(5);
      expectOk(shop.run(['verify', ledger]));
    },
  );
});
