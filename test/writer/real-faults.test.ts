/** Faults of real disks and of the operating system. Those that this machine does not let us make are skipped. */

import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest';
import type { Appended } from '../../src/log/writer/ledger.js';
import { runWriter, type Writer } from './processes.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  makeLedger,
  noticeBoard,
  openLedger,
  openUnsigned,
  readBytes,
  readRecords,
  temporaryFolder,
} from './support.js';

const OPTIONS = { create: { origin: 'example.com/tests/faults' } };
const text = 'a'.repeat(1_000);

function expectKept(path: string, acknowledged: readonly Pick<Appended, 'seq' | 'eventId'>[]): void {
  const records = readRecords(path);
  for (const { seq, eventId } of acknowledged) {
    expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(eventId);
  }
}

describe('a disk that is full', () => {
  /** A disk of so many KiB of which all is taken but what `free` of them; give it more room with the function returned. */
  const mountDisk = (context: TestContext, kib: number): { disk: string; grow: (kib: number) => void } => {
    const disk = join(temporaryFolder(), 'disk');
    mkdirSync(disk);
    const mount = (options: string): boolean =>
      spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', disk]).status === 0;
    if (!mount(`size=${kib}k`)) context.skip('a disk cannot be mounted here');
    onTestFinished(() => void spawnSync('umount', ['-l', disk]));
    return { disk, grow: (more) => expect(mount(`remount,size=${more}k`)).toBe(true) };
  };

  test('fails the append; the ledger stands, and goes on when there is room', async (context) => {
    const { disk, grow } = mountDisk(context, 64);
    for (const [name, size] of [
      ['ledger.jsonl', 64],
      ['ledger/', 512],
    ] as const) {
      grow(size);
      const path = join(disk, name);
      const ledger = await openLedger(path, { segmentBytes: 10_000 });
      const acknowledged: Appended[] = [];
      let error: unknown;
      for (let n = 0; error === undefined && n < 1_000; n += 1) {
        const calls = [0, 1, 2].map((k) => ledger.append({ event: draft(3 * n + k, { text }) }));
        for (const outcome of await Promise.allSettled(calls)) {
          if (outcome.status === 'fulfilled') acknowledged.push(outcome.value);
          else error = outcome.reason;
        }
      }
      expect(error).toMatchObject({ code: 'LEDGER_FAILED', cause: { code: 'DISK_FULL' } });
      expect(await codeOf(ledger.append({ event: draft(0) }))).toBe('LEDGER_FAILED');
      await ledger.close();
      expect(acknowledged.length).toBeGreaterThan(10);
      expectKept(path, acknowledged);
      await expectSound(path, acknowledged.length + 1);
      grow(1_024);
      await makeLedger(path, 1);
      await expectSound(path, acknowledged.length + 2);
    }
  });

  test('lets no ledger be made, and none is left half made', async (context) => {
    const { disk } = mountDisk(context, 16);
    const ballast = join(disk, 'ballast');
    while (appendUntilFull(ballast));
    expect(await errorOf(openLedger(join(disk, 'ledger.jsonl')))).toMatchObject({ code: 'DISK_FULL' });
    expect(readdirSync(disk)).toEqual(['ballast']);
    rmSync(ballast);
    await makeLedger(join(disk, 'ledger.jsonl'), 1);
    await expectSound(join(disk, 'ledger.jsonl'), 2);
  });

  test('lets no torn tail be saved, so none is cut off', async (context) => {
    const { disk } = mountDisk(context, 64);
    const path = join(disk, 'ledger.jsonl');
    await makeLedger(path, 1);
    const tail = 'x'.repeat(5_000);
    appendFileSync(path, tail);
    const before = readBytes(path);
    const ballast = join(disk, 'ballast');
    while (appendUntilFull(ballast));
    expect(await errorOf(openLedger(path))).toMatchObject({ code: 'DISK_FULL' });
    expect(readBytes(path)).toEqual(before);
    expect(readdirSync(disk).sort()).toEqual(['ballast', 'ledger.jsonl']);
    rmSync(ballast);
    await makeLedger(path, 2);
    await expectSound(path, 3);
  });
});

/** Adds a page to a file; false when there is no room for it. */
function appendUntilFull(path: string): boolean {
  try {
    appendFileSync(path, Buffer.alloc(4_096));
    return true;
  } catch {
    return false;
  }
}

test('a limit on the size of files fails the append; the ledger stands', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const wrap = ['bash', '-c', 'ulimit -f 32; exec "$0" "$@"'];
  const task = { path, tag: 'a', groups: 1_000, groupSize: 4, text, options: OPTIONS };
  const writer = await runWriter(task, { wrap });
  expect(writer.errors[0]).toEqual({ error: 'LEDGER_FAILED', cause: 'FILE_TOO_BIG' });
  const { acknowledged } = writer;
  expect(acknowledged.length).toBeGreaterThan(10);
  expectKept(path, acknowledged);
  await expectSound(path, acknowledged.length + 1);
  const unlimited = await runWriter({ path, tag: 'b', groups: 10, options: OPTIONS });
  expect(unlimited.errors).toEqual([]);
  await expectSound(path, acknowledged.length + 11);
});

describe('someone who may not', () => {
  const isRoot = process.getuid?.() === 0;
  const NOBODY = 65_534;
  const run = (path: string): Promise<Writer> =>
    runWriter({ path, tag: 'a', options: OPTIONS }, isRoot ? { uid: NOBODY } : {});
  /** A folder that others may enter; skips where they cannot run the package. */
  const openFolder = (context: TestContext): string => {
    const folder = temporaryFolder();
    chmodSync(folder, 0o755);
    onTestFinished(() => chmodSync(folder, 0o755));
    if (isRoot) {
      const read = `process.exit(require('fs').readdirSync(${JSON.stringify(folder)}).length)`;
      const dist = new URL('../../dist/api/index.js', import.meta.url).href;
      for (const script of [read, `import(${JSON.stringify(dist)}).catch(() => process.exit(1))`]) {
        const { status } = spawnSync(process.execPath, ['-e', script], { uid: NOBODY, gid: NOBODY });
        if (status !== 0) context.skip('nobody else can run the package here');
      }
    }
    return folder;
  };

  test('make files in a folder makes no ledger there', async (context) => {
    const folder = openFolder(context);
    chmodSync(folder, 0o555);
    for (const name of ['ledger.jsonl', 'ledger/']) {
      const { errors } = await run(join(folder, name));
      expect(errors).toEqual([{ error: 'ACCESS_DENIED', cause: 'EACCES' }]);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  test('write a ledger appends nothing to it', async (context) => {
    const path = join(openFolder(context), 'ledger.jsonl');
    await (await openUnsigned(path)).close();
    const before = readFileSync(path);
    chmodSync(path, 0o444);
    const { errors } = await run(path);
    expect(errors).toEqual([{ error: 'ACCESS_DENIED', cause: 'EACCES' }]);
    expect(readFileSync(path)).toEqual(before);
  });

  test('save a torn tail beside a ledger cuts none off', async (context) => {
    const folder = openFolder(context);
    const path = join(folder, 'ledger.jsonl');
    await (await openUnsigned(path)).close();
    appendFileSync(path, 'torn');
    chmodSync(path, 0o666);
    chmodSync(folder, 0o555);
    const before = readFileSync(path);
    const { errors } = await run(path);
    expect(errors).toEqual([{ error: 'ACCESS_DENIED', cause: 'EACCES' }]);
    expect(readFileSync(path)).toEqual(before);
    chmodSync(folder, 0o777);
    const { errors: none, said } = await run(path);
    expect(none).toEqual([]);
    expect(said).toContainEqual({ notice: 'TORN_TAIL_SAVED' });
    expect(statSync(path).size).toBeGreaterThan(before.length);
    await expectSound(path, 2);
  });
});

test('a ledger that someone else has cut short under its writer is left alone', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path);
  await ledger.append({ event: draft(1) });
  truncateSync(path, 100);
  const spoilt = readBytes(path);
  const error = await errorOf(ledger.append({ event: draft(2) }));
  expect(error).toMatchObject({ code: 'LEDGER_ROLLED_BACK', cause: { code: 'FILE_CHANGED' } });
  await ledger.close();
  expect(readBytes(path)).toEqual(spoilt);
});

test('what someone else has left torn under a writer is saved as at opening', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const { notices, onNotice } = noticeBoard();
  const ledger = await openLedger(path, { onNotice });
  await ledger.append({ event: draft(1) });
  const { size } = statSync(path);
  appendFileSync(path, '{"event":');
  expect(await ledger.append({ event: draft(2) })).toMatchObject({ seq: 2 });
  await ledger.close();
  expect(notices.slice(1)).toMatchObject([{ code: 'TORN_TAIL_SAVED', offset: size, length: 9 }]);
  expect(readFileSync(`${path}.torn-${size}`, 'utf8')).toBe('{"event":');
  await expectSound(path, 3);
});

test('what someone else has made of the last record under a writer is not built upon', async () => {
  for (const tail of ['{"a":1}\n', '\n']) {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const ledger = await openLedger(path);
    await ledger.append({ event: draft(1) });
    appendFileSync(path, tail);
    const spoilt = readBytes(path);
    for (const n of [2, 3])
      expect(await codeOf(ledger.append({ event: draft(n) }))).toBe('LEDGER_TAIL_INVALID');
    await ledger.close();
    expect(readBytes(path)).toEqual(spoilt);
  }
});

test('a ledger whose last record someone else has changed under its writer is left alone', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const ledger = await openLedger(path, { lingerMs: 0 });
  await ledger.append({ event: draft(1) });
  const spoilt = readFileSync(path, 'utf8').replace('"n":1', '"n":7');
  writeFileSync(path, spoilt);
  const error = await errorOf(ledger.append({ event: draft(2) }));
  expect(error).toMatchObject({ code: 'LEDGER_ROLLED_BACK', cause: { code: 'LEDGER_CONFLICT' } });
  await ledger.close();
  expect(readFileSync(path, 'utf8')).toBe(spoilt);
});
