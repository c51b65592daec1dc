import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../src/log/fs/file-system.js';
import { times } from '../slow.js';
import { runWriter, Writer } from './processes.js';
import {
  codeOf,
  draft,
  expectSound,
  holdLock,
  makeLedger,
  openLedger,
  openUnsigned,
  readRecords,
  temporaryFolder,
} from './support.js';

const CLI = fileURLToPath(new URL('../../bin/northroot.js', import.meta.url));
const SESSIONS = times(4, 10);
const PATIENT = { create: { origin: 'example.com/tests/locks' }, lockTimeoutMs: 60_000 };

describe.each([
  ['a file', 'ledger.jsonl'],
  ['a folder', 'ledger/'],
])('%s', (_layout, name) => {
  test('that a process appends to is closed to others, until its group is through', async () => {
    const path = join(temporaryFolder(), name);
    await makeLedger(path, 1);
    const release = await holdLock(path);

    const impatient = await runWriter({ path, tag: 'b', options: { ...PATIENT, lockTimeoutMs: 0 } });
    expect(impatient.errors).toEqual([{ error: 'LEDGER_LOCKED', cause: undefined }]);
    const args = [CLI, 'append', path, '--unsigned', '--lock-timeout', '0'];
    const cli = spawnSync(process.execPath, args, { input: '{}\n', encoding: 'utf8' });
    expect(cli.status).toBe(2);
    expect(cli.stdout).toBe('');
    expect(cli.stderr).toContain('LEDGER_LOCKED');

    const patient = openLedger(path, PATIENT);
    await release();
    expect(await (await patient).append({ event: draft(2) })).toMatchObject({ seq: 2 });
    await expectSound(path, 3);
  });

  test('that is open in several processes takes the records of each, and none has it for itself', async () => {
    const path = join(temporaryFolder(), name);
    const holder = new Writer({ path, tag: 'a', hold: true, options: PATIENT });
    await holder.until(({ doing }) => doing === 'hold');
    const other = await runWriter({ path, tag: 'b', options: { ...PATIENT, lockTimeoutMs: 0 } });
    expect(other.acknowledged.map(({ seq }) => seq)).toEqual([2]);
    await holder.release();
    expect(holder.errors).toEqual([]);
    await expectSound(path, 3);
  });

  test('that four processes append to at once has one chain with all their events', async () => {
    const path = join(temporaryFolder(), name);
    const writers = ['a', 'b', 'c', 'd'].map(
      (tag) =>
        new Writer({
          path,
          tag,
          sessions: SESSIONS,
          groups: 5,
          options: { ...PATIENT, segmentBytes: 10_000 },
        }),
    );
    await Promise.all(writers.map((writer) => writer.ended));
    const acknowledged = writers.flatMap((writer) => {
      expect(writer.errors).toEqual([]);
      expect(writer.acknowledged).toHaveLength(SESSIONS * 5);
      return writer.acknowledged;
    });
    const records = readRecords(path);
    for (const { seq, eventId } of acknowledged) {
      expect(`sha-256:${records[seq].event.event_id.b64}`).toBe(eventId);
    }
    await expectSound(path, SESSIONS * 20 + 1);
  });

  test('is free as soon as its holder is killed', async () => {
    const path = join(temporaryFolder(), name);
    await makeLedger(path, 1);
    const script = 'exec 3<"$1"; flock -x 3; echo held; exec sleep 60';
    const holder = spawn('bash', ['-c', script, 'bash', path], { stdio: ['ignore', 'pipe', 'ignore'] });
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    expect(await codeOf(openUnsigned(path))).toBe('LEDGER_LOCKED');
    holder.kill('SIGKILL');
    const ledger = await openLedger(path, { lockTimeoutMs: 10_000 });
    expect(await ledger.append({ event: draft(2) })).toMatchObject({ seq: 2 });
    await ledger.close();
    await expectSound(path, 3);
  });

  test('may be open several times in one process, too', async () => {
    const path = join(temporaryFolder(), name);
    const first = await openLedger(path, { lockTimeoutMs: 10_000 });
    const second = await openLedger(path, { lockTimeoutMs: 10_000 });
    const appended = [];
    for (const [n, ledger] of [first, second, second, first].entries()) {
      appended.push((await ledger.append({ event: draft(n) })).seq);
    }
    expect(appended).toEqual([1, 2, 3, 4]);
    // What the other has appended is there already.
    expect(await second.append({ event: draft(3) })).toMatchObject({ seq: 4, status: 'exists' });
    const both = [1, 2, 3, 4].flatMap((n) =>
      [first, second].map((ledger) => ledger.append({ event: draft(10 * n) })),
    );
    expect((await Promise.all(both)).filter(({ status }) => status === 'appended')).toHaveLength(4);
    await Promise.all([first.close(), second.close()]);
    await expectSound(path, 9);
  });

  test('that somebody holds refuses a group in time; the next one is taken, and nothing is lost', async () => {
    const path = join(temporaryFolder(), name);
    const ledger = await openLedger(path, { lockTimeoutMs: 0 });
    const release = await holdLock(path);
    const refused = [1, 2].map((n) => codeOf(ledger.append({ event: draft(n) })));
    expect(await Promise.all(refused)).toEqual(['LEDGER_LOCKED', 'LEDGER_LOCKED']);
    await release();
    expect(await ledger.append({ event: draft(2) })).toMatchObject({ seq: 1 });
    await ledger.close();
    await expectSound(path, 2);
  });
});

describe('a writer that waits', () => {
  test('may be told to give up', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 0);
    const release = await holdLock(path);
    const controller = new AbortController();
    const waiting = openLedger(path, { lockTimeoutMs: 60_000, signal: controller.signal });
    controller.abort(new Error('enough'));
    await expect(waiting).rejects.toThrow('enough');
    await release();
    await makeLedger(path, 1);
    await expectSound(path, 2);
  });

  test('for its group may be told so too, and goes on all the same', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    const controller = new AbortController();
    const ledger = await openLedger(path, { lockTimeoutMs: 60_000, signal: controller.signal });
    const release = await holdLock(path);
    const waiting = ledger.append({ event: draft(1) });
    setTimeout(() => controller.abort(new Error('enough')), 50);
    await expect(waiting).rejects.toThrow('enough');
    await release();
    // What was begun before is to be settled.
    expect(await ledger.append({ event: draft(2) })).toMatchObject({ seq: 1 });
    await ledger.close();
    await expectSound(path, 2);
  });
});

/** More than the kernel tells of at once, on each processor. */
const OTHER_LOCKS = `
for n in $(seq 400); do exec {fd}> "$0/other$n"; flock "$fd"; done
echo made
flock "$1" true &
read -r
`;

test.skipIf(!existsSync('/proc/locks'))('who waits is seen among many other locks', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'ledger.jsonl');
  await makeLedger(path, 1);
  const file = await nodeFileSystem.open(path, 'append');
  await file.lock(10_000);
  expect(await file.isLockWanted?.()).toBe(false);
  const others = spawn('bash', ['-c', OTHER_LOCKS, folder, path], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await once(others.stdout, 'data');
    await expect.poll(() => file.isLockWanted?.(), { timeout: 10_000 }).toBe(true);
  } finally {
    await file.close();
    others.stdin.end();
    await once(others, 'exit');
  }
});

describe('a path that is given another file while a writer waits', () => {
  /** Waits until as many as that have a file open. */
  const opened = async (path: string, count: number): Promise<void> => {
    if (!existsSync('/proc/self/fd')) await new Promise((resolve) => setTimeout(resolve, 500));
    const countOpen = (): number =>
      readdirSync('/proc/self/fd').filter((fd) => {
        try {
          return readlinkSync(join('/proc/self/fd', fd)) === path;
        } catch {
          return false;
        }
      }).length;
    if (existsSync('/proc/self/fd')) await expect.poll(countOpen).toBeGreaterThanOrEqual(count);
  };

  test('leads that writer to the other file', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'ledger.jsonl');
    await makeLedger(path, 1);
    copyFileSync(path, join(folder, 'copy.jsonl'));
    const release = await holdLock(path);
    const waiting = openLedger(path, { lockTimeoutMs: 10_000 });
    // The holder's, the files of the one that waits, and that which it wants to lock.
    await opened(path, 3);
    renameSync(path, join(folder, 'old.jsonl'));
    renameSync(join(folder, 'copy.jsonl'), path);
    await release();
    const ledger = await waiting;
    await ledger.append({ event: draft(3) });
    await ledger.close();
    const numbers = (name: string): unknown[] =>
      readRecords(join(folder, name)).map(({ event }) => event['n']);
    expect(numbers('old.jsonl')).toEqual([undefined, 1]);
    expect(numbers('ledger.jsonl')).toEqual([undefined, 1, 3]);
    await expectSound(path, 3);
  });

  test('or to a new one, where the old one was taken away', async () => {
    const path = join(temporaryFolder(), 'ledger.jsonl');
    await makeLedger(path, 1);
    const release = await holdLock(path);
    const waiting = openLedger(path, { lockTimeoutMs: 10_000 });
    await opened(path, 3);
    rmSync(path);
    await release();
    expect((await waiting).size).toBe(1);
    await (await waiting).close();
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
    expect(opened).toBeGreaterThanOrEqual(10);
    expect(opened).toBeLessThan(30);
    expect(readFileSync(path)).toEqual(before);
    await makeLedger(path, 2);
    await expectSound(path, 3);
  });
});

test('whoever waits for long is told what for, once', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  await makeLedger(path, 0);
  const release = await holdLock(path);
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
  await release();
  await (await second).close();
  expect(notices).toEqual(['LEDGER_WAITING']);
});
