/** Every command that was told that something is recorded notices that a database lacks it, for good; and with a witness, every machine. */

import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Ledger } from '../../src/api/index.js';
import { expectError, expectOk, type Run, Workshop } from '../cli/runner.js';
import { hasNoPostgres, PostgresServer } from './server.js';

const shop = new Workshop();
const EVENT = '{"event_type":"x.y","principal_id":"agent:a1"}\n';
const BILLED = `${JSON.stringify({
  request_id: 'r1',
  spend: 0.25,
  prompt_tokens: 10,
  completion_tokens: 2,
  startTime: '2026-03-01T10:00:00Z',
  model: 'gpt-5',
  metadata: { usage_object: { prompt_tokens: 10 } },
})}\n`;
const GRANT = ['--to', 'agent:a1', '--tool', 'sh.*', '--cap', 'calls=9', '--expires', '1d'];

/** Takes a ledger back to where it ended when this was called. */
async function snapshotOf(server: PostgresServer, name: string): Promise<() => Promise<unknown>> {
  const [row] = await server.query(
    'select id, size::int, tip, end_offset::int from northroot.head where name = $1',
    [name],
  );
  if (row === undefined) {
    return async () => {
      const id = '(select id from northroot.head where name = $1)';
      await server.query(`delete from northroot.line where ledger = ${id}`, [name]);
      await server.query('delete from northroot.head where name = $1', [name]);
    };
  }
  const { id, size, tip, end_offset: end } = row;
  return async () => {
    await server.query('delete from northroot.line where ledger = $1 and seq >= $2', [id, size]);
    await server.query('update northroot.head set size = $2, tip = $3, end_offset = $4 where id = $1', [
      id,
      size,
      tip,
      end,
    ]);
  };
}

describe.skipIf(hasNoPostgres)('a database that was put back', () => {
  let server: PostgresServer;
  const run = (state: string, args: readonly string[]): Run =>
    shop.run(args, {
      env: { XDG_STATE_HOME: shop.path(state) },
      input: args[0] === 'append' ? EVENT : '',
    });

  beforeAll(async () => {
    server = await PostgresServer.start();
    shop.write('billed.jsonl', BILLED);
  }, 120_000);
  afterAll(() => server?.stop());

  test.each([
    ['append', []],
    ['checkpoint', []],
    ['grant', GRANT],
    ['import', []],
  ] as const)('is not written to again by who was told that it had done it: %s', async (command, args) => {
    const name = `of-${command}`;
    const ledger = server.url(name);
    const key = shop.path(`${name}.key`);
    expectOk(run('first', ['keygen', '--out', key]));
    expectOk(run('first', ['init', ledger, '--key', key]));
    const put = await snapshotOf(server, name);
    // Another user, who has only done this.
    shop.makeFolder(name);
    shop.write(`${name}/own.key`, shop.read(`${name}.key`), 0o600);
    const signed = ['--key', shop.path(`${name}/own.key`)];
    const words =
      command === 'import'
        ? ['import', shop.path('billed.jsonl'), '--from', 'litellm', '--ledger', ledger, ...signed]
        : [command, ledger, ...signed, ...args];
    expectOk(run(name, words));
    await put();
    for (let n = 0; n < 2; n += 1) expectError(run(name, words), 1, 'LEDGER_ROLLED_BACK');
    // It is told to forget.
    expectOk(run(name, [...words, '--no-position']));
  });

  test('is not made anew by who made it', async () => {
    const put = await snapshotOf(server, 'made');
    expectOk(run('made', ['init', server.url('made')]));
    await put();
    expectError(run('made', ['init', server.url('made')]), 1, 'LEDGER_ROLLED_BACK');
  });

  test('is noticed by programs that open it by its URL', async () => {
    const url = server.url('library');
    const state = process.env['XDG_STATE_HOME'];
    process.env['XDG_STATE_HOME'] = shop.path('library-state');
    onTestFinished(() => {
      if (state === undefined) delete process.env['XDG_STATE_HOME'];
      else process.env['XDG_STATE_HOME'] = state;
    });
    const made = await Ledger.open(url, { create: {}, position: true });
    const put = await snapshotOf(server, 'library');
    await made.append({ event: { event_type: 'x.y', principal_id: 'agent:a1' } });
    await made.close();
    await put();
    await expect(Ledger.open(url, { position: true })).rejects.toMatchObject({ code: 'LEDGER_ROLLED_BACK' });
  });

  test('is noticed by all others too, by their witness; one of files is refused', async () => {
    shop.makeFolder('elsewhere');
    const witness = ['--position-witness', shop.path('elsewhere')];
    const ledger = server.url('witnessed');
    const key = shop.path('witnessed.key');
    expectOk(run('one', ['keygen', '--out', key]));
    expectOk(run('one', ['init', ledger, '--key', key, ...witness]));
    const put = await snapshotOf(server, 'witnessed');
    expectOk(run('one', ['append', ledger, '--key', key, '--no-position', ...witness]));
    await put();
    for (const command of ['append', 'checkpoint'])
      expectError(
        run('other', [command, ledger, '--key', key, '--no-position', ...witness]),
        1,
        'LEDGER_ROLLED_BACK',
      );
    expectError(run('one', ['append', 'file.jsonl', '--create', ...witness]), 2, 'USAGE');
    expectError(run('one', ['copy', ledger, shop.path('copy.jsonl'), ...witness]), 2, 'USAGE');
    await expect(
      Ledger.open(shop.path('file.jsonl'), { create: {}, positionWitness: shop.path('elsewhere') }),
    ).rejects.toMatchObject({ code: 'USAGE' });
    expect(shop.files('.').filter((name) => name.includes('file.jsonl'))).toEqual([]);
  });
});

describe.skipIf(hasNoPostgres)('a witness that cannot be written', () => {
  test('is refused before anything is recorded', async () => {
    const server = await PostgresServer.start();
    onTestFinished(() => server.stop());
    const key = shop.path('unwritable.key');
    const run = (args: readonly string[]): Run =>
      shop.run(args, { env: { XDG_STATE_HOME: shop.path('unwritable') } });
    expectOk(run(['keygen', '--out', key]));
    const ledger = server.url('unwritable');
    const init = ['init', ledger, '--key', key, '--position-witness'];
    expectError(run([...init, shop.path('nowhere/')]), 2, 'FILE_NOT_FOUND');
    expectError(run([...init, '/dev/null']), 2, 'POSITION_MALFORMED');
    expectError(run([...init, '']), 2, 'USAGE');
    expectError(run(['init', ledger, '--key', key, '--position', '']), 2, 'USAGE');
    expectError(run(['verify', ledger]), 2, 'FILE_NOT_FOUND');
    expect(shop.files('.')).not.toContain('nowhere');
  });
});

describe.skipIf(hasNoPostgres)('a server whose standby no commit waits for', () => {
  test('is written to with a witness alone, which the refusal names', async () => {
    const primary = await PostgresServer.start();
    onTestFinished(() => primary.stop());
    const standby = await primary.startStandby('standby1');
    onTestFinished(() => standby.stop());
    await primary.waitForStandbys('async');
    const ledger = primary.url('shop');
    const env = { XDG_STATE_HOME: shop.path('async') };
    const run = (args: readonly string[], input = ''): Run => shop.run(args, { env, input });
    const key = shop.path('async.key');
    expectOk(run(['keygen', '--out', key]));
    const refused = run(['init', ledger, '--key', key]);
    expectError(refused, 2, 'STORE_NOT_DURABLE');
    expect(refused.stderr).toContain('--position-witness');

    const elsewhere = await PostgresServer.start();
    onTestFinished(() => elsewhere.stop());
    for (const [n, place] of [shop.path('async.witness'), elsewhere.url('shop')].entries()) {
      const url = primary.url(`shop-${n}`);
      const signed = ['--key', key, '--position-witness', place];
      expectOk(run(['init', url, ...signed]));
      expectOk(run(['append', url, ...signed], EVENT));
      expectOk(run(['grant', url, ...signed, ...GRANT]));
      expectOk(run(['checkpoint', url, ...signed]));
      expectOk(run(['verify', url]));
      expectError(run(['append', url, '--key', key], EVENT), 2, 'STORE_NOT_DURABLE');
      expectError(
        run(['append', url, ...signed, '--durability', 'replicated'], EVENT),
        2,
        'STORE_NOT_DURABLE',
      );
    }
  });
});
