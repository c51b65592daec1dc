/**
 * A folder as a place of objects, for one publisher at a time (flock). Each file is written aside, synced and renamed; the folders' names
 * are synced before the checkpoint gets its own.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { type FileSystem, nodeFileSystem, type OpenFile, placeFile, replaceFile } from '../fs/file-system.js';
import { kindOfEntry, readPlainFile } from '../fs/plain-file.js';
import { SEGMENT_NAME } from '../fs/source.js';
import { joinPath } from '../store/segments.js';
import { changedMeanwhile, isSame, type ObjectSink, type StoredObject, tileMismatch } from './object-sink.js';

export class FolderSink implements ObjectSink {
  readonly name: string;
  readonly isRemote = false;
  /** One temporary name is enough, which a killed run leaves once. */
  readonly concurrency = 1;
  readonly #folder: string;
  readonly #fileSystem: FileSystem;
  #lock: OpenFile | undefined;
  /** Per level, the last file whose folder may not be synced. */
  readonly #unsynced = new Map<string, string>();

  constructor(folder: string, fileSystem: FileSystem = nodeFileSystem) {
    this.name = printable(folder);
    this.#folder = folder;
    this.#fileSystem = fileSystem;
  }

  nameOf(key: string): string {
    return printable(joinPath(this.#folder, key));
  }

  async get(key: string, limit: number): Promise<StoredObject | undefined> {
    const found = await readPlainFile(joinPath(this.#folder, key), limit);
    if (found.kind === 'missing') return undefined;
    return { bytes: found.kind === 'file' ? found.bytes : undefined, tag: '' };
  }

  async begin(signal?: AbortSignal): Promise<void> {
    const [folder, fileSystem] = [this.#folder, this.#fileSystem];
    await fileSystem.makeFolder(folder);
    const lock = await fileSystem.open(folder, 'read');
    try {
      await lock.lock(0, signal);
      if ((await fileSystem.list(folder)).some((name) => SEGMENT_NAME.test(name)))
        throw new NorthrootError('NOT_A_TILE_TREE', `${this.name} is a ledger`, {
          hint: 'write the tree to a folder of its own',
        });
      await fileSystem.makeFolder(joinPath(folder, 'tile'));
    } catch (error) {
      await lock.close();
      if (!(error instanceof NorthrootError) || error.code !== 'LEDGER_LOCKED') throw error;
      throw new NorthrootError('TREE_LOCKED', `another process is writing to ${this.name}`, {
        hint: 'wait until it has finished',
      });
    }
    this.#lock = lock;
  }

  async putNew(key: string, bytes: Uint8Array): Promise<'written' | 'kept'> {
    const found = await this.get(key, bytes.length);
    if (found !== undefined && !isSame(found.bytes, bytes)) throw tileMismatch(this.nameOf(key));
    const path = joinPath(this.#folder, key);
    if (found === undefined) {
      await this.#fileSystem.makeFolder(folderOf(path));
      const temporary = joinPath(this.#folder, 'tile.new');
      await placeFile(path, bytes, { temporary, fileSystem: this.#fileSystem });
    }
    // The names of a killed run's files may not be on disk either.
    await this.#enter(key, path);
    return found === undefined ? 'written' : 'kept';
  }

  async flush(): Promise<void> {
    for (const path of this.#unsynced.values()) await this.#sync(path);
    this.#unsynced.clear();
  }

  async replaceIf(key: string, bytes: Uint8Array, expected: StoredObject | undefined): Promise<void> {
    const path = joinPath(this.#folder, key);
    const found = await this.get(key, Math.max(bytes.length, expected?.bytes?.length ?? 0));
    if (!isSame(found?.bytes, expected?.bytes)) throw changedMeanwhile(this.nameOf(key));
    // Its writer may have been killed before its name was on disk.
    if (isSame(found?.bytes, bytes)) await this.#fileSystem.syncFolderOf(path);
    else await replaceFile(path, bytes, { temporary: `${path}.new`, fileSystem: this.#fileSystem });
  }

  async prune(below: string, isOwn: (name: string) => boolean): Promise<number> {
    const folder = joinPath(this.#folder, below);
    if ((await kindOfEntry(folder)) !== 'folder') return 0;
    const names = await this.#fileSystem.list(folder);
    const own = names.filter(isOwn);
    for (const name of own) await this.#fileSystem.remove(`${folder}/${name}`);
    if (own.length === names.length) await this.#fileSystem.removeFolder(folder);
    return own.length;
  }

  async close(): Promise<void> {
    await this.#lock?.close();
    this.#lock = undefined;
  }

  async #enter(key: string, path: string): Promise<void> {
    const [, level = ''] = key.split('/');
    const kind = key.includes('.p/') ? `${level}.p` : level;
    const last = this.#unsynced.get(kind);
    if (last !== undefined && folderOf(last) !== folderOf(path)) await this.#sync(last);
    this.#unsynced.set(kind, path);
  }

  /** Syncs the names of the file and its folders. */
  async #sync(path: string): Promise<void> {
    const top = joinPath(this.#folder, '').length;
    for (let each = path; each.length > top; each = folderOf(each)) await this.#fileSystem.syncFolderOf(each);
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}
