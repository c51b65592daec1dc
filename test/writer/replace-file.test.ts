/** A file that is given new bytes has the old ones or the new ones, whatever fails, and nothing is left beside it. */

import type * as FsPromises from 'node:fs/promises';
import { readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { replaceFile, writeNewFile } from '../../src/log/fs/file-system.js';
import { FaultyFileSystem, VolatileFileSystem, type Operation } from './file-systems.js';
import { codeOf, temporaryFolder } from './support.js';

/** What link(2) fails with, where it does. */
const links = vi.hoisted((): { errno: string | undefined } => ({ errno: undefined }));

vi.mock('node:fs/promises', async (importOriginal) => {
  const original = await importOriginal<typeof FsPromises>();
  return {
    ...original,
    link: (from: string, to: string) =>
      links.errno === undefined
        ? original.link(from, to)
        : Promise.reject(Object.assign(new Error(links.errno), { code: links.errno })),
  };
});

const OPERATIONS: readonly Operation[] = ['open', 'write', 'datasync', 'close', 'rename', 'syncFolderOf'];

test.each(OPERATIONS.flatMap((operation) => [[operation, 'once'] as const, [operation, 'on'] as const]))(
  'replaceFile where %s fails (%s)',
  async (operation, mode) => {
    const folder = temporaryFolder();
    const path = join(folder, 'note');
    writeFileSync(path, 'old');
    const fileSystem = new FaultyFileSystem({ operation, nth: 1, errno: 'EIO', mode });
    await expect(replaceFile(path, Buffer.from('new'), { fileSystem })).rejects.toMatchObject({
      code: 'IO_FAILED',
    });
    expect(readFileSync(path, 'utf8')).toBe(operation === 'syncFolderOf' ? 'new' : 'old');
    expect(readdirSync(folder)).toEqual(['note']);
    await replaceFile(path, Buffer.from('newer'));
    expect(readFileSync(path, 'utf8')).toBe('newer');
  },
);

test('replaceFile takes no half write for a whole one', async () => {
  const folder = temporaryFolder();
  const path = join(folder, 'note');
  writeFileSync(path, 'old');
  const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'short' });
  await expect(replaceFile(path, Buffer.from('new'), { fileSystem })).rejects.toMatchObject({
    code: 'DISK_FULL',
  });
  expect(readFileSync(path, 'utf8')).toBe('old');
  expect(readdirSync(folder)).toEqual(['note']);
});

describe('a new file', () => {
  const bytes = Buffer.from('whole');

  test.each(['kindOf', 'open', 'write', 'datasync', 'close', 'renameNew'] as const)(
    'where %s fails is not there at all, and can be made again',
    async (operation) => {
      const folder = temporaryFolder();
      const path = join(folder, 'key');
      for (const mode of ['once', 'on'] as const) {
        const fileSystem = new FaultyFileSystem({ operation, nth: 1, errno: 'EIO', mode });
        expect(await codeOf(writeNewFile(path, bytes, 0o600, fileSystem))).toBe('IO_FAILED');
        expect(readdirSync(folder)).toEqual([]);
      }
      await writeNewFile(path, bytes, 0o600);
      expect(readFileSync(path)).toEqual(bytes);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(readdirSync(folder)).toEqual(['key']);
    },
  );

  test('that a full disk cuts off is not there at all', async () => {
    const folder = temporaryFolder();
    const fileSystem = new FaultyFileSystem({ operation: 'write', nth: 1, errno: 'ENOSPC', mode: 'short' });
    expect(await codeOf(writeNewFile(join(folder, 'key'), bytes, 0o600, fileSystem))).toBe('DISK_FULL');
    expect(readdirSync(folder)).toEqual([]);
  });

  test('is there whole or not at all, whenever its process is killed or the power fails', async () => {
    for (const loses of [false, true]) {
      for (let lifetime = 0; ; lifetime += 1) {
        const path = join(temporaryFolder(), 'key');
        const fileSystem = new VolatileFileSystem();
        fileSystem.startProcess(lifetime);
        const isDone = await writeNewFile(path, bytes, 0o600, fileSystem).then(
          () => true,
          () => false,
        );
        if (loses) fileSystem.failPower(() => 0);
        const found = readdirSync(join(path, '..')).includes('key') ? readFileSync(path) : undefined;
        if (isDone || found !== undefined) expect(found).toEqual(bytes);
        if (isDone) break;
        expect(lifetime).toBeLessThan(20);
      }
    }
  });

  test('takes the place of nothing', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'file'), 'old');
    symlinkSync(join(folder, 'nowhere'), join(folder, 'link'));
    for (const name of ['file', 'link', '.']) {
      expect(await codeOf(writeNewFile(join(folder, name), bytes, 0o600))).toBe('FILE_EXISTS');
    }
    expect(readFileSync(join(folder, 'file'), 'utf8')).toBe('old');
    expect(readdirSync(folder)).toEqual(['file', 'link']);
  });

  test('that several make at once is made once', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'key');
    const makers = ['a', 'b', 'c', 'd'].map((name) => writeNewFile(path, Buffer.from(name), 0o600));
    const outcomes = await Promise.allSettled(makers);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ code: 'FILE_EXISTS' });
    }
    const winner = outcomes.findIndex(({ status }) => status === 'fulfilled');
    expect(readFileSync(path, 'utf8')).toBe('abcd'[winner]);
    expect(readdirSync(folder)).toEqual(['key']);
  });

  test.each(['EPERM', 'ENOTSUP', 'ENOSYS'])('needs no hard links (%s)', async (errno) => {
    const folder = temporaryFolder();
    const path = join(folder, 'key');
    links.errno = errno;
    try {
      await writeNewFile(path, bytes, 0o600);
      expect(readFileSync(path)).toEqual(bytes);
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(await codeOf(writeNewFile(path, Buffer.from('other'), 0o600))).toBe('FILE_EXISTS');
      symlinkSync(path, join(folder, 'link'));
      expect(await codeOf(writeNewFile(join(folder, 'link'), bytes, 0o600))).toBe('FILE_EXISTS');
    } finally {
      links.errno = undefined;
    }
    expect(readFileSync(path)).toEqual(bytes);
    expect(readdirSync(folder)).toEqual(['key', 'link']);
  });

  test('that cannot be made is called by its own name', async () => {
    const path = join(temporaryFolder(), 'nowhere', 'key');
    for (const write of [() => writeNewFile(path, bytes, 0o600), () => replaceFile(path, bytes)]) {
      const message = await write().catch((error: unknown) => (error as Error).message);
      expect(message).toContain('nowhere/key: ');
    }
  });
});

describe('litter of killed processes', () => {
  const old = (folder: string, name: string): void => {
    writeFileSync(join(folder, name), 'half');
    utimesSync(join(folder, name), 1_000, 1_000);
  };
  const KEPT = ['note.new', 'note.new-', 'note.new-zz', 'other.new-12ab', 'note.new-12ab.x', 'ote.new-1'];

  test.each([
    ['made', (path: string) => writeNewFile(path, Buffer.from('new'), 0o644)],
    ['replaced', (path: string) => replaceFile(path, Buffer.from('new'))],
  ])('is removed when the file is %s, and nothing else is', async (_what, write) => {
    const folder = temporaryFolder();
    for (const name of ['note.new-12ab', 'note.new-4711', ...KEPT]) old(folder, name);
    writeFileSync(join(folder, 'note.new-77'), 'of one that lives');
    await write(join(folder, 'note'));
    expect(readdirSync(folder)).toEqual(['note', 'note.new-77', ...KEPT].sort());
    expect(readFileSync(join(folder, 'note'), 'utf8')).toBe('new');
  });
});
