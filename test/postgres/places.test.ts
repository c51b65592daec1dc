/** Commands take the URL of a database where they take a path: the same ledger, the same answers, and no password shown. */

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { copyLedger, Ledger, LedgerView, openStore, verifyLedger } from '../../src/api/index.js';
import { maintainIndex } from '../../src/log/read/maintain-index.js';
import type { VerifyOptions } from '../../src/rules/verify/run-verification.js';
import { expectError, expectOk, parse, Workshop } from '../cli/runner.js';
import { FILE_CASES, FIXTURES, optionsOf } from '../fixtures/cases.js';
import { sample } from '../slow.js';
import { hasNoPostgres, PostgresServer } from './server.js';

const shop = new Workshop();
const SECRET = 'geheim';

describe.skipIf(hasNoPostgres)('the URL of a database', () => {
  let server: PostgresServer;
  const env = { XDG_STATE_HOME: shop.path('state') };
  const run = (...args: string[]): ReturnType<Workshop['run']> => {
    const end = shop.run(args, { env });
    expect(end.stdout + end.stderr).not.toContain(SECRET);
    return end;
  };
  const url = (name: string): string => server.url(name).replace('postgres@', `postgres:${SECRET}@`);
  const nameOf = (name: string): string => server.url(name);

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  test('in all that a ledger goes through', () => {
    const ledger = url('shop');
    expectError(run('verify', ledger), 2, 'FILE_NOT_FOUND');
    expectOk(run('init', ledger, '--origin', 'example.com/shop'));
    expectError(run('init', ledger), 2, 'LEDGER_EXISTS');
    const grant = ['--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=2', '--expires', '1d'];
    expectOk(run('grant', ledger, ...grant));
    const action = [
      '--principal',
      'agent:a1',
      '--tool',
      'sh.x',
      '--reserve',
      'calls=1',
      '--',
      'sh',
      '-c',
      ':',
    ];
    const { seq } = parse<{ seq: number }>(expectOk(run('authorize', ledger, ...action)));
    expectOk(run('record', ledger, '--auth', String(seq), '--', 'sh', '-c', ':'));
    expectOk(run('checkpoint', ledger));
    expectOk(run('verify', ledger));
    expect(expectOk(run('report', ledger))).toContain(nameOf('shop'));
    for (const args of [
      ['status', ledger],
      ['log', ledger],
      ['log', ledger, '--last', '1', '--index', shop.path('index')],
      ['show', ledger, '1'],
      ['why', ledger, '1'],
      ['budget', ledger],
      ['prove', ledger, '1'],
      ['approvals', ledger],
      ['tiles', ledger, '--out', shop.path('tiles')],
      ['export', ledger, '--bundle', shop.path('bundle.json')],
      ['index', ledger, '--index', shop.path('index'), '--check'],
    ])
      expect(run(...args), args.join(' ')).toMatchObject({ status: 0 });
    expectOk(run('verify', shop.path('tiles')));
    expect(shop.files('state')).toEqual(['state']);
  });

  test('that is malformed, of no server, and of no database', () => {
    expectError(run('verify', `postgres://u:${SECRET}@127.0.0.1/db`), 2, 'STORE_URL_INVALID');
    expectError(run('verify', `postgres://u:${SECRET}#/@127.0.0.1/db#x`), 2, 'STORE_URL_INVALID');
    for (const malformed of [
      `postgres:/u:${SECRET}@127.0.0.1/db#x`,
      `POSTGRESQL:u:${SECRET}@127.0.0.1/db#x`,
      ` postgres://u:${SECRET}@127.0.0.1/db#x`,
      `postgres ://u:${SECRET}@127.0.0.1/db#x`,
      `postgres://u:${SECRET}@127.0.0.1/db#x `,
    ]) {
      for (const command of ['verify', 'init']) expectError(run(command, malformed), 2, 'STORE_URL_INVALID');
      expectError(run('init', url('x'), '--position-witness', malformed), 2, 'STORE_URL_INVALID');
    }
    expect(shop.files('.').filter((name) => /postgres/i.test(name))).toEqual([]);
    expectError(run('verify', url('x').replace('postgres:', 'PostgreSQL:')), 2, 'FILE_NOT_FOUND');
    expectError(run('status', `postgres://u:${SECRET}@127.0.0.1:1/db#x`), 2, 'STORE_UNREACHABLE');
    const noDatabase = url('x').replace('/postgres#', '/none#');
    expectError(run('log', noDatabase), 2, 'FILE_NOT_FOUND');
    const made = run('init', noDatabase);
    expectError(made, 2, 'FILE_NOT_FOUND');
    expect(made.stderr).toContain('createdb');
    expectError(run('index', url('x')), 2, 'USAGE');
    expectError(run('repair', url('x')), 2, 'USAGE');
  });

  test('shows no password of a list of a fleet, nor of what it does not understand', () => {
    const malformed = `postgres://u:${SECRET}@127.0.0.1/db`;
    shop.write('list.txt', [url('shop'), malformed].join('\n'));
    for (const format of ['text', 'json'])
      expect(run('fleet', 'verify', shop.path('list.txt'), '--format', format).status).toBe(2);
    expect(run('fleet', 'verify', shop.path('list.txt')).stdout).toContain('1 ok, 1 undecided');
    const hook = ['hook', 'install', 'claude-code', '--principal', 'agent:a1'];
    const installed = run(...hook, '--ledger', url('shop'), '--settings', shop.path('settings.json'));
    expect(installed).toMatchObject({ status: 0 });
    expect(installed.stderr).toContain('PGPASSWORD');
    expect(shop.read('settings.json')).not.toContain(SECRET);
    const web = `https://u:${SECRET}@[h`;
    for (const args of [
      ['serve', `x=${url('shop')}`],
      ['serve', url('shop'), '--listen', web],
      ['checkpoint', url('shop'), '--witness', web],
      ['checkpoint', url('shop'), '--witness', `https://u:${SECRET}@127.0.0.1:1/`],
      ['llm', url('shop'), '--upstream', web, '--listen', '127.0.0.1:0'],
      ['append', url('shop'), '--lock-timeout', web],
    ])
      expect(run(...args), args.join(' ')).toMatchObject({ status: 2 });
  });

  test('with a named key needs no folder of the state that is there already', () => {
    const ledger = url('elsewhere');
    const key = shop.path('elsewhere.key');
    expectOk(run('keygen', '--out', key));
    expectOk(run('init', ledger, '--key', key));
    const grant = ['--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9', '--expires', '1d'];
    expectOk(run('grant', ledger, '--key', key, ...grant));
    const action = ['--principal', 'agent:a1', '--tool', 'sh.x', '--reserve', 'calls=1', '--attach'];
    for (const [n, [command, ...rest]] of [
      ['checkpoint'],
      ['append', '--checkpoint-every', '1'],
      ['authorize', ...action, '--', 'ls'],
    ].entries()) {
      const end = shop.run([command, ledger, '--key', key, ...rest], {
        input: command === 'append' ? '{"event_type":"x.y","principal_id":"agent:a1"}\n' : '',
        env: { XDG_STATE_HOME: shop.path(`new-state-${n}`) },
      });
      expect(end, command).toMatchObject({ status: 0 });
    }
  });

  test('on two sockets of the same names is two places', () => {
    const here = server.socketUrl('shop');
    const elsewhere = here.replace(/host=[^&]*/, 'host=%2Fnowhere');
    expectError(run('copy', here, elsewhere), 2, 'STORE_UNREACHABLE');
    expectOk(run('copy', here, shop.path('of-socket.jsonl')));
    expectError(run('copy', here, '-'), 2, 'USAGE');
  });

  test('that names no database is that of its user: of two users, two places', async () => {
    for (const user of ['alice', 'bob']) {
      await server.query(`create role ${user} superuser login`);
      await server.query(`create database ${user} owner ${user}`);
    }
    const [alice = '', bob = ''] = ['alice', 'bob'].map(
      (user) => `postgres://${user}@127.0.0.1:${server.port}#x`,
    );
    for (const ledger of [alice, bob]) {
      expectOk(run('init', ledger));
      const grant = ['--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9', '--expires', '1d'];
      expectOk(run('grant', ledger, ...grant));
      const action = ['--principal', 'agent:a1', '--tool', 'sh.x', '--reserve', 'calls=1', '--', 'ls'];
      expectOk(run('authorize', ledger, ...action));
    }
    const states = (): string[] =>
      readdirSync(shop.path('state/northroot')).filter((name) => name.startsWith('x-'));
    expect(states().filter((name) => name.endsWith('.key'))).toHaveLength(2);
    // The same ledgers, named otherwise.
    const before = states();
    const { port } = server;
    for (const [ledger, more] of [
      [`postgres://alice@127.0.0.1:${port}/alice#x`, {}],
      [`postgres://127.0.0.1:${port}/?user=bob#x`, {}],
      ['postgres://bob@127.0.0.1#x', { PGPORT: `${port}` }],
      ['postgres:///?user=bob#x', { PGPORT: `${port}`, PGHOST: '127.0.0.1' }],
      [`postgres://alice@127.0.0.1:${port}/#x`, { PGDATABASE: 'bob' }],
    ] as const) {
      const action = ['--principal', 'agent:a1', '--tool', 'sh.x', '--reserve', 'calls=1', '--', ledger];
      expectOk(shop.run(['authorize', ledger, ...action], { env: { ...env, ...more } }));
    }
    expect(states()).toEqual(before);
  });

  test('copies are byte for byte, either way, and verified alike', async () => {
    const cases = sample(
      FILE_CASES.filter(({ verdict }) => verdict !== 'invalid'),
      12,
    );
    for (const [n, each] of cases.entries()) {
      const from = `${FIXTURES}${each.ledger}`;
      const to = url(`fixture-${n}`);
      const [back, file] = [shop.path(`back-${n}.jsonl`), shop.path(`file-${n}.jsonl`)];
      await copyLedger(from, to);
      await copyLedger(to, back);
      await copyLedger(from, file);
      expect(readFileSync(back)).toEqual(readFileSync(file));
      // A predecessor is read once.
      const options = (): VerifyOptions => ({ now: '2026-01-01T00:00:00Z', ...optionsOf(each) });
      const report = JSON.stringify(await verifyLedger(to, options()));
      const expected = JSON.stringify(await verifyLedger(file, options()));
      expect(report.replaceAll(nameOf(`fixture-${n}`), file), each.ledger).toBe(expected);
    }
  });

  test('an index tells what the ledger does, also after lines were changed', async () => {
    const place = url('indexed');
    const index = shop.path('replica');
    const notices: string[] = [];
    const ask = (by: string | false): Promise<unknown> =>
      new LedgerView(place, { index: by, onNotice: ({ code }) => notices.push(code) }).readStatus({
        now: '2026-01-01T00:00:00Z',
      });
    const ledger = await Ledger.open(place, { create: {}, index });
    const append = async (count: number): Promise<void> => {
      for (let n = 0; n < count; n += 1)
        await ledger.append({ event: { event_type: 'x.test', principal_id: 'agent:a1', n: String(n) } });
    };
    await append(5);
    expect(await ask(index)).toEqual(await ask(false));
    await append(3);
    await ledger.close();
    expect(await ask(index)).toEqual(await ask(false));
    expect(notices).toEqual([]);
    const store = await openStore(place);
    const stamp = await store.stamp?.();
    expect(stamp).toBeDefined();
    const [{ id } = { id: 0 }] = await server.query(`select id from northroot.head where name = 'indexed'`);
    // Of the same length, so that only its hash tells.
    await server.query(
      `update northroot.line set bytes = set_byte(bytes, 100, get_byte(bytes, 100) # 1) where ledger = $1 and seq = 3`,
      [id],
    );
    expect(await store.stamp?.()).not.toBe(stamp);
    await store.close();
    expect(await ask(index)).toEqual(await ask(false));
    expect(notices).toEqual(['INDEX_REBUILT']);
    const { differencesTotal } = await maintainIndex(place, { folder: index, check: true });
    expect(differencesTotal).toBe(0);
  });

  test('an index tells what the ledger does after the database was put back, and another record was appended', async () => {
    const place = url('restored');
    const index = shop.path('of-restored');
    const now = '2026-01-01T00:00:00Z';
    const ask = (by: string | false): Promise<unknown> =>
      new LedgerView(place, { index: by }).readStatus({ now });
    const append = async (n: string): Promise<void> => {
      const ledger = await Ledger.open(place, { create: {}, index });
      await ledger.append({ event: { event_type: 'x.test', principal_id: 'agent:a1', n } });
      await ledger.close();
    };
    await append('1');
    const backup = 'create table backup as select * from';
    await server.query(`${backup} northroot.head where name = 'restored'`);
    await append('2');
    await append('3');
    const before = await ask(index);
    // As a restore does it, which runs no trigger.
    await server.query(`set session_replication_role = replica;
      delete from northroot.line l using backup b where l.ledger = b.id and l.seq >= b.size;
      update northroot.head h set size = b.size, tip = b.tip, end_offset = b.end_offset from backup b where h.id = b.id`);
    expect(await ask(index)).toEqual(await ask(false));
    expect(await ask(index)).not.toEqual(before);
    await append('other');
    await append('others');
    expect(await ask(index)).toEqual(await ask(false));
    const { differencesTotal } = await maintainIndex(place, { folder: index, check: true });
    expect(differencesTotal).toBe(0);
  });
});
