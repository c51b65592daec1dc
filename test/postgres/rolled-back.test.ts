/** Every command that was told that something is recorded notices that a database lacks it, for good; and with a witness, every machine. */

import { existsSync, renameSync } from 'node:fs';
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
  });
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

describe.skipIf(hasNoPostgres)('a witness that is not there', () => {
  let server: PostgresServer;
  let elsewhere: PostgresServer;
  const run = (args: readonly string[]): Run =>
    shop.run(args, { env: { XDG_STATE_HOME: shop.path('gone') }, input: args[0] === 'append' ? EVENT : '' });
  const sizeOf = async (name: string): Promise<unknown> =>
    (await server.query('select size::int from northroot.head where name = $1', [name]))[0]?.['size'];

  beforeAll(async () => {
    [server, elsewhere] = await Promise.all([PostgresServer.start(), PostgresServer.start()]);
  });
  afterAll(() => Promise.all([server?.stop(), elsewhere?.stop()]));

  const kinds = ['file', 'folder', 'database'] as const;
  /** Where a witness is; how it is taken away and put back, and begun as the refusal says. */
  function placeOf(kind: (typeof kinds)[number], name: string) {
    const row = "select size, tip from northroot.witness where name = '" + name + "'";
    if (kind === 'database') {
      let kept: Record<string, unknown> | undefined;
      return {
        place: elsewhere.url(name),
        take: async () => {
          [kept] = await elsewhere.query(row);
          await elsewhere.query('delete from northroot.witness where name = $1', [name]);
        },
        isThere: async () => (await elsewhere.query(row)).length === 1,
        putBack: () =>
          elsewhere.query('insert into northroot.witness values ($1, $2, $3)', [
            name,
            kept?.['size'],
            kept?.['tip'],
          ]),
        begin: (hint: string) => elsewhere.query(/insert into .*/.exec(hint)?.[0] ?? ''),
      };
    }
    const file = kind === 'file' ? `${name}.witness` : `disk-${name}/${name}.witness`;
    if (kind === 'folder') shop.makeFolder(`disk-${name}`);
    return {
      place: kind === 'file' ? shop.path(file) : `${shop.path(`disk-${name}`)}/`,
      take: () => renameSync(shop.path(file), shop.path(`${name}.taken`)),
      isThere: () => existsSync(shop.path(file)),
      putBack: () => renameSync(shop.path(`${name}.taken`), shop.path(file)),
      begin: (hint: string) => {
        expect(hint).toContain(`touch ${shop.path(file)}`);
        shop.write(file, '');
      },
    };
  }

  test.each(kinds)('is not begun anew for a ledger with records: %s', async (kind) => {
    const name = `gone-${kind}`;
    const ledger = server.url(name);
    const { place, take, isThere, putBack } = placeOf(kind, name);
    const key = shop.path(`${name}.key`);
    const signed = ['--key', key, '--position-witness', place];
    expectOk(run(['keygen', '--out', key]));
    expectOk(run(['init', ledger, ...signed]));
    expectOk(run(['append', ledger, ...signed]));
    await take();
    for (let n = 0; n < 2; n += 1)
      expectError(run(['append', ledger, ...signed, '--no-position']), 2, 'POSITION_WITNESS_MISSING');
    expect(await isThere()).toBe(false);
    expect(await sizeOf(name)).toBe(2);
    await putBack();
    expectOk(run(['append', ledger, ...signed]));
    expect(await sizeOf(name)).toBe(3);
  });

  test.each(kinds)('is begun by hand for a ledger that had none: %s', async (kind) => {
    const name = `begun-${kind}`;
    const ledger = server.url(name);
    const { place, isThere, begin } = placeOf(kind, name);
    const key = shop.path(`${name}.key`);
    expectOk(run(['keygen', '--out', key]));
    expectOk(run(['init', ledger, '--key', key]));
    if (kind === 'database') expectOk(run(['init', elsewhere.url('tables'), '--key', key]));
    const signed = ['--key', key, '--no-position', '--position-witness', place];
    const refused = run(['append', ledger, ...signed]);
    expectError(refused, 2, 'POSITION_WITNESS_MISSING');
    await begin(refused.stderr.replaceAll('\n', ' '));
    const put = await snapshotOf(server, name);
    expectOk(run(['append', ledger, ...signed]));
    expect(await isThere()).toBe(true);
    await put();
    expectError(run(['append', ledger, ...signed]), 1, 'LEDGER_ROLLED_BACK');
  });

  test('and is taken away from under a writer: nothing more is acknowledged, and none is made', async () => {
    const url = server.url('under');
    const path = shop.path('under.witness');
    const ledger = await Ledger.open(url, { create: {}, positionWitness: path, lingerMs: 0 });
    onTestFinished(() => ledger.close().catch(() => undefined));
    const append = (): Promise<unknown> =>
      ledger.append({ event: { event_type: 'x.y', principal_id: 'agent:a1' } });
    await append();
    renameSync(path, shop.path('under.taken'));
    for (let n = 0; n < 2; n += 1) await expect(append()).rejects.toMatchObject({ code: 'LEDGER_FAILED' });
    expect(existsSync(path)).toBe(false);
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
