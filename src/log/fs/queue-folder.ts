/**
 * A queue of small files in a folder, one an entry: each appears whole or not at all, and is on disk before adding it returns. Their names
 * are in the order in which they were added. Several processes may add to one folder.
 */

import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { NorthrootError } from '../../base/error.js';
import {
  type FileSystem,
  isTemporaryName,
  makeTemporaryName,
  nodeFileSystem,
  type OpenFile,
  placeFile,
  readSmallFile,
  removeIfStale,
} from './file-system.js';

const ENTRY = /^(\d{17})-[0-9a-f]{16}\.json$/;
const LOCK = 'lock';
const DIGITS = 17;
const MICROSECONDS = 1_000;

export class QueueFolder {
  readonly path: string;
  readonly #fileSystem: FileSystem;
  #last = 0;
  #lock: OpenFile | undefined;

  private constructor(path: string, fileSystem: FileSystem) {
    this.path = path;
    this.#fileSystem = fileSystem;
  }

  /** Opens the folder, made if missing, for its owner alone. @throws NorthrootError as files give it */
  static async open(path: string, fileSystem: FileSystem = nodeFileSystem): Promise<QueueFolder> {
    await fileSystem.makeFolder(path, 0o700);
    const folder = new QueueFolder(path, fileSystem);
    for (const name of await fileSystem.list(path))
      if (isTemporaryName(name)) await removeIfStale(join(path, name), fileSystem);
    await folder.list();
    return folder;
  }

  /** The names of all entries, the oldest first. */
  async list(): Promise<string[]> {
    const names = (await this.#fileSystem.list(this.path)).filter((name) => ENTRY.test(name));
    const last = Number(ENTRY.exec(names.at(-1) ?? '')?.[1] ?? 0);
    // A clock that was set back changes no order.
    this.#last = Math.max(this.#last, last);
    return names;
  }

  /** Adds an entry. @returns its name */
  async add(bytes: Uint8Array): Promise<string> {
    this.#last = Math.max(this.#last + 1, Date.now() * MICROSECONDS);
    const order = String(this.#last).padStart(DIGITS, '0');
    const name = `${order}-${randomBytes(8).toString('hex')}.json`;
    const path = join(this.path, name);
    const fileSystem = this.#fileSystem;
    await placeFile(path, bytes, { temporary: makeTemporaryName(path), permissions: 0o600, fileSystem });
    await fileSystem.syncFolderOf(path);
    return name;
  }

  /** An entry's bytes; undefined where another process has removed it. @throws NorthrootError `FILE_TOO_BIG` */
  async read(name: string, limit: number): Promise<Uint8Array | undefined> {
    return orMissing(readSmallFile(join(this.path, name), limit));
  }

  /** Removes an entry. After a crash it may be there again. */
  async remove(name: string): Promise<void> {
    await orMissing(this.#fileSystem.remove(join(this.path, name)));
  }

  /** Takes the queue for this process, until {@link QueueFolder.release}. @returns false where another process has it */
  async take(): Promise<boolean> {
    const file = await this.#fileSystem.open(join(this.path, LOCK), 'create', 0o600);
    try {
      await file.lock(0);
    } catch (error) {
      await file.close();
      if (error instanceof NorthrootError && error.code === 'LEDGER_LOCKED') return false;
      throw error;
    }
    this.#lock = file;
    return true;
  }

  async release(): Promise<void> {
    const file = this.#lock;
    this.#lock = undefined;
    await file?.close();
  }
}

async function orMissing<T>(result: Promise<T>): Promise<T | undefined> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND') return undefined;
    throw error;
  }
}
