/** The files of one machine, which stay when its program dies. What was not synced stays too: the machine goes on. */

import { NorthrootError } from '../../src/base/error.js';
import type { FileSystem, OpenFile } from '../../src/log/fs/file-system.js';
import type { Life } from './scheduler.js';

export type Files = Map<string, Buffer>;

/** The files as one program uses them, each step taking time. */
export function fileSystemOf(files: Files, life: Life): FileSystem {
  const step = (): Promise<void> => life.sleep(0);
  const missing = (path: string): NorthrootError => new NorthrootError('FILE_NOT_FOUND', `no file ${path}`);
  const move = async (from: string, to: string): Promise<void> => {
    await step();
    const bytes = files.get(from);
    if (bytes === undefined) throw missing(from);
    files.delete(from);
    files.set(to, bytes);
  };
  return {
    kindOf: (path) => step().then(() => (files.has(path) ? 'file' : 'missing')),
    open: async (path, mode) => {
      await step();
      if (!files.has(path) && (mode === 'read' || mode === 'append')) throw missing(path);
      if (!files.has(path)) files.set(path, Buffer.alloc(0));
      return openFile(files, path, step);
    },
    list: () => step().then(() => []),
    makeFolder: () => step(),
    remove: (path) => step().then(() => void files.delete(path)),
    removeFolder: () => step(),
    rename: move,
    renameNew: move,
    followLinks: (path) => step().then(() => path),
    stampOf: (path) => step().then(() => String(files.get(path)?.length)),
    modifiedAt: () => step().then(() => life.scheduler.now),
    syncFolderOf: () => step(),
  };
}

function openFile(files: Files, path: string, step: () => Promise<void>): OpenFile {
  const bytes = (): Buffer => files.get(path) ?? Buffer.alloc(0);
  return {
    path,
    size: () => step().then(() => bytes().length),
    read: (buffer, position) => step().then(() => bytes().copy(buffer, 0, position)),
    write: (added) =>
      step().then(() => {
        files.set(path, Buffer.concat([bytes(), added]));
        return added.length;
      }),
    datasync: () => step(),
    truncate: (size) => step().then(() => void files.set(path, bytes().subarray(0, size))),
    close: () => Promise.resolve(),
    isInPlace: () => Promise.resolve(true),
    lock: () => step(),
  };
}
