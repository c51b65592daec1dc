/**
 * A machine whose processes can be killed and whose power can fail, as files that are replaced see it: a rename is certain
 * when its folder was synced, and what a file holds when the file was.
 */

import { readFileSync, rmSync, writeFileSync, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { nodeFileSystem, type FileSystem, type OpenFile } from '../../src/log/fs/file-system.js';
import { ProcessLock } from '../writer/file-systems.js';

export class ForgetfulFileSystem implements FileSystem {
  /** Operations made since the last {@link ForgetfulFileSystem.startProcess}. */
  operations = 0;
  #lifetime = Infinity;
  /** What each name stood for that is not certain yet; `undefined` for nothing. */
  readonly #before = new Map<string, Buffer | undefined>();
  /** Names of files of which some bytes are not certain. */
  readonly #unsynced = new Set<string>();

  /** Begins a process that is dead after so many operations: all later ones fail. */
  startProcess(lifetime = Infinity): void {
    this.operations = 0;
    this.#lifetime = lifetime;
  }

  /** Takes back all that is not certain. */
  failPower(): void {
    for (const path of this.#unsynced) if (existsSync(path)) writeFileSync(path, '');
    for (const [path, bytes] of this.#before) {
      if (bytes === undefined) rmSync(path, { force: true });
      else writeFileSync(path, bytes);
    }
    this.#before.clear();
    this.#unsynced.clear();
  }

  kindOf: FileSystem['kindOf'] = (path) => this.#live(() => nodeFileSystem.kindOf(path));
  list: FileSystem['list'] = (path) => this.#live(() => nodeFileSystem.list(path));
  makeFolder: FileSystem['makeFolder'] = (path) => this.#live(() => nodeFileSystem.makeFolder(path));
  remove: FileSystem['remove'] = (path) => this.#live(() => nodeFileSystem.remove(path));
  removeFolder: FileSystem['removeFolder'] = (path) => this.#live(() => nodeFileSystem.removeFolder(path));

  rename: FileSystem['rename'] = (from, to) =>
    this.#live(async () => {
      if (!this.#before.has(to)) this.#before.set(to, existsSync(to) ? readFileSync(to) : undefined);
      await nodeFileSystem.rename(from, to);
      if (this.#unsynced.delete(from)) this.#unsynced.add(to);
      else this.#unsynced.delete(to);
    });

  renameNew: FileSystem['renameNew'] = (from, to) =>
    this.#live(async () => {
      await nodeFileSystem.renameNew(from, to);
      this.#before.set(to, undefined);
      if (this.#unsynced.delete(from)) this.#unsynced.add(to);
    });

  followLinks: FileSystem['followLinks'] = (path) => this.#live(() => nodeFileSystem.followLinks(path));
  stampOf: FileSystem['stampOf'] = (path) => this.#live(() => nodeFileSystem.stampOf(path));

  modifiedAt: FileSystem['modifiedAt'] = (path) => this.#live(() => nodeFileSystem.modifiedAt(path));

  syncFolderOf: FileSystem['syncFolderOf'] = (path) =>
    this.#live(async () => {
      await nodeFileSystem.syncFolderOf(path);
      for (const name of this.#before.keys()) if (dirname(name) === dirname(path)) this.#before.delete(name);
    });

  open: FileSystem['open'] = (path, mode, permissions) =>
    this.#live(async (): Promise<OpenFile> => {
      const file = await nodeFileSystem.open(path, mode, permissions);
      const lock = new ProcessLock();
      return {
        path,
        lock: (timeoutMs, signal) => lock.acquire(path, timeoutMs, signal),
        size: () => this.#live(() => file.size()),
        read: (buffer, position) => this.#live(() => file.read(buffer, position)),
        write: (bytes) => {
          this.#unsynced.add(path);
          return this.#live(() => file.write(bytes));
        },
        datasync: () =>
          this.#live(async () => {
            await file.datasync();
            this.#unsynced.delete(path);
          }),
        truncate: (size) => this.#live(() => file.truncate(size)),
        // The descriptors of a dead process are closed for it.
        close: async () => {
          await file.close();
          lock.release();
        },
        isInPlace: () => this.#live(() => file.isInPlace()),
      };
    });

  async #live<T>(run: () => Promise<T>): Promise<T> {
    this.operations += 1;
    if (this.operations > this.#lifetime) throw new Error('the process is dead');
    return run();
  }
}
