/** A writer that is paused while it holds the lock keeps its session: those who wait end it, and nobody who is only busy. */

import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { LOCK_SPACE } from '../../src/log/postgres/schema.js';
import { type Running, Workshop } from '../cli/runner.js';
import { append, inTurn, lineOf, readFrom } from '../store/conformance.js';
import { CuttingProxy, hasNoPostgres, PostgresServer } from './server.js';

const HOLDER = fileURLToPath(new URL('children/holder.js', import.meta.url));
const START = {
  size: 0,
  tip: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: '',
  line: 1,
  byteOffset: 0,
};

describe.skipIf(hasNoPostgres)('the lock of a ledger in PostgreSQL', () => {
  const shop = new Workshop();
  let server: PostgresServer;

  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  async function open(url: string, create = true): Promise<PostgresStore> {
    const store = await PostgresStore.open(url, { create });
    onTestFinished(() => store.close());
    return store;
  }

  /** A process that holds the lock of a ledger with one line. */
  async function startHolder(url: string): Promise<Running> {
    await append(await open(url), START, ['one']);
    const holder = shop.startProgram([process.execPath, HOLDER, JSON.stringify({ url })]);
    onTestFinished(() => {
      holder.kill('SIGCONT');
      holder.kill('SIGKILL');
    });
    await holder.until(({ stdout, hasEnded }) => stdout.includes('holds') || hasEnded);
    return holder;
  }

  test('of a process that is paused is taken over; when it goes on, it appends nothing to what it knew', async () => {
    const url = server.url('paused');
    const holder = await startHolder(url);
    holder.kill('SIGSTOP');
    const others = [await open(url), await open(url)];
    const sizes = await Promise.all(
      others.map((other, n) =>
        inTurn(other, async () => {
          const { position } = await readFrom(other);
          await other.appendIf(position, [lineOf(`other ${n}`)]);
          return position.size;
        }),
      ),
    );
    expect(sizes.sort()).toEqual([1, 2]);
    holder.kill('SIGCONT');
    holder.kill('SIGTERM');
    const end = await holder.end();
    expect(end.status).toBe(0);
    // Whether it has heard of the end of its session by then or not.
    expect(end.stdout).toMatch(/^holds\n(?:STORE_UNREACHABLE|LEDGER_CONFLICT)\n$/);
    const { lines } = await inTurn(others[0], () => readFrom(others[0]));
    expect(lines.sort()).toEqual(['one', 'other 0', 'other 1']);
  });

  test('of a process that is paused is taken over by one that waits a little at a time', async () => {
    const url = server.url('paused-often');
    const holder = await startHolder(url);
    holder.kill('SIGSTOP');
    const other = await open(url);
    const taken = async (): Promise<string> => {
      const lock = await other.acquire({ timeoutMs: 900 }).catch((error: NorthrootError) => error.code);
      if (typeof lock === 'string') return lock;
      await lock.release();
      return 'taken';
    };
    await expect.poll(taken, { interval: 10 }).toBe('taken');
  });

  test.each(['back', 'on'])(
    'is judged by the clock of who waits, where that of the server was set %s an hour',
    async (way) => {
      const database = `set_${way}`;
      await server.query(`create database ${database}`);
      const placed = (name: string): string => server.url(name).replace('/postgres#', `/${database}#`);
      const [paused, busy] = [await startHolder(placed('paused')), await startHolder(placed('busy'))];
      paused.kill('SIGSTOP');
      // What the server would show of all that was before.
      const columns = await server.query(
        `select string_agg(case attname when 'state_change' then $1 else attname end, ', ' order by attnum) as all
        from pg_attribute where attrelid = 'pg_catalog.pg_stat_activity'::regclass and attnum > 0`,
        [`state_change ${way === 'back' ? '+' : '-'} interval '1 hour' as state_change`],
      );
      await server.query(
        `set allow_system_table_mods = on; alter view pg_catalog.pg_stat_activity rename to pg_stat_shown;
        create view pg_catalog.pg_stat_activity as select ${String(columns[0]['all'])} from pg_catalog.pg_stat_shown;
        grant select on pg_catalog.pg_stat_activity to public`,
        undefined,
        database,
      );
      const [other, another] = [await open(placed('paused')), await open(placed('busy'))];
      const waiting = another.acquire({ timeoutMs: 6_000 });
      await (await other.acquire({ timeoutMs: 20_000 })).release();
      await expect(waiting).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
      busy.kill('SIGTERM');
      expect(await busy.end()).toMatchObject({ status: 0, stdout: 'holds\nappended\n' });
    },
  );

  test('of a process that holds it for long, and is there, is waited for', async () => {
    const url = server.url('busy');
    const holder = await startHolder(url);
    const other = await open(url);
    await expect(other.acquire({ timeoutMs: 6_000 })).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
    holder.kill('SIGTERM');
    expect(await holder.end()).toMatchObject({ status: 0, stdout: 'holds\nappended\n' });
    await (await other.acquire({ timeoutMs: 20_000 })).release();
  });

  test('of one that sends a long group over a slow way is waited for', async () => {
    const name = 'slow-way';
    const proxy = await CuttingProxy.start(server.port);
    onTestFinished(() => proxy.stop());
    const store = await open(server.url(name, { port: proxy.port }));
    const other = await open(server.url(name));
    const end = await append(store, await append(store, START, ['one']), ['two']);
    const lock = await store.acquire({ timeoutMs: 5_000 });
    const holder = (): Promise<unknown> =>
      server.query(`select pid from pg_locks where locktype = 'advisory' and granted`);
    const before = await holder();
    const { position } = await readFrom(store, end);
    proxy.stallAfter(128 * 1024, 4_500);
    const waiting = other.acquire({ timeoutMs: 20_000 });
    await store.appendIf(position, [lineOf('x'.repeat(4 * 1024 * 1024))]);
    expect(await holder()).toEqual(before);
    await lock.release();
    await (await waiting).release();
  });

  test('that an administrator holds by hand is waited for', async () => {
    const url = server.url('by-hand');
    const [store, other] = [await open(url), await open(url)];
    await append(store, START, ['one']);
    const lock = await store.acquire({ timeoutMs: 5_000 });
    const [{ objid }] = await server.query(`select objid::int from pg_locks where locktype = 'advisory'`);
    const hand = new pg.Client({ connectionString: server.url(), application_name: 'psql' });
    hand.on('error', () => undefined);
    await hand.connect();
    onTestFinished(() => hand.end());
    const taken = hand.query('select pg_advisory_lock($1, $2)', [LOCK_SPACE, objid]);
    await lock.release();
    await taken;
    await expect(other.acquire({ timeoutMs: 5_000 })).rejects.toMatchObject({ code: 'LEDGER_LOCKED' });
  });

  test('of a paused process of another role is not taken over, and it is said whose it is', async () => {
    const holder = await startHolder(server.url('denied'));
    await server.query(
      `create role helpless login; grant usage on schema northroot to helpless;
      grant select on all tables in schema northroot to helpless; grant pg_read_all_stats to helpless`,
    );
    holder.kill('SIGSTOP');
    const other = await open(server.url('denied', { user: 'helpless' }), false);
    const error: unknown = await other.acquire({ timeoutMs: 6_000 }).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(NorthrootError);
    expect(error).toMatchObject({ code: 'LEDGER_LOCKED' });
    expect((error as NorthrootError).hint).toContain('pg_terminate_backend');
  });
});
