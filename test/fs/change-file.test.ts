/** Changes of one file at once: none is lost, and what the file is stays. */

import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { changeFile } from '../../src/log/fs/change-file.js';
import { codeOf, temporaryFolder } from '../writer/support.js';

const LIMIT = 1_000;
const adding =
  (word: string) =>
  (bytes: Uint8Array | undefined): Uint8Array =>
    Buffer.from(`${Buffer.from(bytes ?? []).toString()}${word}\n`);

describe('a file that is changed by many at once', () => {
  it.each([false, true])('has the change of each of them (there before: %s)', async (isThere) => {
    const path = join(temporaryFolder(), 'list');
    if (isThere) writeFileSync(path, 'first\n');
    const words = ['a', 'b', 'c', 'd', 'e', 'f'];
    await Promise.all(words.map((word) => changeFile(path, LIMIT, adding(word))));
    const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
    expect(lines.sort()).toEqual([...words, ...(isThere ? ['first'] : [])]);
  });

  it('keeps its permissions, and the link that led to it', async () => {
    const folder = temporaryFolder();
    const [path, link] = [join(folder, 'list'), join(folder, 'link')];
    writeFileSync(path, 'first\n');
    chmodSync(path, 0o600);
    symlinkSync('list', link);
    await changeFile(link, LIMIT, adding('more'));
    expect(readFileSync(path, 'utf8')).toBe('first\nmore\n');
    expect([lstatSync(link).isSymbolicLink(), statSync(path).mode & 0o777]).toEqual([true, 0o600]);
  });

  it('stays as it is where the change is refused, or it is too large', async () => {
    const path = join(temporaryFolder(), 'list');
    const refusing = (): Uint8Array => {
      throw new RangeError('no');
    };
    await expect(changeFile(path, LIMIT, refusing)).rejects.toThrow(RangeError);
    expect(existsSync(path)).toBe(false);
    writeFileSync(path, 'x'.repeat(LIMIT + 1));
    expect(await codeOf(changeFile(path, LIMIT, adding('more')))).toBe('FILE_TOO_BIG');
    expect(statSync(path).size).toBe(LIMIT + 1);
  });

  it('is not made in the place of a link to nothing', async () => {
    const link = join(temporaryFolder(), 'link');
    symlinkSync('nowhere', link);
    expect(await codeOf(changeFile(link, LIMIT, adding('more')))).toBe('FILE_EXISTS');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
  });
});
