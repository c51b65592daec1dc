/** Stores that fail, that are broken, or that lie; publishers that die or come at once. What is served is whole at every moment. */

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NorthrootError } from '../../src/base/error.js';
import { parseCheckpoint } from '../../src/format/note/checkpoint.js';
import type { ObjectSink } from '../../src/log/object/object-sink.js';
import { openS3Sink, type S3SinkOptions } from '../../src/log/object/s3-sink.js';
import { Workshop, expectOk } from '../cli/runner.js';
import { plantTree, readTiles, temporaryFolder } from '../tile/support.js';
import { codeOf, errorOf } from '../writer/support.js';
import { CREDENTIALS, type Fault, REGION, S3Server, type Seen } from './s3-server.js';
import { LINES, expectTree, publishTo } from './sink-suite.js';

const isSlow = process.env['SLOW'] === '1';
const PREFIX = 'tree/';
let server: S3Server;
/** Sizes of the checkpoints, as they were written. */
let sizes: number[];

beforeEach(async () => {
  server = await S3Server.start();
  sizes = [];
  server.onWrite = (key, bytes) => {
    if (key !== `${PREFIX}checkpoint`) return;
    const { size } = parseCheckpoint(bytes).checkpoint;
    // Whole when its checkpoint comes, and never smaller than before.
    if (LINES.length >= size && size > 0) expectTree(server.files(PREFIX), LINES.slice(0, size));
    expect(size).toBeGreaterThan(sizes.at(-1) ?? -1);
    sizes.push(size);
  };
});
afterEach(() => server.stop());

function open(options: Partial<S3SinkOptions> = {}): ObjectSink {
  const { endpoint } = server;
  return openS3Sink('s3://logs/tree', {
    ...{ credentials: CREDENTIALS, endpoint, region: REGION, pauseMs: 1, attempts: 4, timeoutMs: 60_000 },
    ...options,
  });
}

/** As the probe writes it, or what is read before it. */
const isProbe = ({ key }: Seen): boolean => key.includes('northroot-probe');

describe('a store that does not keep its conditions is refused before a tile is written:', () => {
  const broken: readonly (readonly [string, (seen: Seen) => Fault | undefined])[] = [
    ['it ignores them', () => 'unconditional'],
    ['it looks, and then writes', () => 'racy'],
    ['it ignores If-Match', (seen) => (seen.nth > 60 ? 'unconditional' : undefined)],
    ['it gives no ETag', () => ({ etag: undefined })],
    ['it gives weak ETags', () => ({ etag: 'W/"1"' })],
    ['it gives the same ETag for everything', () => ({ etag: '"1"' })],
    ['it gives another ETag each time', ({ nth }) => ({ etag: `"${nth}"` })],
    [
      'it does not know them',
      ({ method }) => (method === 'PUT' ? { status: 501, code: 'NotImplemented' } : undefined),
    ],
  ];
  test.each(broken)('%s', async (_, intercept) => {
    server.intercept = intercept;
    expect(await codeOf(publishTo(open(), LINES))).toBe('OBJECT_STORE_UNFIT');
    expect(server.files(PREFIX).size).toBe(0);
  });
});

test('the probe is a race of sixteen, twice, and leaves nothing where deleting is allowed', async () => {
  // Each race is let go when all have come.
  let waiting: (() => void)[] = [];
  server.intercept = (seen) => {
    if (!isProbe(seen) || seen.method !== 'PUT') return undefined;
    return new Promise<undefined>((resolve) => {
      waiting.push(() => resolve(undefined));
      if (waiting.length < 16) return;
      for (const go of waiting) go();
      waiting = [];
    });
  };
  await publishTo(open(), LINES);
  const puts = server.seen.filter((seen) => isProbe(seen) && seen.method === 'PUT');
  expect(puts.length).toBe(32);
  expect([...server.objects.keys()].filter((key) => key.includes('probe'))).toEqual([]);

  server.intercept = ({ method }) =>
    method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined;
  await publishTo(open(), LINES, { recheck: true });
  expect([...server.objects.keys()].filter((key) => key.includes('probe')).length).toBe(1);
});

test('objects have the types and lifetimes that the specification recommends', async () => {
  await publishTo(open(), LINES);
  const { type, cache } = server.objects.get('tree/checkpoint') ?? {};
  expect([type, cache]).toEqual(['text/plain; charset=utf-8', 'no-cache']);
  for (const [key, each] of server.objects) {
    if (!key.startsWith('tree/tile/')) continue;
    expect([each.type, each.cache]).toEqual([
      'application/octet-stream',
      'public, max-age=31536000, immutable',
    ]);
  }
});

test('what the published checkpoint covers is not asked for again', async () => {
  await publishTo(open(), LINES.slice(0, 599));
  server.seen.length = 0;
  await publishTo(open(), LINES);
  const asked = server.seen.filter((seen) => !isProbe(seen) && seen.key !== 'tree/checkpoint');
  expect(asked.map(({ key }) => key).sort()).toEqual(['tree/tile/0/002.p/88', 'tree/tile/entries/002.p/88']);
  server.seen.length = 0;
  await publishTo(open(), LINES);
  expect(server.seen.map(({ method, key }) => `${method} ${key}`)).toEqual(['GET tree/checkpoint']);
});

describe('answers that come late, wrong or never:', () => {
  const passing: readonly (readonly [string, Fault])[] = [
    ['lost before anything is done', 'lose-before'],
    ['lost after it is done', 'lose-after'],
    ['done after the connection is gone', { doneAfter: 10 }],
    ['409', { status: 409, code: 'ConditionalRequestConflict' }],
    ['429', { status: 429, code: 'SlowDown', headers: { 'retry-after': '0' } }],
    ['500', { status: 500, code: 'InternalError' }],
    ['503', { status: 503, code: 'SlowDown' }],
    ['a body that is cut', 'truncate'],
  ];
  test.each(passing)('%s, for each request once', async (_, fault) => {
    const had = new Set<string>();
    server.intercept = ({ method, key }) => {
      const name = `${method} ${key.replace(/probe-\w+/, 'probe')}`;
      if (had.has(name)) return undefined;
      had.add(name);
      return fault;
    };
    const { tiles, bundles } = await publishTo(open(), LINES);
    expectTree(server.files(PREFIX), LINES);
    expect([tiles, bundles]).toEqual([
      { written: 4, kept: 0 },
      { written: 3, kept: 0 },
    ]);
    expect(sizes).toEqual([600]);
  });

  test.each<[string, Fault, string]>([
    ['lost', 'lose-before', 'PEER_UNREACHABLE'],
    ['lost after all was done', 'lose-after', 'PEER_UNREACHABLE'],
    ['503', { status: 503, code: 'SlowDown' }, 'OBJECT_STORE_REFUSED'],
    ['never coming', 'stall', 'PEER_TIMEOUT'],
  ])('always %s, while the checkpoint is written', async (_, fault, code) => {
    await publishTo(open(), LINES.slice(0, 300));
    server.intercept = ({ method, key }) =>
      method === 'PUT' && key === 'tree/checkpoint' ? fault : undefined;
    expect(
      await codeOf(publishTo(open({ attempts: 2, ...(fault === 'stall' && { timeoutMs: 300 }) }), LINES)),
    ).toBe(code);
    server.intercept = () => undefined;
    await publishTo(open(), LINES);
    expectTree(server.files(PREFIX), LINES);
    expect(sizes).toEqual([300, 600]);
  });

  test('a body without end is read to its bound', async () => {
    server.intercept = ({ key }) => (key === 'tree/checkpoint' ? 'endless' : undefined);
    await publishTo(open(), LINES.slice(0, 300));
    expect(await codeOf(publishTo(open(), LINES))).toBe('NOT_A_TILE_TREE');
  });

  test('a missing object proves nothing: the checkpoint that is not seen is not written over', async () => {
    await publishTo(open(), LINES.slice(0, 300));
    server.intercept = ({ method, key }) =>
      method === 'GET' && key === 'tree/checkpoint' ? { status: 404, code: 'NoSuchKey' } : undefined;
    expect(await codeOf(publishTo(open(), LINES.slice(0, 200)))).toBe('FILE_CHANGED');
    expect(sizes).toEqual([300]);
  });

  test('nor a tile that is refused and then not seen', async () => {
    server.intercept = ({ method, key }) => {
      if (!key.startsWith('tree/tile/')) return undefined;
      return method === 'GET'
        ? { status: 404, code: 'NoSuchKey' }
        : { status: 412, code: 'PreconditionFailed' };
    };
    expect(await codeOf(publishTo(open(), LINES))).toBe('OBJECT_STORE_UNFIT');
    expect(sizes).toEqual([]);
  });
});

describe('a refusal', () => {
  const { accessKeyId, secretAccessKey, sessionToken } = CREDENTIALS;
  const secrets = [accessKeyId, secretAccessKey, sessionToken];

  test.each<[string, Fault, string]>([
    [
      '403',
      {
        status: 403,
        text: `<Error><Code>AccessDenied</Code><Message>${secrets.join(' ')}</Message></Error>`,
      },
      'OBJECT_STORE_REFUSED',
    ],
    [
      '403 whose code is a secret',
      { status: 403, text: `<Error><Code>${accessKeyId}</Code></Error>` },
      'OBJECT_STORE_REFUSED',
    ],
    ['400', { status: 400, text: secrets.join('\n') }, 'OBJECT_STORE_REFUSED'],
    ['a missing bucket', { status: 404, code: 'NoSuchBucket' }, 'OBJECT_STORE_REFUSED'],
    [
      'another region',
      {
        status: 301,
        code: 'PermanentRedirect',
        headers: { location: 'http://127.0.0.1:1/', 'x-amz-bucket-region': 'eu-west-3' },
      },
      'OBJECT_STORE_REFUSED',
    ],
    ['a page of somebody else', { status: 200, text: '<html>' }, 'OBJECT_STORE_UNFIT'],
  ])('by %s is told once, without what is secret', async (_, fault, code) => {
    server.intercept = () => fault;
    const error = (await errorOf(publishTo(open(), LINES))) as NorthrootError;
    expect(error.code).toBe(code);
    expect(server.seen.length).toBe(1);
    for (const secret of secrets) {
      const text = `${error.message} ${error.hint} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`;
      expect(text).not.toContain(secret);
    }
  });

  test('says where the bucket is', async () => {
    server.intercept = () => ({ status: 301, headers: { 'x-amz-bucket-region': 'eu-west-3' } });
    expect(((await errorOf(publishTo(open(), LINES))) as NorthrootError).hint).toContain('eu-west-3');
  });

  test('of wrong credentials is no retry', async () => {
    const credentials = { ...CREDENTIALS, secretAccessKey: 'another' };
    expect(await codeOf(publishTo(open({ credentials }), LINES))).toBe('OBJECT_STORE_REFUSED');
    expect(server.seen.length).toBe(1);
  });
});

describe('publishers at once', () => {
  test('of one ledger: each writes its checkpoint, or is told that another one did', async () => {
    for (const round of [0, 1, 2]) {
      const runs = [1, 2, 3].map((at) => round * 150 + at * 40);
      const results = await Promise.allSettled(runs.map((size) => publishTo(open(), LINES.slice(0, size))));
      const done = runs.filter((_, at) => results[at]?.status === 'fulfilled');
      for (const size of done) expect(sizes).toContain(size);
      for (const result of results) {
        if (result.status === 'rejected')
          expect(['FILE_CHANGED', 'TRUNCATED']).toContain((result.reason as NorthrootError).code);
      }
      expect(done.length).toBeGreaterThan(0);
    }
  });

  test('of two histories: one is published, or none', async () => {
    const other = LINES.map((line, at) => (at < 3 ? line : Buffer.from(`{"other":${at}}`)));
    server.onWrite = () => undefined;
    const results = await Promise.allSettled([
      publishTo(open(), LINES),
      publishTo(open(), other.slice(0, 599)),
    ]);
    const done = results.filter(({ status }) => status === 'fulfilled');
    expect(done.length).toBeLessThanOrEqual(1);
    for (const result of results) {
      if (result.status === 'rejected')
        expect(['TILE_MISMATCH', 'FILE_CHANGED']).toContain((result.reason as NorthrootError).code);
    }
    if (done.length > 0)
      expectTree(server.files(PREFIX), done[0] === results[0] ? LINES : other.slice(0, 599));
  });

  test.each(Array.from({ length: isSlow ? 200 : 3 }, (_, seed) => seed + 1))(
    'with every kind of failure at random, seed %i',
    async (seed) => {
      let state = seed;
      const random = (): number => {
        state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
        return (state >>> 8) / 2 ** 24;
      };
      const faults: readonly Fault[] = [
        'lose-before',
        'lose-after',
        { doneAfter: 5 },
        { status: 409 },
        { status: 503 },
      ];
      server.intercept = () => (random() < 0.3 ? faults[Math.floor(random() * faults.length)] : undefined);
      const ends = [120, 256, 257, 400, 600];
      await Promise.all(
        [0, 1].map(async (publisher) => {
          for (const size of ends.slice(publisher)) {
            const run = publishTo(open({ attempts: 20 }), LINES.slice(0, size));
            const code = await run.then(
              () => undefined,
              ({ code }: NorthrootError) => code,
            );
            if (code === undefined) expect(sizes).toContain(size);
            else expect(['FILE_CHANGED', 'TRUNCATED']).toContain(code);
          }
        }),
      );
      server.intercept = () => undefined;
      await publishTo(open(), LINES);
      expectTree(server.files(PREFIX), LINES);
    },
  );
});

test('a publisher that is gone after any request leaves a whole tree, which the next one brings up to date', async () => {
  await publishTo(open(), LINES.slice(0, 255));
  const before = new Map(server.objects);
  for (let last = 1, isDone = false; !isDone; last += 1) {
    server.objects.clear();
    for (const [key, object] of before) server.objects.set(key, object);
    sizes = [];
    let counted = 0;
    const gone = new AbortController();
    server.intercept = (seen) => {
      if (isProbe(seen)) return undefined;
      counted += 1;
      if (counted < last) return undefined;
      gone.abort('gone');
      // Done or not: the answer is never heard.
      return counted === last && last % 2 === 0 ? 'lose-after' : 'lose-before';
    };
    isDone = await publishTo(open(), LINES.slice(0, 300), { signal: gone.signal }).then(
      () => true,
      () => false,
    );
    server.intercept = () => undefined;
    await publishTo(open(), LINES.slice(0, 300));
    expectTree(server.files(PREFIX), LINES.slice(0, 300));
  }
});

test('kill -9, with requests under way, leaves a whole tree', async () => {
  const shop = new Workshop();
  expectOk(shop.run(['init', 'l.jsonl', '--origin', 'example.com/tests/cli']));
  const events = Array.from({ length: 700 }, (_, n) => `{"event_type":"x.test","n":${n}}\n`).join('');
  expectOk(shop.run(['append', 'l.jsonl', '--principal', 'agent:a1'], { input: events }));
  expectOk(shop.run(['checkpoint', 'l.jsonl']));
  server.onWrite = () => undefined;
  const run = (): ChildProcess =>
    spawn(
      process.execPath,
      [
        join(import.meta.dirname, '../../bin/northroot.js'),
        'tiles',
        'l.jsonl',
        '--to',
        's3://logs/tree',
        '--endpoint',
        server.endpoint,
      ],
      {
        cwd: shop.path('.'),
        stdio: 'ignore',
        env: {
          ...process.env,
          AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
          AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
          AWS_SESSION_TOKEN: CREDENTIALS.sessionToken,
          AWS_REGION: REGION,
        },
      },
    );
  for (const key of ['tree/tile/0/000', 'tree/tile/entries/002.p/189', 'tree/checkpoint']) {
    let child: ChildProcess | undefined = undefined;
    server.intercept = (seen) => {
      if (seen.method !== 'PUT' || seen.key !== key) return undefined;
      child?.kill('SIGKILL');
      return 'lose-after';
    };
    child = run();
    const [, signal] = (await once(child, 'exit')) as [number | null, string | null];
    expect(signal).toBe('SIGKILL');
  }
  server.intercept = () => undefined;
  const [status] = (await once(run(), 'exit')) as [number | null];
  expect(status).toBe(0);
  const folder = temporaryFolder();
  plantTree(folder, server.files(PREFIX));
  expect((await readTiles(folder)).faults).toEqual([]);
  expectOk(shop.run(['verify', folder]));
});
