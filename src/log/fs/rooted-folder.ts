/**
 * Files within one folder, for somebody who may at the same moment change what is in it. No symbolic link is followed, no `..` is taken,
 * nothing but regular files and folders of the same file system is touched.
 *
 * On Linux each folder of a path is opened in the one before it (`/proc/self/fd/N/name`, which is openat(2)), and what is done to a name
 * is done in the folder that is open: swapping a folder for a link, or moving it, changes nothing. Elsewhere the path is looked at before
 * and after: what is there is refused in the same way, but who swaps folders fast enough, at the very moment, can win. So there, nothing
 * else may change the folder while files are read and written.
 */

import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, opendir, realpath, rename, unlink } from 'node:fs/promises';
import { isAbsolute, join, relative, sep } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { errnoOf, toIoError } from './io-error.js';
import type { EntryKind } from './plain-file.js';

export interface ReadPart {
  readonly bytes: Uint8Array;
  /** Of the whole file, in bytes. */
  readonly size: number;
}

export interface RootedEntry {
  readonly name: string;
  readonly kind: EntryKind;
  /** Of a file, in bytes. */
  readonly size?: number | undefined;
}

/** Opens a name without opening what it leads to; Linux alone. */
const O_PATH = 0o10000000;
const FOLDER_PERMISSIONS = 0o755;
const FILE_PERMISSIONS = 0o644;
/** Of an existing file's permissions these are kept: nothing that runs as another. */
const KEPT_PERMISSIONS = 0o777;
/** What is in them is no file; /dev/shm is for everybody's. */
const OF_THE_SYSTEM = /^\/(?:proc|sys|dev(?!\/shm\/))(?:\/|$)/;

interface Held {
  /** A path that leads to this very folder. */
  readonly path: string;
  /** Whether it is still where it was. */
  isInPlace(): Promise<boolean>;
  close(): Promise<void>;
}

/** See the head of this file. Paths are lists of names, none of them empty, `.`, `..` or with a slash. */
export class RootedFolder {
  /** Links resolved. */
  readonly path: string;
  readonly #handle: FileHandle;
  readonly #device: number;
  readonly #isByHandle: boolean;

  private constructor(path: string, handle: FileHandle, device: number, isByHandle: boolean) {
    this.path = path;
    this.#handle = handle;
    this.#device = device;
    this.#isByHandle = isByHandle;
  }

  /**
   * @param options.byHandle - False: as where the system has no `/proc`
   * @throws NorthrootError `NOT_A_FOLDER`; `ROOT_UNUSABLE` for the root of the file system and folders of the system; as
   *   {@link toIoError}
   */
  static async open(
    folder: string,
    { byHandle: isWanted = true }: { readonly byHandle?: boolean } = {},
  ): Promise<RootedFolder> {
    let handle: FileHandle | undefined;
    try {
      const path = await realpath(folder);
      if (path === sep || OF_THE_SYSTEM.test(path))
        throw new NorthrootError('ROOT_UNUSABLE', `${printable(path)} cannot be a root`, {
          hint: 'give a folder of its own',
        });
      handle = await open(path, constants.O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
      const { dev, ino } = await handle.stat();
      const byHandle = isWanted && (await lstat(`/proc/self/fd/${handle.fd}/.`).catch(() => undefined));
      return new RootedFolder(
        path,
        handle,
        dev,
        byHandle !== false && byHandle?.ino === ino && byHandle.dev === dev,
      );
    } catch (error) {
      await handle?.close();
      if (errnoOf(error) === 'ENOTDIR') throw notAFolder();
      throw toIoError(error, 'open', folder);
    }
  }

  /** Whether a path, links resolved, is this folder or lies in it. What is missing counts by the folder that it would be in. */
  async holds(path: string): Promise<boolean> {
    let found = isAbsolute(path) ? path : join(process.cwd(), path);
    const rest: string[] = [];
    for (;;) {
      const resolved = await realpath(found).catch(() => undefined);
      if (resolved !== undefined) {
        const way = relative(this.path, join(resolved, ...rest));
        return way === '' || (way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way));
      }
      const above = join(found, '..');
      if (above === found) return false;
      rest.unshift(relative(above, found));
      found = above;
    }
  }

  /**
   * Reads a regular file from `offset`, at most `limit` bytes.
   * @throws NorthrootError `LINK_REFUSED`, `NOT_A_FILE`, `OTHER_FILE_SYSTEM`, `CHANGED_MEANWHILE`; as {@link toIoError}
   */
  async read(names: readonly string[], offset: number, limit: number): Promise<ReadPart> {
    return this.#in(names.slice(0, -1), false, async (folder) => {
      const path = join(folder.path, names.at(-1) as string);
      const { handle, status } = await this.#openFile(path);
      try {
        if (!(await folder.isInPlace())) throw changed();
        const bytes = Buffer.alloc(Math.max(0, Math.min(limit, status.size - offset)));
        let done = 0;
        while (done < bytes.length) {
          const { bytesRead } = await handle.read(bytes, done, bytes.length - done, offset + done);
          if (bytesRead === 0) break;
          done += bytesRead;
        }
        return { bytes: bytes.subarray(0, done), size: status.size };
      } finally {
        await handle.close();
      }
    });
  }

  /**
   * At most `limit` entries of a folder, by name.
   * @throws NorthrootError `LINK_REFUSED`, `NOT_A_FOLDER`, `OTHER_FILE_SYSTEM`, `CHANGED_MEANWHILE`; as {@link toIoError}
   */
  async list(
    names: readonly string[],
    limit: number,
  ): Promise<{ readonly entries: readonly RootedEntry[]; readonly more: number }> {
    return this.#in(names, false, async (folder) => {
      const found: string[] = [];
      let more = 0;
      for await (const { name } of await opendir(folder.path, { bufferSize: 256 })) {
        if (found.length < limit) found.push(name);
        else more += 1;
        if (more > MAX_COUNTED) break;
      }
      const entries: RootedEntry[] = [];
      for (const name of found.sort()) {
        const status = await lstat(join(folder.path, name)).catch(() => undefined);
        if (status !== undefined) entries.push(entryOf(name, status));
      }
      if (!(await folder.isInPlace())) throw changed();
      return { entries, more };
    });
  }

  /**
   * Writes a regular file, whole or not at all: readers see the old or the new bytes, also after a crash. An existing file keeps its
   * permissions.
   * @param makeFolders - Whether missing folders on the way are made; they stay where the write fails
   * @returns Whether there was a file
   * @throws NorthrootError `LINK_REFUSED`, `NOT_A_FILE`, `FILE_HAS_LINKS` for one that has another name too, `OTHER_FILE_SYSTEM`,
   *   `CHANGED_MEANWHILE`; as {@link toIoError}
   */
  async write(names: readonly string[], bytes: Uint8Array, makeFolders: boolean): Promise<boolean> {
    return this.#in(names.slice(0, -1), makeFolders, async (folder) => {
      const path = join(folder.path, names.at(-1) as string);
      const old = await statusOf(path);
      if (old !== undefined) assertWritable(old);
      const temporary = join(folder.path, `.northroot.new-${randomBytes(8).toString('hex')}`);
      const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | O_NOFOLLOW;
      const handle = await open(temporary, flags, 0o600);
      try {
        try {
          for (let done = 0; done < bytes.length;)
            done += (await handle.write(bytes, done, bytes.length - done)).bytesWritten;
          await handle.chmod(old === undefined ? FILE_PERMISSIONS : old.mode & KEPT_PERMISSIONS);
          await handle.sync();
          if (!(await folder.isInPlace()) || !(await isNamed(temporary, handle))) throw changed();
          await rename(temporary, path);
        } catch (error) {
          await unlink(temporary).catch(() => undefined);
          throw error;
        }
        if (!(await folder.isInPlace()) || !(await isNamed(path, handle))) throw changed();
      } finally {
        await handle.close();
      }
      await syncFolder(folder.path);
      return old !== undefined;
    });
  }

  /**
   * Holds a folder open while `work` runs, which is given a path to it that is good for this process and for the start of its children.
   * @throws as {@link list}, and what `work` throws
   */
  async enter<T>(names: readonly string[], work: (path: string) => Promise<T>): Promise<T> {
    return this.#in(names, false, async (folder) => {
      if (!(await folder.isInPlace())) throw changed();
      return work(folder.path);
    });
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }

  async #in<T>(
    names: readonly string[],
    makeFolders: boolean,
    work: (folder: Held) => Promise<T>,
  ): Promise<T> {
    let folder: Held | undefined;
    try {
      folder = await (this.#isByHandle ? this.#walk(names, makeFolders) : this.#look(names, makeFolders));
      return await work(folder);
    } catch (error) {
      if (errnoOf(error) === 'ELOOP') throw linkRefused();
      throw toIoError(error, 'use', names.join('/'));
    } finally {
      await folder?.close();
    }
  }

  /** Each folder is opened in the one before it. */
  async #walk(names: readonly string[], makeFolders: boolean): Promise<Held> {
    let path = `/proc/self/fd/${this.#handle.fd}`;
    let last: FileHandle | undefined;
    try {
      for (const name of names) {
        const next = await this.#openFolder(join(path, name), makeFolders);
        await last?.close();
        last = next;
        path = `/proc/self/fd/${next.fd}`;
        if ((await next.stat()).dev !== this.#device) throw otherFileSystem();
      }
    } catch (error) {
      await last?.close();
      throw error;
    }
    const own = last;
    return { path, isInPlace: () => Promise.resolve(true), close: async () => own?.close() };
  }

  async #openFolder(path: string, makeFolders: boolean): Promise<FileHandle> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW);
      } catch (error) {
        const errno = errnoOf(error);
        if (errno === 'ENOTDIR')
          throw (await statusOf(path))?.isSymbolicLink() === true ? linkRefused() : notAFolder();
        if (errno !== 'ENOENT' || !makeFolders || tries > 0) throw error;
        await makeFolder(path);
      }
    }
  }

  /** Each folder is looked at by its path. */
  async #look(names: readonly string[], makeFolders: boolean): Promise<Held> {
    let path = this.path;
    for (const name of names) {
      path = join(path, name);
      let status = await statusOf(path);
      if (status === undefined && makeFolders) {
        await makeFolder(path);
        status = await statusOf(path);
      }
      if (status?.isSymbolicLink() === true) throw linkRefused();
      if (status !== undefined && !status.isDirectory()) throw notAFolder();
      if (status !== undefined && status.dev !== this.#device) throw otherFileSystem();
    }
    const first = await lstat(path);
    const isInPlace = async (): Promise<boolean> => {
      const [real, now, root] = await Promise.all([
        realpath(path).catch(() => undefined),
        statusOf(path),
        this.#handle.stat(),
      ]);
      const rootNow = await statusOf(this.path);
      return real === path && isSame(now, first) && isSame(rootNow, root);
    };
    return { path, isInPlace, close: () => Promise.resolve() };
  }

  /** A regular file, opened without opening anything else: no device, no pipe. */
  async #openFile(path: string): Promise<{ readonly handle: FileHandle; readonly status: Stats }> {
    if (this.#isByHandle) {
      const named = await open(path, O_PATH | O_NOFOLLOW);
      try {
        const status = await named.stat();
        assertFile(status);
        return { handle: await open(`/proc/self/fd/${named.fd}`, constants.O_RDONLY), status };
      } finally {
        await named.close();
      }
    }
    const before = await lstat(path);
    assertFile(before);
    const handle = await open(path, constants.O_RDONLY | O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const status = await handle.stat();
      assertFile(status);
      if (!isSame(status, before) || !isSame(await statusOf(path), before)) throw changed();
      return { handle, status };
    } catch (error) {
      await handle.close();
      throw error;
    }
  }
}

/** Windows has neither. */
const { O_DIRECTORY = 0, O_NOFOLLOW = 0 } = constants as { O_DIRECTORY?: number; O_NOFOLLOW?: number };
/** Entries of a folder beyond the limit that are counted. */
const MAX_COUNTED = 100_000;

function entryOf(name: string, status: Stats): RootedEntry {
  if (status.isFile()) return { name, kind: 'file', size: status.size };
  if (status.isDirectory()) return { name, kind: 'folder' };
  return { name, kind: status.isSymbolicLink() ? 'link' : 'other' };
}

function assertFile(status: Stats): void {
  if (status.isSymbolicLink()) throw linkRefused();
  if (!status.isFile()) throw new NorthrootError('NOT_A_FILE', 'it is no regular file');
}

function assertWritable(status: Stats): void {
  assertFile(status);
  if (status.nlink > 1) throw new NorthrootError('FILE_HAS_LINKS', 'the file has other names too');
}

/** Links are not followed; undefined for what is missing. */
async function statusOf(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function isSame(a: Stats | undefined, b: Stats): boolean {
  return a?.ino === b.ino && a.dev === b.dev;
}

async function isNamed(path: string, handle: FileHandle): Promise<boolean> {
  return isSame(await statusOf(path), await handle.stat());
}

async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, FOLDER_PERMISSIONS);
  } catch (error) {
    // What is there now is looked at.
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function linkRefused(): NorthrootError {
  return new NorthrootError('LINK_REFUSED', 'a symbolic link is on the way');
}

function notAFolder(): NorthrootError {
  return new NorthrootError('NOT_A_FOLDER', 'it is no folder');
}

function otherFileSystem(): NorthrootError {
  return new NorthrootError('OTHER_FILE_SYSTEM', 'it is on another file system');
}

function changed(): NorthrootError {
  return new NorthrootError('CHANGED_MEANWHILE', 'somebody changed the folder at that moment');
}
