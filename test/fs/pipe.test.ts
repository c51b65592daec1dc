/** What is no file may keep its writer waiting: other work goes on. */

import { execFileSync } from 'node:child_process';
import type * as Fs from 'node:fs';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { LineFile } from '../../src/log/fs/line-file.js';

const written = vi.hoisted(() => ({ atOnce: 0 }));

vi.mock('node:fs', async (importOriginal) => {
  const original = await importOriginal<typeof Fs>();
  const write = original.writeSync as (...each: unknown[]) => number;
  return {
    ...original,
    writeSync: (...each: unknown[]) => {
      written.atOnce += 1;
      return write(...each);
    },
  };
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'northroot-pipe-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test('lines go to a file at once, and to a pipe beside other work', async () => {
  const folder = newFolder();
  const file = new LineFile(join(folder, 'file'));
  await file.append(['a']);
  await file.close();
  expect(written.atOnce).toBe(1);

  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const pipe = new LineFile(path);
  await pipe.append(['b', 'c']);
  const bytes = Buffer.alloc(16);
  expect(bytes.toString('utf8', 0, readSync(reader, bytes))).toBe('b\nc\n');
  await pipe.close();
  closeSync(reader);
  expect(written.atOnce).toBe(1);
});
