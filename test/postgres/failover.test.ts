/** Servers that are killed, promoted, paused and cut off under load: nothing that was acknowledged is lost unseen. */

import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { NorthrootError } from '../../src/base/error.js';
import { createSigner } from '../../src/format/signature/signer.js';
import { FileWitness } from '../../src/log/postgres/file-witness.js';
import { PostgresStore, type PostgresStoreOptions } from '../../src/log/postgres/postgres-store.js';
import { PostgresWitness } from '../../src/log/postgres/postgres-witness.js';
import { verifyLedger } from '../../src/log/read/verify-ledger.js';
import { Ledger } from '../../src/log/writer/ledger.js';
import { ed25519Key } from '../key/key-samples.js';
import { ndjson, note } from '../cli/drafts.js';
import { parseLines, Workshop } from '../cli/runner.js';
import { append, codeOf, inTurn, lineOf, readFrom } from '../store/conformance.js';
import { temporaryFolder } from '../writer/support.js';
import { CuttingProxy, hasNoPostgres, PostgresServer } from './server.js';

const signer = createSigner(ed25519Key(Buffer.alloc(32, 1)));
const START = {
  size: 0,
  tip: '47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU',
  file: '',
  line: 1,
  byteOffset: 0,
};

const shop = new Workshop();
const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

function during<T extends { stop(): unknown } | { close(): unknown }>(thing: T): T {
  ends.push(() => ('stop' in thing ? thing.stop() : thing.close()));
  return thing;
}

interface Pair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;
  /** A URL that names both. */
  readonly url: string;
}

async function startPair(isSynchronous: boolean): Promise<Pair> {
  const primary = during(await PostgresServer.start());
  const standby = during(await primary.startStandby('standby1'));
  if (isSynchronous) await primary.reload({ synchronous_standby_names: 'standby1' });
  await primary.waitForStandbys(isSynchronous ? 'sync' : 'async');
  const url = `postgres://postgres@127.0.0.1:${primary.port},127.0.0.1:${standby.port}/postgres#ledger`;
  return { primary, standby, url };
}

async function openWriter(url: string, options: PostgresStoreOptions): Promise<Ledger> {
  const store = await PostgresStore.open(url, { create: true, ...options });
  const create = { origin: 'example.com/tests/postgres', binding: 'optional' as const };
  const ledger = await Ledger.open(store, { signer, create, principalId: 'agent:a1', lockTimeoutMs: 20_000 });
  ends.push(() => ledger.close().catch(() => undefined));
  return ledger;
}

/** Appends until it fails for good, or is told to stop; what it appended and why it ended. */
function load(ledger: Ledger, tag: string) {
  const acknowledged: { id: string; seq: number }[] = [];
  const refusals: string[] = [];
  let isOver = false;
  let told = (): void => undefined;
  const run = (async () => {
    for (let n = 0; !isOver; n += 1) {
      try {
        const { eventId, seq } = await ledger.append({ event: { event_type: 'x.test', tag, n: `${n}` } });
        acknowledged.push({ id: eventId, seq });
        told();
      } catch (error) {
        const code = error instanceof NorthrootError ? error.code : String(error);
        refusals.push(code);
        if (['LEDGER_ROLLED_BACK', 'LEDGER_FAILED'].includes(code)) return;
        await sleep(50);
      }
    }
  })();
  const end = async (): Promise<void> => {
    isOver = true;
    await run;
  };
  /** Until so many more are acknowledged, or it has failed for good. */
  const more = async (count: number): Promise<void> => {
    const enough = acknowledged.length + count;
    const has = new Promise<void>((resolve) => {
      told = () => {
        if (acknowledged.length >= enough) resolve();
      };
    });
    await Promise.race([has, run]);
  };
  return { acknowledged, refusals, run, end, more };
}

/** Waits until a statement waits for the standby, another one than before; when it began. */
async function waitForStandby(primary: PostgresServer, before?: unknown): Promise<unknown> {
  for (;;) {
    const [row] = await primary.query(
      `select query_start::text as begun from pg_stat_activity where wait_event = 'SyncRep'`,
    );
    if (row !== undefined && row['begun'] !== before) return row['begun'];
    await sleep(20);
  }
}

async function idsIn(url: string): Promise<string[]> {
  const store = await PostgresStore.open(url);
  try {
    const { lines } = await readFrom(store);
    expect((await verifyLedger(await store.source())).verdict).toBe('ok');
    return lines.map((line) => {
      const { payload } = JSON.parse(line) as { payload?: string };
      const text = payload === undefined ? line : Buffer.from(payload, 'base64').toString();
      return /"event_id":(\{[^}]*\})/.exec(text)?.[1] ?? '';
    });
  } finally {
    await store.close();
  }
}

async function countOf(url: string): Promise<number> {
  return (await idsIn(url)).length;
}

describe.skipIf(hasNoPostgres)('a server that fails', () => {
  test('whose primary is killed under load, with a synchronous standby: no acknowledged record is lost', async () => {
    const { primary, standby, url } = await startPair(true);
    const writers = await Promise.all([1, 2].map(() => openWriter(url, {})));
    const loads = writers.map((writer, n) => load(writer, `w${n}`));
    await Promise.all(loads.map(({ more }) => more(40)));
    await primary.kill();
    await standby.promote();
    const atPromotion = loads.map(({ acknowledged }) => acknowledged.length);
    await Promise.all(loads.map(({ more }) => more(40)));
    await Promise.all(loads.map(({ end }) => end()));
    for (const [n, { acknowledged, refusals }] of loads.entries()) {
      expect(refusals).not.toContain('LEDGER_ROLLED_BACK');
      expect(refusals).not.toContain('LEDGER_FAILED');
      expect(acknowledged.length).toBeGreaterThan(atPromotion[n]);
    }
    const all = loads.flatMap(({ acknowledged }) => acknowledged);
    expect(new Set(all.map(({ seq }) => seq)).size).toBe(all.length);
    const ids = (await idsIn(url)).map((id) => id);
    for (const { id, seq } of all) expect(ids[seq]).toContain(id.replace('sha-256:', '').slice(0, 10));
  });

  test('whose old primary comes back as one is written to and read where the standby was promoted', async () => {
    const { primary, standby, url } = await startPair(true);
    const writer = await openWriter(url, {});
    let n = 0;
    const add = (to = writer): Promise<string> =>
      to.append({ event: { event_type: 'x.test', n: `${(n += 1)}` } }).then(
        ({ status }) => status,
        (error: unknown) => (error as NorthrootError).code,
      );
    expect(await add()).toBe('appended');
    await primary.kill();
    await standby.promote();
    expect(await add()).toBe('appended');
    await primary.up();
    // By whom is not said: its writer, its readers.
    await standby.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'northroot'`,
    );
    expect(await add()).toBe('appended');
    // Nor by one that knows nothing of it, whichever server is named first.
    const [, first = '', second = ''] = /@([^,]*),([^/]*)/.exec(url) ?? [];
    for (const hosts of [`${first},${second}`, `${second},${first}`]) {
      const other = url.replace(/@[^/]*/, `@${hosts}`);
      expect(await add(await openWriter(other, {}))).toBe('appended');
      expect(await countOf(other)).toBe(n + 1);
    }
  });

  test('with an asynchronous standby it is not written to without a witness', async () => {
    const { url } = await startPair(false);
    expect(await codeOf(PostgresStore.open(url, { create: true }))).toBe('STORE_NOT_DURABLE');
  });

  test.each(['a file', 'another database'])(
    'whose asynchronous standby lacks what was acknowledged: all writers are told, by a witness in %s',
    async (kind) => {
      const { primary, standby, url } = await startPair(false);
      const path = join(temporaryFolder(), 'witness');
      const elsewhere = kind === 'a file' ? undefined : during(await PostgresServer.start());
      const witness = async () =>
        elsewhere === undefined
          ? during(new FileWitness(path))
          : during(await PostgresWitness.open(elsewhere.url('ledger')));
      const writers = [];
      for (let n = 0; n < 2; n += 1) writers.push(await openWriter(url, { witness: await witness() }));
      const loads = writers.map((writer, n) => load(writer, `w${n}`));
      await Promise.all(loads.map(({ more }) => more(10)));
      standby.pauseReceiver(true);
      const before = loads.map(({ acknowledged }) => acknowledged.length);
      await Promise.all(loads.map(({ more }) => more(20)));
      await primary.kill();
      // What was sent and not received is lost.
      await standby.kill();
      await standby.up();
      await standby.promote();
      await Promise.all(loads.map(({ run }) => run));
      for (const [n, { acknowledged, refusals }] of loads.entries()) {
        expect(acknowledged.length).toBeGreaterThan(before[n]);
        expect(refusals.at(-1)).toBe('LEDGER_ROLLED_BACK');
      }
      // Nor is it opened by another, for good.
      for (let n = 0; n < 2; n += 1)
        expect(await codeOf(PostgresStore.open(url, { witness: await witness() }))).toBe(
          'LEDGER_ROLLED_BACK',
        );
    },
  );

  test('that was put back to an earlier state is found by the position that the writer kept', async () => {
    const server = during(await PostgresServer.start());
    const positionFile = join(temporaryFolder(), 'position');
    const store = during(await PostgresStore.open(server.url('a'), { create: true, positionFile }));
    const end = await append(store, START, ['one', 'two']);
    await append(store, end, ['three']);
    await server.query(
      `delete from northroot.line where seq = 2; update northroot.head set size = 2, tip = '${end.tip}', end_offset = ${end.byteOffset}`,
    );
    expect(await codeOf(inTurn(store, () => readFrom(store)))).toBe('LEDGER_ROLLED_BACK');
    expect(await codeOf(PostgresStore.open(server.url('a'), { positionFile }))).toBe('LEDGER_ROLLED_BACK');
    rmSync(positionFile);
    const next = during(await PostgresStore.open(server.url('a'), { positionFile }));
    await append(next, end, ['three']);
  });

  test('whose standby does not answer acknowledges nothing until it does', async () => {
    const { primary, standby, url } = await startPair(true);
    const store = during(await PostgresStore.open(url, { create: true, requires: 'replicated' }));
    expect(store.durability).toBe('replicated');
    const end = await append(store, START, ['one']);
    standby.pauseReceiver(true);
    let isAcknowledged = false;
    const appending = append(store, end, ['two']).then(() => (isAcknowledged = true));
    const first = await waitForStandby(primary);
    expect(isAcknowledged).toBe(false);
    // An administrator ends the wait: the server says that it is done, and warns.
    await primary.query(`select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`);
    await waitForStandby(primary, first);
    expect(isAcknowledged).toBe(false);
    standby.pauseReceiver(false);
    await appending;
    expect(await inTurn(store, () => readFrom(store)).then(({ lines }) => lines)).toEqual(['one', 'two']);
  });

  test('whose standby does not answer: a command that is told to stop says first what it has written', async () => {
    const { primary, standby, url } = await startPair(true);
    const running = shop.start(['append', url, '--create', '--unsigned', '--principal', 'agent:a1']);
    ends.push(() => running.kill('SIGKILL'));
    void running.feed(ndjson([note(1)]));
    await running.until(({ stdout }) => stdout.endsWith('\n'));
    standby.pauseReceiver(true);
    void running.feed(ndjson([note(2)]));
    await waitForStandby(primary);
    running.kill('SIGINT');
    // Longer than a command may wait for other things.
    await sleep(2_500);
    standby.pauseReceiver(false);
    const { status, stdout } = await running.end();
    expect(status).toBe(130);
    expect(parseLines(stdout).map(({ seq }) => seq)).toEqual([1, 2]);
  });

  test('that was promoted, and has no standby itself, is refused where replication is required', async () => {
    const { primary, standby, url } = await startPair(true);
    const store = during(await PostgresStore.open(url, { create: true, requires: 'replicated' }));
    await append(store, START, ['one']);
    await primary.kill();
    await standby.promote();
    expect(await codeOf(store.acquire({ timeoutMs: 5_000 }))).toBe('STORE_NOT_DURABLE');
    expect(await codeOf(PostgresStore.open(url, { requires: 'replicated' }))).toBe('STORE_NOT_DURABLE');
    expect(await countLines(url)).toBe(1);
  });

  test('that does not write to its disk is refused', async () => {
    const server = during(await PostgresServer.start({ settings: { fsync: 'off' } }));
    expect(await codeOf(PostgresStore.open(server.url('a'), { create: true }))).toBe('STORE_NOT_DURABLE');
  });

  test('whose settings are changed while it is written to acknowledges nothing that it would keep less of', async () => {
    const { primary, url } = await startPair(true);
    const writer = await openWriter(url, { requires: 'replicated' });
    let n = 0;
    const add = (): Promise<string> =>
      writer
        .append({ event: { event_type: 'x.test', occurred_at: '2026-01-01T00:00:00Z', n: `${(n += 1)}` } })
        .then(
          ({ status }) => status,
          (error: unknown) => (error as NorthrootError).code,
        );
    const settle = async (settings: Readonly<Record<string, string>>): Promise<void> => {
      await primary.reload(settings);
      for (const [name, value] of Object.entries(settings))
        await expect
          .poll(() => primary.query(`select current_setting('${name}') as is`))
          .toEqual([{ is: value }]);
    };
    expect(await add()).toBe('appended');
    await settle({ synchronous_standby_names: '' });
    expect(await add()).toBe('STORE_NOT_DURABLE');
    await settle({ synchronous_standby_names: 'standby1', fsync: 'off' });
    expect(await add()).toBe('STORE_NOT_DURABLE');
    // Nor is what is there already.
    n = 0;
    expect(await add()).toBe('STORE_NOT_DURABLE');
    await settle({ synchronous_standby_names: 'FIRST 1 (standby1)', fsync: 'on' });
    await primary.waitForStandbys('sync');
    n = 0;
    expect([await add(), await add()]).toEqual(['exists', 'appended']);
    expect(await countOf(url)).toBe(3);
  });

  test('whose connections are cut before and after its answers appends each record once', async () => {
    const server = during(await PostgresServer.start());
    const proxy = during(await CuttingProxy.start(server.port));
    const url = server.url('ledger', { port: proxy.port });
    const ledger = await openWriter(url, {});
    let sent = 0;
    proxy.decide = (bytes) => {
      if (!bytes.includes('northroot-next')) return undefined;
      sent += 1;
      return sent % 3 === 0 ? (sent % 2 === 0 ? 'before' : 'after') : undefined;
    };
    const seqs: number[] = [];
    for (let n = 0; n < 24; n += 1)
      seqs.push((await ledger.append({ event: { event_type: 'x.test', n: `${n}` } })).seq);
    proxy.decide = () => undefined;
    expect(proxy.cuts).toBeGreaterThan(4);
    expect(seqs).toEqual(Array.from({ length: 24 }, (_, n) => n + 1));
    expect(await countOf(server.url('ledger'))).toBe(25);
  });

  test('a writer that loses its session appends nothing under the lock that went with it', async () => {
    const server = during(await PostgresServer.start());
    const [store, other] = [
      during(await PostgresStore.open(server.url('a'), { create: true })),
      during(await PostgresStore.open(server.url('a'), { create: true })),
    ];
    const end = await append(store, START, ['one']);
    const lock = await store.acquire({ timeoutMs: 5_000 });
    await server.query(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and granted`,
    );
    const { position } = await inTurn(other, () => readFrom(other));
    expect(await codeOf(store.appendIf(end, [lineOf('two')]).then(() => store.appendIf(end, [])))).toMatch(
      /^(?:STORE_UNREACHABLE|LEDGER_CONFLICT)$/,
    );
    await lock.release();
    await append(other, position, ['three']).catch(() => undefined);
    const { lines } = await inTurn(store, () => readFrom(store));
    expect(lines.filter((line) => line === 'one')).toHaveLength(1);
  });
});

async function countLines(url: string): Promise<number> {
  const store = await PostgresStore.open(url);
  try {
    return (await readFrom(store)).lines.length;
  } finally {
    await store.close();
  }
}
