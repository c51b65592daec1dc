/** A ledger in a real PostgreSQL, held to what every store must do; and what only a database can come to. */

import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { FileWitness } from '../../src/log/postgres/file-witness.js';
import { PostgresStore, type PostgresStoreOptions } from '../../src/log/postgres/postgres-store.js';
import { PostgresWitness } from '../../src/log/postgres/postgres-witness.js';
import { POSTGRES_SCHEMA } from '../../src/log/postgres/schema.js';
import type { PositionWitness } from '../../src/log/postgres/witness.js';
import { append, codeOf, describeStore, inTurn, lineOf, readFrom } from '../store/conformance.js';
import { temporaryFolder } from '../writer/support.js';
import { CuttingProxy, hasNoPostgres, PostgresServer } from './server.js';

const START = {
  size: 0,
  tip: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: '',
  line: 1,
  byteOffset: 0,
};
const TIPS = ['A', 'B', 'C'].map((letter) => letter.repeat(42) + 'A');

describe.skipIf(hasNoPostgres)('PostgreSQL', () => {
  let server: PostgresServer;
  let count = 0;

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  async function open(url: string, options: PostgresStoreOptions = { create: true }): Promise<PostgresStore> {
    const store = await PostgresStore.open(url, options);
    onTestFinished(() => store.close());
    return store;
  }

  /** A database of its own. */
  async function database(): Promise<string> {
    const name = `base${(count += 1)}`;
    await server.query(`create database ${name}`);
    return name;
  }

  const urlIn = (name: string, user = 'postgres'): string =>
    server.url('ledger', { user }).replace('/postgres#', `/${name}#`);

  describeStore(
    'a ledger in PostgreSQL',
    () => {
      const url = server.url(`ledger-${(count += 1)}`);
      return { open: () => PostgresStore.open(url, { create: true }) };
    },
    { hasLocks: true },
  );

  test('a ledger that is not there is not opened, nor one of a database or a server that is not', async () => {
    await open(server.url('there'));
    const codes = await Promise.all([
      codeOf(PostgresStore.open(server.url('missing'))),
      codeOf(PostgresStore.open(urlIn('nowhere'))),
      codeOf(PostgresStore.open(urlIn(await database()))),
    ]);
    expect(codes).toEqual(['FILE_NOT_FOUND', 'FILE_NOT_FOUND', 'FILE_NOT_FOUND']);
  });

  test('a server that is not there is told apart from one that is refused, by what to check', async () => {
    const hints = await Promise.all(
      [server.url('a', { port: 1 }), 'postgres://u@no-such-host.invalid/d#a'].map((url) =>
        PostgresStore.open(url).catch((error: unknown) => error),
      ),
    );
    expect(hints).toMatchObject([{ code: 'STORE_UNREACHABLE' }, { code: 'STORE_UNREACHABLE' }]);
    expect(hints[0]).toHaveProperty('hint', expect.stringContaining('port'));
    expect(hints[1]).toHaveProperty('hint', expect.stringContaining('host'));
  });

  test('the scheme of a URL may be in capitals: it is the same ledger', async () => {
    const url = server.url('capitals');
    const store = await open(url.replace('postgres:', 'POSTGRES:'));
    await append(store, START, ['one']);
    const same = await open(url);
    expect(same.name).toBe(store.name);
    expect((await readFrom(same)).lines).toEqual(['one']);
  });

  test.each([
    'postgres://h/d',
    'postgres://h/d#',
    'postgres://h/d#a b',
    'mysql://h/d#a',
    'postgres://h:x/d#a',
  ])('is not asked for %s', async (url) => {
    expect(await codeOf(PostgresStore.open(url))).toBe('STORE_URL_INVALID');
  });

  test.each(['u:1/hush', 'u:p@1/hush', 'u:1?hush', 'u:p@1?hush'])(
    'is not asked for where %s is no password as it stands, which is not shown',
    async (login) => {
      const refused = PostgresStore.open(`postgres://${login}@127.0.0.1:1/d#a`);
      await expect(refused).rejects.toMatchObject({ code: 'STORE_URL_INVALID' });
      await expect(refused).rejects.toHaveProperty('message', expect.not.stringContaining('hush'));
    },
  );

  test('its name, and what it refuses with, have no password', async () => {
    const url = server
      .url('secret')
      .replace('postgres@', 'nobody:hunter2@')
      .replace('#', '?application_name=x#');
    const error: unknown = await PostgresStore.open(url).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'ACCESS_DENIED' });
    expect(JSON.stringify([error, String(error), String((error as Error).cause)])).not.toContain('hunter2');
    const store = await open(server.url('secret').replace('postgres@', 'postgres:hunter2@'));
    expect(store.name).toBe(server.url('secret'));
    expect((await append(store, START, ['one'])).file).toBe(store.name);
  });

  test('over a socket it is the same', async () => {
    const end = await append(await open(server.socketUrl('socket')), START, ['one']);
    const other = await open(server.url('socket'));
    expect((await inTurn(other, () => readFrom(other))).position).toMatchObject({ size: 1, tip: end.tip });
  });

  test('a writer without the right to make tables, and a reader who may only look, have what they need', async () => {
    const base = await database();
    await server.query(
      `do $$ begin create role writer login; create role reader login; exception when duplicate_object then null; end $$`,
    );
    expect(await codeOf(PostgresStore.open(urlIn(base, 'writer'), { create: true }))).toBe('ACCESS_DENIED');
    await server.query(POSTGRES_SCHEMA, [], base);
    await server.query(
      `grant usage on schema northroot to writer, reader;
       grant select on all tables in schema northroot to writer, reader;
       grant insert on northroot.line to writer;
       grant insert, update on northroot.head, northroot.witness to writer;`,
      [],
      base,
    );
    const writer = await open(urlIn(base, 'writer'));
    const end = await append(await open(urlIn(base, 'writer')), START, ['one']);
    await append(writer, end, ['two']);
    await inTurn(writer, () => writer.confirm());
    const reader = await open(urlIn(base, 'reader'), {});
    expect((await readFrom(reader)).lines).toEqual(['one', 'two']);
    await reader.waitForMore(START);
    expect(await inTurn(reader, () => codeOf(reader.appendIf({ ...end, size: 1 }, [lineOf('x')])))).toBe(
      'LEDGER_CONFLICT',
    );
    const { position } = await readFrom(reader);
    expect(await inTurn(reader, () => codeOf(reader.appendIf(position, [lineOf('x')])))).toBe(
      'ACCESS_DENIED',
    );
  });

  test('tables of a later version are refused, and several make them at once', async () => {
    const base = await database();
    const stores = await Promise.all([1, 2, 3, 4].map(() => open(urlIn(base))));
    await append(stores[0], START, ['one']);
    await server.query('update northroot.version set version = 2', [], base);
    expect(await codeOf(PostgresStore.open(urlIn(base)))).toBe('STORE_UNSUPPORTED');
    expect(await codeOf(PostgresStore.open(urlIn(base), { create: true }))).toBe('STORE_UNSUPPORTED');
  });

  test.each([
    ['a line is gone', `delete from northroot.line where seq = 1`],
    ['a line is another', `update northroot.line set bytes = 'uno\n' where seq = 2`],
    ['a line is two', `update northroot.line set bytes = 'a\nb\n' where seq = 1`],
    ['a line does not end', `update northroot.line set bytes = 'twoo' where seq = 1`],
    ['an offset is another', `update northroot.line set end_offset = 13 where seq = 2`],
    ['the head is ahead', `update northroot.head set size = 4`],
    ['the end is before the lines', `update northroot.head set end_offset = 1`],
  ])('is not believed where %s', async (_what, change) => {
    const base = await database();
    const store = await open(urlIn(base));
    await append(store, START, ['one', 'two', 'six']);
    await server.query(change, [], base);
    const reader = await open(urlIn(base), {}).catch((error: unknown) => error as { code: string });
    const code = reader instanceof PostgresStore ? await codeOf(readFrom(reader)) : reader.code;
    expect(code).toBe('STORE_MALFORMED');
  });

  test('reads in pages what is longer than one, as lines and as a source', async () => {
    const store = await open(server.url('pages'));
    const texts = Array.from({ length: 9_000 }, (_, n) => `${n}-${'y'.repeat(n % 400)}`);
    await append(store, START, texts);
    const reader = await open(server.url('pages'), {});
    expect((await readFrom(reader)).lines).toEqual(texts);
    const { segments, size } = await reader.source();
    let text = '';
    for await (const { chunks, file } of segments) {
      expect(file).toBe(reader.name);
      for await (const chunk of chunks) {
        expect(chunk.length).toBeLessThanOrEqual(1024 * 1024 + 65_536);
        text += Buffer.from(chunk).toString();
      }
    }
    expect(text).toBe(texts.map((each) => `${each}\n`).join(''));
    expect(size).toBe(text.length);
  });

  test('tells whether another writer waits', async () => {
    const [store, other] = [await open(server.url('wanted')), await open(server.url('wanted'))];
    const lock = await store.acquire({ timeoutMs: 5_000 });
    expect(await lock.isWanted?.()).toBe(false);
    const waiting = other.acquire({ timeoutMs: 20_000 });
    await expect.poll(() => lock.isWanted?.()).toBe(true);
    await lock.release();
    await (await waiting).release();
  });

  test('tells of another writer where one is waited for, and not where the server is', async () => {
    const url = server.url('waits');
    const proxy = await CuttingProxy.start(server.port);
    const other = await open(url);
    const store = await open(server.url('waits', { port: proxy.port }));
    const told: string[] = [];
    const acquire = (what: string): Promise<string> =>
      codeOf(store.acquire({ timeoutMs: 4_000, onWait: () => told.push(what) }));
    const lock = await other.acquire({ timeoutMs: 5_000 });
    expect(await acquire('writer')).toBe('LEDGER_LOCKED');
    await lock.release();
    await proxy.stop();
    expect(await acquire('server')).toBe('STORE_UNREACHABLE');
    expect(told).toEqual(['writer']);
  });

  test('tables that were changed so that they do not take each line have none of a group', async () => {
    const base = await database();
    const store = await open(urlIn(base));
    const end = await append(store, START, ['one']);
    const query = (text: string): Promise<unknown> => server.query(text, [], base);
    await query(`create function pass_over() returns trigger language plpgsql as 'begin return null; end'`);
    for (const when of ['new.seq = 2', 'true']) {
      await query(
        `create trigger passed before insert on northroot.line for each row when (${when}) execute function pass_over()`,
      );
      expect(await codeOf(append(store, end, ['two', 'six']))).toBe('STORE_MALFORMED');
      await query('drop trigger passed on northroot.line');
      expect((await inTurn(store, () => readFrom(store))).lines).toEqual(['one']);
    }
    await append(store, end, ['two', 'six']);
  });

  test('a session that is cut while it has the lock is told, and the next one reads', async () => {
    const proxy = await CuttingProxy.start(server.port);
    onTestFinished(() => proxy.stop());
    const store = await open(server.url('pooled', { port: proxy.port }));
    await append(store, START, ['one']);
    const lock = await store.acquire({ timeoutMs: 5_000 });
    proxy.cutAll();
    await expect.poll(() => codeOf(store.nextPlace(1)).catch(() => 'none')).toBe('STORE_UNREACHABLE');
    await lock.release();
    await inTurn(store, () => readFrom(store));
  });

  test('a witness in a file that a link leads to stays there, for those who come by another way', async () => {
    const folder = temporaryFolder();
    const [path, link] = [join(folder, 'witness'), join(folder, 'link')];
    const [a, b] = TIPS.map((tip, n) => ({ size: n + 1, tip }));
    const [witness, other] = [new FileWitness(link), new FileWitness(path)];
    onTestFinished(async () => void (await Promise.all([witness.close(), other.close()])));
    expect(await other.advance(undefined, a)).toBe(true);
    // Long enough to be replaced.
    writeFileSync(path, readFileSync(path, 'utf8').repeat(20_000));
    symlinkSync(path, link);
    expect(await witness.advance(a, b)).toBe(true);
    expect(await other.read()).toEqual(b);
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(2);
  });

  const witnesses: [string, () => Promise<PositionWitness>][] = [
    ['a file', async () => Promise.resolve(new FileWitness(join(temporaryFolder(), 'witness')))],
    ['a database', () => PostgresWitness.open(server.url(`witness-${(count += 1)}`))],
  ];
  test.each(witnesses)('a witness in %s only moves forward, from where it is', async (_kind, make) => {
    const witness = await make();
    onTestFinished(() => witness.close?.());
    const [a, b, c] = TIPS.map((tip, n) => ({ size: n + 1, tip }));
    expect(await witness.read()).toBeUndefined();
    expect(await witness.advance(a, b)).toBe(false);
    expect(await witness.advance(undefined, a)).toBe(true);
    expect(await witness.advance(undefined, b)).toBe(false);
    expect(await witness.advance({ size: 1, tip: TIPS[1] }, b)).toBe(false);
    const both = await Promise.all([b, c].map((end) => witness.advance(a, end)));
    expect(both.filter(Boolean)).toHaveLength(1);
    expect(await witness.read()).toEqual(both[0] === true ? b : c);
  });
});
