import { spawnSync } from 'node:child_process';
import { copyFileSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../src/fs/file-system.js';
import { runWriter, Writer } from './processes.js';
import {
  codeOf,
  draft,
  expectSound,
  makeLedger,
  openLedger,
  openUnsigned,
  readRecords,
  temporaryFolder,
  untilWaiting,
} from './support.js';

const CLI = fileURLToPath(new URL('../../bin/northroot.js', import.meta.url));
const PATIENT = { create: { origin: 'example.com/tests/locks' }, lockTimeoutMs: 60_000 };

describe.each([
  ['a file', 'ledger.jsonl'],
  ['a folder', 'ledger/'],
])('%s', (_layout, name) => {
  test('that one process appends to is closed to others, until that one is through', async () => {
    const path = join(temporaryFolder(), name);
    const holder = new Writer({ path, tag: 'a', hold: true, options: PATIENT });
    await holder.until(({ doing }) => doing === 'hold');

    const impatient = await runWriter({ path, tag: 'b', options: { ...PATIENT, lockTimeoutMs: 0 } });
    expect(impatient.errors).toEqual([{ error: 'LEDGER_LOCKED', cause: undefined }]);
    const args = [CLI, 'append', path, '--unsigned', '--lock-timeout', '0'];
    const cli = spawnSync(process.execPath, args, { input: '{}\n', encoding: 'utf8' });
    expect(cli.status).toBe(2);
    expect(cli.stdout).toBe('');
    expect(cli.stderr).toContain('LEDGER_LOCKED');

    const patient = new Writer({ path, tag: 'c', options: PATIENT });
    await patient.until(({ doing }) => doing === 'open');
    await holder.release();
    await patient.ended;
    expect(patient.acknowledged.map(({ seq }) => seq)).toEqual([2]);
    await expectSound(path, 3);
  });

  test('that four processes append to at once has one chain with all their events', async () => {
    const path = join(temporaryFolder(), name);
    const writers = ['a', 'b', 'c', 'd'].map(
      (tag) =>
        new Writer({
          path,
          tag,
          sessions: 10,
          groups: 5,
          options: { ...PATIENT, segmentBytes: 10_000 },
        }),
    );
    await Promise.all(writers.map((writer) => writer.ended));
    const acknowledged = writers.flatMap((writer) => {
      expect(writer.errors).toEqual([]);
      expect(writer.acknowledged).toHaveLength(50);
      return writer.acknowledged;
    });
    const records = readRecords(path);
    for (const { seq, eventId } of acknowledged) {
      expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(eventId);
    }
    await expectSound(path, 201);
  });

  test('is free as soon as its holder is killed', async () => {
    const path = join(temporaryFolder(), name);
    const holder = new Writer({ path, tag: 'a', hold: true, options: PATIENT });
    await holder.until(({ doing }) => doing === 'hold');
    expect(await codeOf(openUnsigned(path))).toBe('LEDGER_LOCKED');
    await holder.kill();
    const ledger = await openUnsigned(path);
    expect(await ledger.append({ event: draft(1) })).toMatchObject({ seq: 2 });
    await ledger.close();
    await expectSound(path, 3);
  });

  test('is opened once in one process, too', async () => {
    const path = join(temporaryFolder(), name);
    const first = await openLedger(path);
    expect(await codeOf(openLedger(path))).toBe('LEDGER_LOCKED');
    const second = openLedger(path, { lockTimeoutMs: 60_000 });
    await first.append({ event: draft(1) });
    await first.close();
    expect(await (await second).append({ event: draft(2) })).toMatchObject({ seq: 2 });
    await (await second).close();
    await expectSound(path, 3);
  });
});

describe('a writer that waits', () => {
  test('may be told to give up', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const holder = await openLedger(path);
    const controller = new AbortController();
    const waiting = openLedger(path, { lockTimeoutMs: 60_000, signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await holder.append({ event: draft(1) });
    await holder.close();
    await expectSound(path, 2);
  });
});

describe('a path that is given another file while a writer waits', () => {
  test('leads that writer to the other file', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'ledger.jsonl');
    await makeLedger(path, 1);
    copyFileSync(path, join(folder, 'copy.jsonl'));
    const first = await openLedger(path);
    const second = openLedger(path, { lockTimeoutMs: 60_000 });
    await untilWaiting(path);
    renameSync(path, join(folder, 'old.jsonl'));
    renameSync(join(folder, 'copy.jsonl'), path);
    expect(await codeOf(first.append({ event: draft(2) }))).toBe('LEDGER_FAILED');
    await first.close();
    await (await second).append({ event: draft(3) });
    await (await second).close();
    const numbers = (name: string): unknown[] =>
      readRecords(join(folder, name)).map(({ event }) => event['n']);
    expect(numbers('old.jsonl')).toEqual([undefined, 1]);
    expect(numbers('ledger.jsonl')).toEqual([undefined, 1, 3]);
    await expectSound(path, 3);
  });

  test('or to a new one, where the old one was taken away', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const first = await openLedger(path);
    const second = openLedger(path, { lockTimeoutMs: 60_000 });
    await untilWaiting(path);
    rmSync(path);
    await first.close();
    expect((await second).size).toBe(1);
    await (await second).close();
    await expectSound(path, 1);
  });

  test('again and again is given up', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const before = readFileSync(path);
    let opened = 0;
    const fileSystem: FileSystem = {
      ...nodeFileSystem,
      open: async (...args) => {
        opened += 1;
        const file = await nodeFileSystem.open(...args);
        file.isInPlace = () => Promise.resolve(false);
        return file;
      },
    };
    expect(await codeOf(openLedger(path, { fileSystem }))).toBe('FILE_CHANGED');
    expect(opened).toBe(10);
    expect(readFileSync(path)).toEqual(before);
    await makeLedger(path, 2);
    await expectSound(path, 3);
  });
});

test('whoever waits for long is told what for, once', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  await makeLedger(path, 0);
  const holder = await openUnsigned(path);
  const notices: string[] = [];
  let tell: () => void = () => undefined;
  const told = new Promise<void>((resolve) => (tell = resolve));
  const second = openUnsigned(path, {
    lockTimeoutMs: 60_000,
    onNotice: ({ code }) => {
      notices.push(code);
      tell();
    },
  });
  await told;
  await holder.close();
  await (await second).close();
  expect(notices).toEqual(['LEDGER_WAITING']);
});
