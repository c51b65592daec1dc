/**
 * The file operations that a ledger's writer needs, as an interface so that tests can fail each one; implemented on `node:fs`. Every error
 * is a NorthrootError.
 */

import { constants as bufferConstants } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { constants, fstatSync, type Stats, statSync, writeSync } from 'node:fs';
import {
  access,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rmdir,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { errnoOf, NAME_ANOTHER, toIoError } from './io-error.js';
import { FileLock } from './lock.js';

/** Positions and sizes are in bytes. */
export interface OpenFile {
  readonly path: string;
  size(): Promise<number>;
  /** Reads at most `buffer.length` bytes at `position`; 0 at the end. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Appends with one system call; returns the bytes written, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** fdatasync(2). */
  datasync(): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
  /** Whether `path` still names this file. */
  isInPlace(): Promise<boolean>;
  /** As {@link FileLock.take}. */
  lock(timeoutMs: number, signal?: AbortSignal, onWait?: () => void): Promise<void>;
  /** As {@link FileLock.giveBack}. */
  unlock?(): Promise<boolean>;
  /** As {@link FileLock.isWanted}. */
  isLockWanted?(): Promise<boolean>;
}

type PathKind = 'file' | 'folder' | 'other' | 'missing';

/** Read; append to an existing file; append, creating it if missing; create exclusively. */
type OpenMode = 'read' | 'append' | 'create' | 'new';

export interface FileSystem {
  kindOf(path: string): Promise<PathKind>;
  /** With `read`, a folder can be opened too, for locking. `permissions` of new files default to 0o644. */
  open(path: string, mode: OpenMode, permissions?: number): Promise<OpenFile>;
  /** Sorted. */
  list(path: string): Promise<string[]>;
  /** Creates the folder and its missing parents, their names on disk on return. `permissions` of new folders default to 0o777. */
  makeFolder(path: string, permissions?: number): Promise<void>;
  remove(path: string): Promise<void>;
  /** The folder MUST be empty. */
  removeFolder(path: string): Promise<void>;
  /** Atomic; replaces `to`. */
  rename(from: string, to: string): Promise<void>;
  /** Atomic; never replaces. @throws NorthrootError `FILE_EXISTS` */
  renameNew(from: string, to: string): Promise<void>;
  /** Where a path leads; itself where that is nowhere. */
  followLinks(path: string): Promise<string>;
  /** The file's identity, size and change times as text; differs after each change, as far as the clock can tell. */
  stampOf(path: string): Promise<string>;
  /** In milliseconds since 1970. */
  modifiedAt(path: string): Promise<number>;
  /** fsync(2) of the folder that holds `path`, so that a new name survives a crash. */
  syncFolderOf(path: string): Promise<void>;
}

const FLAGS: Readonly<Record<OpenMode, number>> = {
  read: constants.O_RDONLY,
  append: constants.O_RDWR | constants.O_APPEND,
  create: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT,
  new: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL,
};

/** So few bytes go to the system's memory faster than a thread is asked to write them. */
const MAX_WRITTEN_NOW = 16 * 1024;

class NodeFile implements OpenFile {
  readonly path: string;
  readonly #handle: FileHandle;
  #lock: FileLock | undefined;
  /** What stays the same of an open file: its device and inode. */
  #own: Pick<Stats, 'dev' | 'ino'> | undefined;
  /** Whether it is a regular file, once that is known: a pipe that nobody reads would stop the process. */
  #isRegular: boolean | undefined;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.path = path;
  }

  get fd(): number {
    return this.#handle.fd;
  }

  size(): Promise<number> {
    return attemptNow('read', this.path, () => fstatSync(this.#handle.fd).size);
  }

  async read(buffer: Uint8Array, position: number): Promise<number> {
    const { bytesRead } = await attempt('read', this.path, () =>
      this.#handle.read(buffer, 0, buffer.length, position),
    );
    return bytesRead;
  }

  async write(bytes: Uint8Array): Promise<number> {
    this.#isRegular ??= await attemptNow('read', this.path, () => fstatSync(this.#handle.fd).isFile());
    if (this.#isRegular && bytes.length <= MAX_WRITTEN_NOW)
      return attemptNow('write', this.path, () => writeSync(this.#handle.fd, bytes));
    const { bytesWritten } = await attempt('write', this.path, () => this.#handle.write(bytes));
    return bytesWritten;
  }

  async datasync(): Promise<void> {
    await attempt('sync', this.path, () => this.#handle.datasync());
  }

  async truncate(size: number): Promise<void> {
    await attempt('truncate', this.path, () => this.#handle.truncate(size));
  }

  async close(): Promise<void> {
    await this.#lock?.end();
    await attempt('close', this.path, () => this.#handle.close());
  }

  isInPlace(): Promise<boolean> {
    return attemptNow('read', this.path, () => {
      const own = (this.#own ??= fstatSync(this.#handle.fd));
      const named = statusOf(this.path);
      return named?.ino === own.ino && named.dev === own.dev;
    });
  }

  lock(timeoutMs: number, signal?: AbortSignal, onWait?: () => void): Promise<void> {
    this.#lock ??= new FileLock(this);
    return this.#lock.take(timeoutMs, signal, onWait);
  }

  unlock(): Promise<boolean> {
    return this.#lock?.giveBack() ?? Promise.resolve(false);
  }

  async isLockWanted(): Promise<boolean> {
    return (await this.#lock?.isWanted()) ?? false;
  }
}

/** Errors of link(2) on file systems without hard links. */
const HAS_NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'EMLINK']);

export const nodeFileSystem: FileSystem = {
  async kindOf(path) {
    try {
      const status = await stat(path);
      return status.isFile() ? 'file' : status.isDirectory() ? 'folder' : 'other';
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'missing';
      throw toIoError(error, 'read', path);
    }
  },

  async open(path, mode, permissions = 0o644) {
    const action = mode === 'read' ? 'read' : mode === 'append' ? 'write' : 'create';
    return new NodeFile(await attempt(action, path, () => open(path, FLAGS[mode], permissions)), path);
  },

  async list(path) {
    return (await attempt('list', path, () => readdir(path))).sort();
  },

  async makeFolder(path, permissions = 0o777) {
    const made = await attempt('create', path, () => mkdir(path, { recursive: true, mode: permissions }));
    if (made === undefined) return;
    for (let folder = resolve(path); folder.length >= resolve(made).length; folder = dirname(folder))
      await nodeFileSystem.syncFolderOf(folder);
  },

  async remove(path) {
    await attempt('remove', path, () => unlink(path));
  },

  async removeFolder(path) {
    await attempt('remove', path, () => rmdir(path));
  },

  async rename(from, to) {
    await attempt('replace', to, () => rename(from, to));
  },

  async renameNew(from, to) {
    try {
      await link(from, to);
    } catch (error) {
      if (!HAS_NO_LINKS.has(errnoOf(error))) throw toIoError(error, 'create', to);
      // The empty file claims the name; it stays only if the process is killed between the two calls.
      const claim = await attempt('create', to, () => open(to, FLAGS.new, 0o600));
      await attempt('close', to, () => claim.close());
      await attempt('create', to, () => rename(from, to));
      return;
    }
    // The file is in place; a leftover temporary name is removed later.
    await unlink(from).catch(() => undefined);
  },

  followLinks(path) {
    return realpath(path).catch(() => path);
  },

  stampOf(path) {
    return attemptNow('read', path, () => {
      const status = statSync(path, { bigint: true });
      // A writer can set the modification time, but not the change time.
      return [status.dev, status.ino, status.size, status.mtimeNs, status.ctimeNs].join(':');
    });
  },

  async modifiedAt(path) {
    return (await attempt('read', path, () => lstat(path))).mtimeMs;
  },

  async syncFolderOf(path) {
    const folder = dirname(path);
    await attempt('sync', folder, async () => {
      const handle = await open(folder, constants.O_RDONLY);
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    });
  },
};

/** The kind of a path, links followed. */
export function kindOfPath(path: string): Promise<PathKind> {
  return nodeFileSystem.kindOf(path);
}

/** Whether two paths lead to the same existing file or folder. */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

/** @throws NorthrootError as {@link toIoError} */
export function removeFile(path: string): Promise<void> {
  return nodeFileSystem.remove(path);
}

/**
 * Reads a small file whole, and at most one byte past `limit`, so that endless devices and pipes are refused.
 * @throws NorthrootError `FILE_TOO_BIG` beyond `limit` bytes, or as {@link toIoError}
 */
export async function readSmallFile(path: string, limit: number): Promise<Uint8Array> {
  const handle = await attempt('read', path, () => open(path, constants.O_RDONLY));
  try {
    // Without positions, which a pipe has not.
    return await readBounded(path, limit, async (buffer) => {
      const { bytesRead } = await attempt('read', path, () => handle.read(buffer, 0, buffer.length, null));
      return bytesRead;
    });
  } finally {
    await attempt('close', path, () => handle.close());
  }
}

/** As {@link readSmallFile}, by a file system. @throws as that one does */
export async function readSmallFileOf(
  fileSystem: FileSystem,
  path: string,
  limit: number,
): Promise<Uint8Array> {
  const file = await fileSystem.open(path, 'read');
  try {
    return await readBounded(path, limit, (buffer, position) => file.read(buffer, position));
  } finally {
    await file.close();
  }
}

async function readBounded(
  path: string,
  limit: number,
  read: (buffer: Uint8Array, position: number) => Promise<number>,
): Promise<Uint8Array> {
  const buffer = new Uint8Array(limit + 1);
  let size = 0;
  for (;;) {
    const count = await read(buffer.subarray(size), size);
    size += count;
    if (size > limit)
      throw new NorthrootError(
        'FILE_TOO_BIG',
        `cannot read ${printable(path)}: it has more than ${limit} bytes`,
      );
    if (count === 0) return buffer.slice(0, size);
  }
}

/**
 * Whether users other than the owner may access a regular file; false on systems without permission bits.
 * @throws NorthrootError as {@link toIoError}
 */
export async function isOpenToOthers(path: string): Promise<boolean> {
  const status = await attempt('read', path, () => stat(path));
  return process.platform !== 'win32' && status.isFile() && (status.mode & 0o077) !== 0;
}

/** Whether files can be created in a folder. */
export function isWritableFolder(path: string): Promise<boolean> {
  return access(path, constants.W_OK | constants.X_OK).then(
    async () => (await nodeFileSystem.kindOf(path)) === 'folder',
    () => false,
  );
}

/**
 * Creates a file with these bytes, on disk on return. It appears whole or not at all, and never replaces another.
 * @throws NorthrootError `FILE_EXISTS`, or as {@link toIoError}
 */
export async function writeNewFile(
  path: string,
  bytes: Uint8Array,
  permissions: number,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<void> {
  if ((await fileSystem.kindOf(path)) !== 'missing')
    throw new NorthrootError('FILE_EXISTS', `cannot create ${printable(path)}: it exists already`, {
      hint: NAME_ANOTHER,
    });
  await removeLitter(path, fileSystem);
  await viaTemporary(path, makeTemporaryName(path), fileSystem, async (temporary) => {
    await writeWhole(temporary, bytes, permissions, fileSystem);
    await fileSystem.renameNew(temporary, path);
  });
  await fileSystem.syncFolderOf(path);
}

async function attempt<T>(action: string, path: string, operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (error) {
    throw toIoError(error, action, path);
  }
}

function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** What the kernel answers from memory: asking another thread would take many times as long. */
function attemptNow<T>(action: string, path: string, operation: () => T): Promise<T> {
  try {
    return Promise.resolve(operation());
  } catch (error) {
    return Promise.reject(toIoError(error, action, path));
  }
}

/** A file's bytes in chunks that are not reused. */
export async function* readFileChunks(path: string): AsyncGenerator<Uint8Array, void, void> {
  const handle = await attempt('read', path, () => open(path, constants.O_RDONLY));
  try {
    for (;;) {
      const buffer = new Uint8Array(64 * 1024);
      const { bytesRead } = await attempt('read', path, () => handle.read(buffer, 0, buffer.length, null));
      if (bytesRead === 0) return;
      yield buffer.subarray(0, bytesRead);
    }
  } finally {
    await attempt('close', path, () => handle.close());
  }
}

/** How much `isWanted` sees. */
const HEAD_BYTES = 4096;
/** Of one read(2). */
const MAX_READ_BYTES = 1 << 30;

/**
 * Reads a file of any size whole.
 * @param isWanted - Given the first 4 KiB; if false, nothing else is read
 * @returns undefined for an unwanted file
 * @throws NorthrootError `FILE_TOO_BIG` beyond what a buffer can hold; as {@link toIoError}
 */
export async function readWholeFile(
  path: string,
  isWanted: (head: Uint8Array) => boolean,
): Promise<Uint8Array | undefined> {
  const handle = await attempt('read', path, () => open(path, constants.O_RDONLY));
  try {
    const { size: expected } = await attempt('read', path, () => handle.stat());
    let bytes: Buffer = Buffer.allocUnsafeSlow(HEAD_BYTES);
    let size = 0;
    for (let isKnown = false; ;) {
      const { bytesRead } = await attempt('read', path, () =>
        handle.read(bytes, size, Math.min(bytes.length - size, MAX_READ_BYTES), null),
      );
      size += bytesRead;
      if (!isKnown && (size === HEAD_BYTES || bytesRead === 0)) {
        if (!isWanted(bytes.subarray(0, size))) return undefined;
        isKnown = true;
      }
      if (bytesRead === 0) return bytes.subarray(0, size);
      // One byte more than expected, to see the end.
      if (size === bytes.length) bytes = enlarge(path, bytes, Math.max(expected + 1, size * 2));
    }
  } finally {
    await attempt('close', path, () => handle.close());
  }
}

function enlarge(path: string, bytes: Buffer, length: number): Buffer {
  if (length > bufferConstants.MAX_LENGTH)
    throw new NorthrootError(
      'FILE_TOO_BIG',
      `cannot read ${printable(path)}: it has ${length} bytes and more`,
    );
  const larger = Buffer.allocUnsafeSlow(length);
  bytes.copy(larger);
  return larger;
}

interface ReplaceOptions {
  /**
   * The temporary name, on the same file system; an existing file of that name is removed, so no other process may use it. Default: a
   * unique name beside the file, and stale ones are removed.
   */
  readonly temporary?: string;
  /** Of the new file. Default 0o644. */
  readonly permissions?: number | undefined;
  /** Called when the file is whole, before it gets its name; rejecting keeps the old file. */
  readonly confirm?: () => Promise<void>;
  readonly fileSystem?: FileSystem;
}

/** Replaces `path` by these bytes: readers see the old or the new ones, also after a crash. */
export async function replaceFile(
  path: string,
  bytes: Uint8Array,
  options: ReplaceOptions = {},
): Promise<void> {
  await placeFile(path, bytes, options);
  await (options.fileSystem ?? nodeFileSystem).syncFolderOf(path);
}

/**
 * Writes a file of somebody's, such as settings: where it is a link, to what it leads to; with the permissions that it had. Its folder is
 * made.
 */
export async function rewriteFile(path: string, bytes: Uint8Array): Promise<void> {
  await nodeFileSystem.makeFolder(dirname(path));
  const own = await nodeFileSystem.followLinks(path);
  const permissions = await stat(own).then(
    ({ mode }) => mode & 0o777,
    () => undefined,
  );
  await replaceFile(own, bytes, { permissions });
}

/** As {@link replaceFile}, but durable only after `syncFolderOf`: for many files in a folder. */
export async function placeFile(
  path: string,
  bytes: Uint8Array,
  { temporary, confirm, permissions = 0o644, fileSystem = nodeFileSystem }: ReplaceOptions = {},
): Promise<void> {
  if (temporary === undefined) await removeLitter(path, fileSystem);
  else if ((await fileSystem.kindOf(temporary)) !== 'missing') await fileSystem.remove(temporary);
  await viaTemporary(path, temporary ?? makeTemporaryName(path), fileSystem, async (name) => {
    await writeWhole(name, bytes, permissions, fileSystem);
    await confirm?.();
    await fileSystem.rename(name, path);
  });
}

/** Temporary files older than this have no living writer: writing one takes milliseconds. */
const LITTER_MS = 10 * 60_000;
const TEMPORARY_ENDING = /^\.new-[0-9a-f]{1,16}$/;

/** A unique name beside `path`. */
export function makeTemporaryName(path: string): string {
  return `${path}.new-${randomBytes(8).toString('hex')}`;
}

/** Removes stale temporary files of `path`; failures are ignored. */
export async function removeLitter(path: string, fileSystem: FileSystem): Promise<void> {
  const [folder, name] = [dirname(path), basename(path)];
  const names = await fileSystem.list(folder).catch(() => []);
  for (const each of names) {
    if (!each.startsWith(name) || !TEMPORARY_ENDING.test(each.slice(name.length))) continue;
    await removeIfStale(join(folder, each), fileSystem);
  }
}

/** Removes a temporary file whose writer cannot live any more; failures are ignored. */
export async function removeIfStale(path: string, fileSystem: FileSystem): Promise<void> {
  try {
    if (Date.now() - (await fileSystem.modifiedAt(path)) > LITTER_MS) await fileSystem.remove(path);
  } catch {
    return;
  }
}

/** Names in a folder that have stale temporary files. */
export async function litterIn(folder: string, fileSystem: FileSystem): Promise<ReadonlySet<string>> {
  const left = (await fileSystem.list(folder)).filter(isTemporaryName);
  return new Set(left.map((name) => name.slice(0, -endingOf(name).length)));
}

/** Whether a name is one that {@link makeTemporaryName} makes. */
export function isTemporaryName(name: string): boolean {
  return TEMPORARY_ENDING.test(endingOf(name));
}

function endingOf(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('.'), 0));
}

/** Runs `place` with a temporary name, which is removed on failure; errors name the target. */
export async function viaTemporary<T>(
  path: string,
  temporary: string,
  fileSystem: FileSystem,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  try {
    return await place(temporary);
  } catch (error) {
    await fileSystem.remove(temporary).catch(() => undefined);
    const isOfTemporary =
      error instanceof NorthrootError && error.message.includes(printable(temporary)) && error.cause;
    if (!isOfTemporary) throw error;
    throw toIoError(error.cause, errnoOf(error.cause) === 'ENOENT' ? 'create' : 'write', path);
  }
}

async function writeWhole(
  path: string,
  bytes: Uint8Array,
  permissions: number,
  fileSystem: FileSystem,
): Promise<void> {
  const file = await fileSystem.open(path, 'new', permissions);
  try {
    for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
    await file.datasync();
  } finally {
    await file.close();
  }
}
