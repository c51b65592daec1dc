/** Bytes after the last newline, left by a crash and never acknowledged. They are saved beside the ledger before it is cut. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import type { SavedTail } from './ledger-store.js';

const MAX_ATTEMPTS = 100;
const CHUNK_BYTES = 1024 * 1024;

/** Moves a file's bytes from `offset` on to `FILE.torn-OFFSET`; cuts nothing unless they are saved. @throws as the file system does */
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

/** The copy appears whole or not at all, and overwrites no earlier one. */
async function saveBeside(
  fileSystem: FileSystem,
  file: OpenFile,
  offset: number,
  length: number,
): Promise<string> {
  const wanted = `${file.path}.torn-${offset}`;
  // The ledger is locked: an existing file was left by a killed process.
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
