/**
 * A machine that dies after some number of changes to its files, on a disk that keeps only what was synced: the bytes of a file
 * since its last fdatasync, and new, changed and removed names since the last fsync of their folder, may be lost, each for itself.
 */

import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { nodeFileSystem, type FileSystem, type OpenFile } from '../../src/log/fs/file-system.js';
import { ProcessLock } from '../writer/file-systems.js';

interface Change {
  readonly folder: string;
  readonly undo: () => void;
}

export class CrashingFileSystem implements FileSystem {
  /** Operations made so far. */
  operations = 0;
  #lifetime: number;
  #changes: Change[] = [];
  readonly #unsynced = new Set<string>();

  constructor(lifetime: number) {
    this.#lifetime = lifetime;
  }

  /** Another process begins where the first one died; the machine goes on. */
  restart(): void {
    this.#lifetime = Infinity;
  }

  /** The power fails: of what is not on disk for certain `isLost` says what is lost. */
  failPower(isLost: () => boolean): void {
    for (const path of this.#unsynced) {
      if (existsSync(path) && isLost()) writeFileSync(path, readFileSync(path).subarray(0, 1));
    }
    for (const { undo } of this.#changes.reverse()) if (isLost()) undo();
    this.#changes = [];
  }

  kindOf: FileSystem['kindOf'] = (path) => this.#live(() => nodeFileSystem.kindOf(path));
  list: FileSystem['list'] = (path) => this.#live(() => nodeFileSystem.list(path));
  makeFolder: FileSystem['makeFolder'] = (path) => this.#live(() => nodeFileSystem.makeFolder(path));
  removeFolder: FileSystem['removeFolder'] = (path) => this.#live(() => nodeFileSystem.removeFolder(path));

  remove: FileSystem['remove'] = (path) =>
    this.#live(async () => {
      const bytes = readFileSync(path);
      await nodeFileSystem.remove(path);
      this.#changed(path, () => {
        if (existsSync(dirname(path))) writeFileSync(path, bytes);
      });
    });

  rename: FileSystem['rename'] = (from, to) =>
    this.#live(async () => {
      const before = existsSync(to) ? readFileSync(to) : undefined;
      await nodeFileSystem.rename(from, to);
      if (this.#unsynced.delete(from)) this.#unsynced.add(to);
      this.#changed(to, () => {
        if (before === undefined) rmSync(to, { force: true });
        else writeFileSync(to, before);
      });
    });

  renameNew: FileSystem['renameNew'] = (from, to) =>
    this.#live(async () => {
      await nodeFileSystem.renameNew(from, to);
      if (this.#unsynced.delete(from)) this.#unsynced.add(to);
      this.#changed(to, () => rmSync(to, { force: true }));
    });

  followLinks: FileSystem['followLinks'] = (path) => this.#live(() => nodeFileSystem.followLinks(path));
  stampOf: FileSystem['stampOf'] = (path) => this.#live(() => nodeFileSystem.stampOf(path));

  modifiedAt: FileSystem['modifiedAt'] = (path) => this.#live(() => nodeFileSystem.modifiedAt(path));

  syncFolderOf: FileSystem['syncFolderOf'] = (path) =>
    this.#live(async () => {
      await nodeFileSystem.syncFolderOf(path);
      this.#changes = this.#changes.filter(({ folder }) => folder !== dirname(path));
    });

  open: FileSystem['open'] = (path, mode, permissions) =>
    this.#live(async () => {
      const file = await nodeFileSystem.open(path, mode, permissions);
      if (mode === 'new') this.#changed(path, () => rmSync(path, { force: true }));
      return this.#watch(file);
    });

  #watch(file: OpenFile): OpenFile {
    const lock = new ProcessLock();
    return {
      path: file.path,
      lock: (timeoutMs, signal) => lock.acquire(file.path, timeoutMs, signal),
      size: () => file.size(),
      read: (buffer, position) => file.read(buffer, position),
      truncate: (size) => file.truncate(size),
      isInPlace: () => file.isInPlace(),
      close: async () => {
        await file.close();
        lock.release();
      },
      write: (bytes) =>
        this.#live(() => {
          this.#unsynced.add(file.path);
          // As a disk that is nearly full does it.
          return file.write(bytes.length > 4_096 ? bytes.subarray(0, 4_096) : bytes);
        }),
      datasync: () =>
        this.#live(async () => {
          await file.datasync();
          this.#unsynced.delete(file.path);
        }),
    };
  }

  #changed(path: string, undo: () => void): void {
    this.#changes.push({ folder: dirname(path), undo });
  }

  async #live<T>(run: () => Promise<T>): Promise<T> {
    this.operations += 1;
    if (this.operations > this.#lifetime) throw new Error('the machine is dead');
    return run();
  }
}
