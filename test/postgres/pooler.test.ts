/** A pooler between a program and its server: one that leaves each connection its session is as good as none, another is refused. */

import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { PostgresStore } from '../../src/log/postgres/postgres-store.js';
import { append, codeOf, inTurn, readFrom } from '../store/conformance.js';
import { freePort, hasNoPostgres, PostgresServer, userOfServers } from './server.js';

const PGBOUNCER = [
  '/usr/sbin/pgbouncer',
  ...(process.env['PATH'] ?? '').split(':').map((folder) => `${folder}/pgbouncer`),
].find((path) => existsSync(path));
const START = {
  size: 0,
  tip: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: '',
  line: 1,
  byteOffset: 0,
};

describe.skipIf(hasNoPostgres || PGBOUNCER === undefined)('PgBouncer', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  /** Its port. It runs until the test is over. */
  async function startPooler(settings: Readonly<Record<string, string>>): Promise<number> {
    const folder = mkdtempSync('/tmp/nr-pool-');
    chmodSync(folder, 0o755);
    const port = await freePort();
    const lines = Object.entries({
      listen_addr: '127.0.0.1',
      listen_port: `${port}`,
      unix_socket_dir: '',
      auth_type: 'any',
      ...settings,
    });
    const place = `host=127.0.0.1 port=${server.port} dbname=postgres user=postgres`;
    const text = `[databases]\npostgres = ${place}\n[pgbouncer]\n${lines.map(([name, value]) => `${name} = ${value}\n`).join('')}`;
    writeFileSync(join(folder, 'pool.ini'), text);
    const child = spawn(PGBOUNCER as string, ['-q', join(folder, 'pool.ini')], {
      stdio: 'ignore',
      ...userOfServers(),
    });
    const ended = new Promise((resolve) => child.once('exit', resolve));
    onTestFinished(async () => {
      child.kill('SIGKILL');
      await ended;
      rmSync(folder, { recursive: true });
    });
    for (;;) {
      const client = new pg.Client({ connectionString: server.url(undefined, { port }) });
      client.on('error', () => undefined);
      const isUp = await client.connect().then(
        () => true,
        () => false,
      );
      await client.end().catch(() => undefined);
      if (isUp) return port;
      if (child.exitCode !== null) throw new Error('PgBouncer did not start');
      await sleep(50);
    }
  }

  test('in session mode is as good as none', async () => {
    const port = await startPooler({ pool_mode: 'session' });
    const url = server.url('of-sessions', { port });
    const stores = [];
    for (let n = 0; n < 2; n += 1) {
      const store = await PostgresStore.open(url, { create: true });
      onTestFinished(() => store.close());
      stores.push(store);
    }
    const [one, other] = stores as [PostgresStore, PostgresStore];
    const end = await append(one, START, ['one']);
    await append(other, end, ['two']);
    const lock = await one.acquire({ timeoutMs: 5_000 });
    expect(await codeOf(other.acquire({ timeoutMs: 100 }))).toBe('LEDGER_LOCKED');
    await lock.release();
    expect((await inTurn(one, () => readFrom(one))).lines).toEqual(['one', 'two']);
  });

  test.each([
    { pool_mode: 'transaction' },
    { pool_mode: 'transaction', server_round_robin: '1', min_pool_size: '4' },
    { pool_mode: 'transaction', server_round_robin: '1', min_pool_size: '2' },
    { pool_mode: 'transaction', default_pool_size: '1' },
    { pool_mode: 'statement' },
  ])('that shares its sessions is refused, and left as it was: %j', async (settings) => {
    const port = await startPooler(settings);
    const url = server.url('shared', { port });
    expect(await codeOf(PostgresStore.open(url))).toBe('STORE_UNSUPPORTED');
    expect(await codeOf(PostgresStore.open(url, { create: true }))).toBe('STORE_UNSUPPORTED');
    // What others find in these sessions is theirs.
    const client = new pg.Client({ connectionString: server.url(undefined, { port }) });
    await client.connect();
    onTestFinished(() => client.end());
    expect((await client.query('show search_path')).rows).toEqual([{ search_path: '"$user", public' }]);
  });
});
