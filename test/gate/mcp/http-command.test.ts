/** `northroot mcp --http`: what it prints, how it ends, and what is left when it or the server is killed. */

import { describe, expect, it } from 'vitest';
import { expectError, expectOk, type Running, Workshop } from '../../cli/runner.js';
import { callOf, parsed, post } from './http-client.js';
import { modernHeaders, startUpstream, type Upstream } from './http-upstream.js';

const shop = new Workshop();
let count = 0;

function makeLedger(calls = 3): string {
  count += 1;
  const name = `l${count}.jsonl`;
  expectOk(shop.run(['init', name]));
  expectOk(shop.run(['grant', name, '--to', 'agent:mcp', '--tool', 'mcp.up.*', '--cap', `calls=${calls}`]));
  return name;
}

async function start(ledger: string, { url }: Upstream, ...more: string[]): Promise<[Running, string]> {
  const args = ['mcp', ledger, '--server', 'up', '--http', url, '--listen', '127.0.0.1:0', ...more];
  const proxy = shop.start(args);
  await proxy.until(({ stdout, hasEnded }) => stdout.endsWith('/mcp\n') || hasEnded);
  return [proxy, proxy.stdout.trim()];
}

function call(url: string, tool: string, id = 1): ReturnType<typeof post> {
  const message = callOf(tool, id);
  // Whoever is killed takes the connection with it.
  return post(url, message, modernHeaders(message), { onSent: () => undefined });
}

function outcomes(ledger: string): string[] {
  return shop
    .records(ledger)
    .filter(({ event }) => event.event_type === 'execution')
    .map(({ event }) => String(event['outcome']));
}

const verify = (ledger: string): void => expectOk(shop.run(['verify', ledger])) as unknown as void;

describe('the command', () => {
  it('prints the URL, guards, and ends at SIGTERM', async () => {
    const upstream = await startUpstream();
    const ledger = makeLedger(1);
    const [proxy, url] = await start(ledger, upstream);
    expect(new URL(url)).toMatchObject({ hostname: '127.0.0.1', pathname: '/mcp' });
    expect(parsed(await call(url, 'echo'))['result']).not.toHaveProperty('isError');
    expect(parsed(await call(url, 'echo'))['result']).toHaveProperty('isError', true);
    proxy.kill('SIGTERM');
    const { status, stderr } = await proxy.end();
    expect(status).toBe(0);
    expect(stderr).toContain('RESERVATION_OVER_CAP');
    expect(upstream.calls()).toBe(1);
    expect(outcomes(ledger)).toEqual(['success']);
    verify(ledger);
  });

  it('refuses options that do not go together, and a URL that is none', () => {
    const ledger = makeLedger();
    const http = ['--server', 'up', '--http', 'http://127.0.0.1:9/mcp'];
    for (const args of [
      [...http, '--', 'cat'],
      ['--server', 'up', '--legacy', '--', 'cat'],
      ['--server', 'up', '--listen', '127.0.0.1:0', '--', 'cat'],
      ['--server', 'up', '--allow-origin', 'https://a.example', '--', 'cat'],
      ['--gate', ...http],
      ['--http', 'http://127.0.0.1:9/mcp'],
      ['--server', 'up', '--http', 'file:///etc/passwd', '--listen', '127.0.0.1:0'],
      ['--server', 'up', '--http', 'nothing', '--listen', '127.0.0.1:0'],
      ['--server', 'up', '--http', 'http://u:SECRET@127.0.0.1/mcp', '--listen', '127.0.0.1:0'],
      ['--server', 'up'],
    ]) {
      const run = shop.run(['mcp', ledger, ...args]);
      expectError(run, 2, 'USAGE');
      expect(run.stderr).not.toContain('SECRET');
    }
  });

  it('ends where it has no ledger to ask', () => {
    const run = shop.run([
      ...['mcp', 'missing.jsonl', '--server', 'up', '--http', 'http://127.0.0.1:9/mcp'],
      ...['--listen', '127.0.0.1:0'],
    ]);
    expect(run.status).not.toBe(0);
    expect(run.stdout).toBe('');
    expect(shop.has('missing.jsonl')).toBe(false);
  });
});

describe('killed', () => {
  it.each(['mute', 'hang'])(
    'while a call runs (%s), the call stays charged, and another goes on',
    async (tool) => {
      const upstream = await startUpstream();
      const ledger = makeLedger(2);
      const [proxy, url] = await start(ledger, upstream);
      const running = call(url, tool);
      await proxy.until(() => upstream.calls(tool) === 1);
      proxy.kill('SIGKILL');
      await proxy.end();
      await running;
      expect(await upstream.seen[0]?.over).toBe(false);
      verify(ledger);
      expect(outcomes(ledger)).toEqual([]);
      const [next, again] = await start(ledger, upstream);
      expect((await call(again, 'echo')).text).not.toContain('isError');
      expect((await call(again, 'echo')).text).toContain('isError');
      next.kill('SIGTERM');
      await next.end();
      expect(upstream.calls()).toBe(2);
      while (outcomes(ledger).length < 2) expectOk(shop.run(['abandon', ledger, '--older-than', '1s']));
      expect(outcomes(ledger).sort()).toEqual(['success', 'unknown']);
      verify(ledger);
    },
  );

  it('at once after an answer, no more than was allowed was done', async () => {
    const upstream = await startUpstream();
    const ledger = makeLedger(3);
    for (let turn = 0; turn < 4; turn += 1) {
      const [proxy, url] = await start(ledger, upstream);
      await call(url, 'progress', turn);
      proxy.kill('SIGKILL');
      await proxy.end();
      verify(ledger);
    }
    expect(upstream.calls()).toBe(3);
    // What it did not settle stays reserved.
    const { starts } = JSON.parse(expectOk(shop.run(['budget', ledger, '--format', 'json']))) as {
      starts: object[];
    };
    expect(outcomes(ledger).length + starts.length).toBe(3);
  });

  it('a server takes its calls with it: how they ended is unknown', async () => {
    const upstream = await startUpstream();
    const ledger = makeLedger();
    const [proxy, url] = await start(ledger, upstream);
    const running = call(url, 'hang');
    await proxy.until(() => upstream.calls('hang') === 1);
    await upstream.close();
    expect((await running).isWhole).toBe(false);
    expect((await call(url, 'echo')).status).toBe(502);
    proxy.kill('SIGTERM');
    await proxy.end();
    expect(outcomes(ledger)).toEqual(['unknown', 'failure']);
    verify(ledger);
  });
});
