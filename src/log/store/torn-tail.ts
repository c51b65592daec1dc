/**
 * What a crash may leave at a ledger's end: bytes after the last newline, never acknowledged to anybody. They are
 * saved beside the ledger, and only when they are safely there is the ledger cut back to its last whole line.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import type { SavedTail } from './ledger-store.js';

const MAX_ATTEMPTS = 100;
const CHUNK_BYTES = 1024 * 1024;

/**
 * Saves what a file has from `offset` on as `FILE.torn-OFFSET` and cuts it off. Nothing is cut when it cannot be saved.
 *
 * @throws as the file system does.
 */
export async function saveTornTail(
  fileSystem: FileSystem,
  file: OpenFile,
  offset: number,
): Promise<SavedTail> {
  const length = (await file.size()) - offset;
  const savedTo = await saveBeside(fileSystem, file, offset, length);
  await file.truncate(offset);
  await file.datasync();
  return { path: file.path, savedTo, offset, length };
}

/**
 * The copy appears whole or not at all: half of what is still in the ledger would only mislead. Another tail may have been torn
 * off at the same place before: nothing is overwritten.
 */
async function saveBeside(
  fileSystem: FileSystem,
  file: OpenFile,
  offset: number,
  length: number,
): Promise<string> {
  const wanted = `${file.path}.torn-${offset}`;
  // Nobody else uses that name: the ledger is locked. What has it was left by a process that was killed.
  const temporary = `${wanted}.new`;
  if ((await fileSystem.kindOf(temporary)) !== 'missing') await fileSystem.remove(temporary);
  try {
    await copyTail(file, await fileSystem.open(temporary, 'new', 0o600), offset, length);
    for (let attempt = 1; ; attempt += 1) {
      const name = `${wanted}${attempt === 1 ? '' : `-${attempt}`}`;
      try {
        await fileSystem.renameNew(temporary, name);
      } catch (error) {
        const isTaken = error instanceof NorthrootError && error.code === 'FILE_EXISTS';
        if (isTaken && attempt < MAX_ATTEMPTS) continue;
        throw error;
      }
      await fileSystem.syncFolderOf(name);
      return name;
    }
  } catch (error) {
    await fileSystem.remove(temporary).catch(() => undefined);
    throw error;
  }
}

async function copyTail(from: OpenFile, to: OpenFile, offset: number, length: number): Promise<void> {
  try {
    const buffer = new Uint8Array(Math.min(length, CHUNK_BYTES));
    for (let done = 0; done < length;) {
      const count = await from.read(buffer.subarray(0, length - done), offset + done);
      if (count === 0)
        throw new NorthrootError('FILE_CHANGED', `${printable(from.path)} shrank while its tail was saved`);
      for (let put = 0; put < count;) put += await to.write(buffer.subarray(put, count));
      done += count;
    }
    await to.datasync();
  } finally {
    await to.close();
  }
}
