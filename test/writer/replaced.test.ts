/** A ledger whose path comes to name something else while it is written: nothing more is acknowledged. */

import {
  copyFileSync,
  cpSync,
  existsSync,
  linkSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { nodeFileSystem, type FileSystem } from '../../src/log/fs/file-system.js';
import type { Ledger, LedgerOptions } from '../../src/log/writer/ledger.js';
import {
  codeOf,
  draft,
  errorOf,
  expectSound,
  lastFile,
  makeLedger,
  openLedger,
  temporaryFolder,
} from './support.js';

const GONE = { code: 'LEDGER_FAILED', cause: { code: 'FILE_CHANGED' } };

/** As `sed -i`, rsync and a restore from a backup do it. */
function replaceByCopy(path: string): void {
  copyFileSync(path, `${path}.sed`);
  renameSync(`${path}.sed`, path);
}

const CHANGES: readonly [string, string, (path: string) => void][] = [
  ['a file that is replaced by a copy', 'ledger.jsonl', replaceByCopy],
  ['a file that is renamed', 'ledger.jsonl', (path) => renameSync(path, `${path}.1`)],
  ['a file that is removed', 'ledger.jsonl', (path) => rmSync(path)],
  ['a segment that is replaced by a copy', 'ledger/', (path) => replaceByCopy(lastFile(path))],
  ['a segment that is removed', 'ledger/', (path) => rmSync(lastFile(path))],
  ['a folder that is renamed', 'ledger/', (path) => renameSync(path, `${path.slice(0, -1)}.old`)],
  [
    'a folder that is replaced by a copy',
    'ledger/',
    (path) => {
      cpSync(path, `${path.slice(0, -1)}.copy`, { recursive: true });
      renameSync(path, `${path.slice(0, -1)}.old`);
      renameSync(`${path.slice(0, -1)}.copy`, path);
    },
  ],
  ['a folder that is removed', 'ledger/', (path) => rmSync(path, { recursive: true })],
];

/** Runs `change` once, right after the next sync of a file. */
function changingFileSystem(): { fileSystem: FileSystem; arm: (change: () => void) => void } {
  let armed: (() => void) | undefined;
  const fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (...args) => {
      const file = await nodeFileSystem.open(...args);
      const datasync = file.datasync.bind(file);
      file.datasync = async () => {
        await datasync();
        armed?.();
        armed = undefined;
      };
      return file;
    },
  };
  return { fileSystem, arm: (change) => (armed = change) };
}

describe.each(CHANGES)('%s', (_what, name, change) => {
  const open = async (options: LedgerOptions = {}): Promise<{ path: string; ledger: Ledger }> => {
    const path = join(temporaryFolder(), name);
    const ledger = await openLedger(path, options);
    await ledger.append({ event: draft(1) });
    return { path, ledger };
  };

  test('takes no further event', async () => {
    const { path, ledger } = await open();
    change(path);
    expect(await errorOf(ledger.append({ event: draft(2) }))).toMatchObject(GONE);
    expect(await codeOf(ledger.append({ event: draft(3) }))).toBe('LEDGER_FAILED');
    expect(ledger.size).toBe(2);
    await ledger.close();
  });

  test('nor does it say that it has an event already', async () => {
    const { path, ledger } = await open();
    change(path);
    expect(await errorOf(ledger.append({ event: draft(1) }))).toMatchObject(GONE);
  });

  test('is noticed at the last moment before a group is acknowledged', async () => {
    const { fileSystem, arm } = changingFileSystem();
    const { path, ledger } = await open({ fileSystem });
    arm(() => change(path));
    const outcomes = await Promise.allSettled([2, 3].map((n) => ledger.append({ event: draft(n) })));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ status: 'rejected', reason: GONE });
  });

  test('has no checkpoint published', async () => {
    const { path, ledger } = await open({ checkpoints: true });
    const { note } = await ledger.checkpoint();
    const [published, never] = ['.note', '.never'].map((end) => path.replace(/\/?$/, end)) as [
      string,
      string,
    ];
    await ledger.publishNote(published, note);
    expect(readFileSync(published, 'utf8')).toBe(note);
    change(path);
    expect(await errorOf(ledger.publishNote(published, 'another'))).toMatchObject(GONE);
    expect(await errorOf(ledger.publishNote(never, note))).toMatchObject(GONE);
    expect(readFileSync(published, 'utf8')).toBe(note);
    expect([never, `${never}.new`, `${published}.new`].filter(existsSync)).toEqual([]);
    expect(await codeOf(ledger.checkpoint())).toBe('LEDGER_FAILED');
    await ledger.close();
  });
});

describe('a ledger that only seems to be another', () => {
  test('by a symbolic link, a second name, or a new date goes on', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'ledger.jsonl');
    await makeLedger(path, 1);
    const link = join(folder, 'link.jsonl');
    symlinkSync(path, link);
    const ledger = await openLedger(link);
    linkSync(path, join(folder, 'second.jsonl'));
    utimesSync(path, 0, 0);
    await ledger.append({ event: draft(2) });
    renameSync(path, `${path}.1`);
    renameSync(`${path}.1`, path);
    await ledger.append({ event: draft(3) });
    await ledger.close();
    await expectSound(path, 4);
  });
});

test('a file that stands where a new ledger was to be is not removed when that fails', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const fileSystem: FileSystem = {
    ...nodeFileSystem,
    open: async (...args) => {
      const file = await nodeFileSystem.open(...args);
      file.write = () => {
        rmSync(path);
        writeFileSync(path, '');
        return Promise.reject(new Error('no'));
      };
      return file;
    },
  };
  await expect(openLedger(path, { fileSystem })).rejects.toThrow('no');
  expect(statSync(path).size).toBe(0);
});

test('publishing waits for what is published before it, and closing for both', async () => {
  const path = join(temporaryFolder(), 'ledger.jsonl');
  const notes: Promise<void>[] = [];
  const ledger = await openLedger(path, {
    checkpointEvery: { records: 2 },
    onCheckpoint: ({ note }, own) => notes.push(own.publishNote(`${path}.checkpoint`, note)),
  });
  const sealed = Promise.all([1, 2, 3, 4, 5, 6, 7].map((n) => ledger.append({ event: draft(n) })));
  await Promise.all([sealed, ledger.close()]);
  expect(notes.length).toBeGreaterThan(2);
  const last = readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.includes('"checkpoint"'))
    .at(-1)!;
  const { event } = JSON.parse(last) as { event: { note: string } };
  expect(readFileSync(`${path}.checkpoint`, 'utf8')).toBe(event.note);
  await Promise.all(notes);
  await expect(ledger.publishNote(`${path}.checkpoint`, 'late')).rejects.toThrow(TypeError);
});
