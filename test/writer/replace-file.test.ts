/** A file that is given new bytes has the old ones or the new ones, whatever fails, and nothing is left beside it. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { replaceFile } from '../../src/fs/file-system.js';
import { FaultyFileSystem, type Operation } from './file-systems.js';
import { temporaryFolder } from './support.js';

const OPERATIONS: readonly Operation[] = [
  'kindOf',
  'open',
  'write',
  'datasync',
  'close',
  'rename',
  'syncFolderOf',
];

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
