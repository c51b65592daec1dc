/** One service with several ledgers: each on a socket of its own, and all of them on one address. */

import { request } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectError, expectOk, type Running, Workshop } from '../cli/runner.js';
import { eventsIn, newLedger, send } from './service-process.js';

const shop = new Workshop();
const READ = { ref: 'c1', tool: 'fs.read', params: { secret: 'PASSWORD' } };

interface Served {
  readonly running: Running;
  readonly names: readonly string[];
  readonly url: string;
  readonly token: string;
  readonly reader: string;
  readonly ask: (path: string, body?: unknown, token?: string) => Promise<{ status: number; text: string }>;
}

async function serve(...caps: readonly string[]): Promise<Served> {
  const ledgers = caps.map((cap) => newLedger(shop, cap));
  const names = ledgers.map((ledger) => ledger.replace('.jsonl', ''));
  const tokens = `${names.join('-')}.json`;
  const make = (name: string, ...more: string[]): string =>
    expectOk(shop.run(['gate', 'token', tokens, name, '--principal', 'agent:a1', ...more])).trim();
  const token = make('caller');
  const reader = make('reader', '--may', 'read');
  const running = shop.start([
    'serve',
    ...ledgers,
    '--principal',
    'agent:a1',
    '--tokens',
    tokens,
    '--listen',
    '127.0.0.1:0',
  ]);
  onTestFinished(() => running.kill('SIGKILL'));
  await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
  const url = /http:\/\/[\d.:]+/.exec(running.stdout)?.[0] ?? '';
  const ask: Served['ask'] = (path, body, own) =>
    new Promise((resolve, reject) => {
      const headers = {
        'content-type': 'application/json',
        ...(own === undefined ? {} : { authorization: `Bearer ${own}` }),
      };
      const asked = request(`${url}${path}`, { method: body === undefined ? 'GET' : 'POST', headers });
      asked.on('response', (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => resolve({ status: response.statusCode ?? 0, text }));
      });
      asked.on('error', reject);
      asked.end(body === undefined ? undefined : JSON.stringify(body));
    });
  return { running, names, url, token, reader, ask };
}

describe('a service without the key of its ledger', () => {
  it.each([
    ['says so when it starts', [], true],
    ['says nothing where no signatures are required', ['--unsigned'], false],
  ])('%s', async (_what, args, isSaid) => {
    const ledger = `keyless-${args.length}.jsonl`;
    expectOk(shop.run(['init', ledger, ...args]));
    if (isSaid) shop.remove(`${ledger}.key`);
    const running = shop.start(['serve', ledger]);
    onTestFinished(() => running.kill('SIGKILL'));
    await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
    expect(running.stderr.includes(`${ledger}.key`)).toBe(isSaid);
  });
});

describe('a service of two ledgers', () => {
  it('decides by each on its own socket and below its own path, and keeps them apart', async () => {
    const { running, names, url, token, ask } = await serve('calls=1', 'calls=2');
    const [a = '', b = ''] = names;
    const sockets = names.map((name) => shop.path(`${name}.jsonl.sock`));
    expect(running.stdout.split('\n').slice(0, -1)).toEqual([
      ...names.map((name) => `unix:${name}.jsonl.sock`),
      ...names.map((name) => `${url}/ledgers/${name}`),
    ]);
    // The same id is another call in another ledger.
    for (const socket of sockets)
      expect((await send(socket, '/v1/decide', READ, token)).body).toMatchObject({
        effect: 'allow',
        is_repeated: false,
      });
    const again = await ask(`/ledgers/${a}/v1/decide`, READ, token);
    expect(JSON.parse(again.text)).toMatchObject({ effect: 'allow', is_repeated: true });
    const second = { ...READ, ref: 'c2' };
    const effects = await Promise.all(
      [a, b].map(async (name) => (await ask(`/ledgers/${name}/v1/decide`, second, token)).text),
    );
    expect(effects.map((text) => (JSON.parse(text) as { effect: string }).effect)).toEqual(['deny', 'allow']);
    running.kill('SIGTERM');
    expect((await running.end()).status).toBe(0);
    const starts = [a, b].map((name) => eventsIn(shop, `${name}.jsonl`, 'x.northroot.start').length);
    expect(starts).toEqual([1, 2]);
    for (const name of [a, b]) expectOk(shop.run(['verify', `${name}.jsonl`]));
  });

  it('tells of both by /healthz and /metrics, and of each in its log', async () => {
    const { running, names, token, reader, ask } = await serve('calls=1', 'calls=2');
    const [a = '', b = ''] = names;
    await ask(`/ledgers/${b}/v1/decide`, READ, token);
    expect(JSON.parse((await ask('/healthz')).text)).toMatchObject({
      status: 'ok',
      ledgers: { [a]: { status: 'ok', records: 2 }, [b]: { status: 'ok', records: 4 } },
    });
    expect((await ask('/metrics')).status).toBe(401);
    expect((await ask('/metrics', undefined, token)).status).toBe(403);
    const { text } = await ask('/metrics', undefined, reader);
    expect(text).toContain(`northroot_decisions_total{ledger="${b}",effect="allow",code="ALLOW"} 1`);
    expect(text).toContain(`northroot_open_calls{ledger="${a}"} 0`);
    expect(text).toContain(`northroot_open_calls{ledger="${b}"} 1`);
    expect(text).toContain(`northroot_decision_seconds_bucket{ledger="${b}",le="+Inf"} 1`);
    const types = text.split('\n').filter((line) => line.startsWith('# TYPE '));
    expect(new Set(types).size).toBe(types.length);
    const line = /^(?:#.*|[a-z_]+\{[^}]*\} [-+.e\d]+|)$/;
    expect(text.split('\n').filter((each) => !line.test(each))).toEqual([]);
    await running.until(({ stderr }) => stderr.includes(`"ledger":"${b}"`));
    expect(running.stderr).not.toContain('PASSWORD');
  });

  it('has nothing elsewhere, and asks for a token everywhere', async () => {
    const { names, token, ask } = await serve('calls=1', 'calls=2');
    const [a = ''] = names;
    for (const path of ['/v1/decide', '/ledgers/none/v1/decide', `/ledgers/${a}`, `/ledgers/${a}x/v1/decide`])
      expect([path, (await ask(path, READ, token)).status]).toEqual([path, 404]);
    expect((await ask(`/ledgers/${a}/v1/decide`, READ)).status).toBe(401);
    expect((await ask(`/ledgers/${a}/approvals`)).status).toBe(200);
    expect((await ask(`/ledgers/${a}/../../healthz`)).status).toBe(200);
  });
});

describe('ledgers that cannot be served together', () => {
  it('have one name', () => {
    shop.makeFolder('other');
    const ledger = newLedger(shop, 'calls=1');
    expectError(shop.run(['serve', ledger, `other/${ledger}`]), 2, 'USAGE');
    expectError(shop.run(['serve', ledger, ledger]), 2, 'USAGE');
  });

  it('or are given one socket', () => {
    const ledgers = [newLedger(shop, 'calls=1'), newLedger(shop, 'calls=1')];
    expectError(shop.run(['serve', ...ledgers, '--socket', 's.sock']), 2, 'USAGE');
  });

  it('or one of them cannot be opened: then none is', () => {
    const ledger = newLedger(shop, 'calls=1');
    expectError(shop.run(['serve', ledger, 'none.jsonl']), 2, 'FILE_NOT_FOUND');
    expect(shop.has(`${ledger}.sock`)).toBe(false);
  });
});

describe('an approver’s key', () => {
  it('that could not sign for whom it is given is refused before anything is served', async () => {
    const ledger = newLedger(shop, 'calls=1');
    for (const name of ['olga', 'stranger']) expectOk(shop.run(['keygen', '--out', `${name}.pem`]));
    expectOk(shop.run(['key', 'add', ledger, 'olga.pem', '--role', 'event', '--for', 'human:olga']));
    const args = ['serve', ledger, '--principal', 'agent:a1', '--approver-key'];
    for (const wrong of [
      'human:olga=stranger.pem',
      'human:otto=olga.pem',
      'olga=olga.pem',
      'human:olga=',
      'olga.pem',
    ]) {
      expectError(shop.run([...args, wrong]), 2, 'USAGE');
      expect([wrong, shop.has(`${ledger}.sock`)]).toEqual([wrong, false]);
    }
    const twice = [...args, 'human:olga=olga.pem', '--approver-key', 'human:olga=stranger.pem'];
    expectError(shop.run(twice), 2, 'USAGE');
    const running = shop.start([...args, 'human:olga=olga.pem']);
    onTestFinished(() => running.kill('SIGKILL'));
    await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
    expect(running.hasEnded).toBe(false);
  });

  it('that was revoked is told of, and what needs no approval is decided on', async () => {
    const ledger = newLedger(shop, 'calls=1');
    expectOk(shop.run(['keygen', '--out', 'left.pem']));
    const added = expectOk(
      shop.run(['key', 'add', ledger, 'left.pem', '--role', 'event', '--for', 'human:eva']),
    );
    const { keyid } = (JSON.parse(added) as { key: { keyid: string } }).key;
    expectOk(shop.run(['key', 'revoke', ledger, keyid]));
    const args = ['serve', ledger, '--principal', 'agent:a1', '--approver-key', 'human:eva=left.pem'];
    const running = shop.start(args);
    onTestFinished(() => running.kill('SIGKILL'));
    await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
    expect(running.hasEnded).toBe(false);
    expect(running.stderr).toContain(keyid);
  });
});

describe('the key of a service', () => {
  it.each<[string, readonly string[]]>([
    ['serve', ['--principal', 'agent:a1']],
    ['llm', ['--principal', 'agent:a1', '--upstream', 'http://127.0.0.1:9', '--listen', '127.0.0.1:0']],
  ])('by which %s could decide on nothing is refused before anything is served', (command, rest) => {
    const ledger = newLedger(shop, 'calls=1');
    const [stranger, other, left] = ['stranger', 'other', 'left'].map((name) => `${command}-${name}.pem`);
    for (const file of [stranger, other, left]) expectOk(shop.run(['keygen', '--out', file as string]));
    const add = ['key', 'add', ledger, '--role', 'event', '--for'];
    expectOk(shop.run([...add, 'agent:b2', other as string]));
    const added = expectOk(shop.run([...add, 'agent:a1', left as string]));
    const { keyid } = (JSON.parse(added) as { key: { keyid: string } }).key;
    expectOk(shop.run(['key', 'revoke', ledger, keyid]));
    for (const [key, code] of [
      [stranger, 'KEY_UNKNOWN'],
      [other, 'KEY_NOT_FOR_PRINCIPAL'],
      [left, 'KEY_NOT_VALID_HERE'],
    ] as const) {
      expectError(shop.run([command, ledger, ...rest, '--key', key as string]), 1, code);
      expect(shop.has(`${ledger}.sock`)).toBe(false);
    }
  });

  it('may be any where signatures are optional', async () => {
    expectOk(shop.run(['init', 'optional.jsonl', '--unsigned']));
    expectOk(shop.run(['keygen', '--out', 'any.pem']));
    const running = shop.start(['serve', 'optional.jsonl', '--principal', 'agent:a1', '--key', 'any.pem']);
    onTestFinished(() => running.kill('SIGKILL'));
    await running.until(({ stderr, hasEnded }) => stderr.includes('serves ') || hasEnded);
    expect(running.hasEnded).toBe(false);
  });
});
