/**
 * The few operations on files that a ledger's writer makes, behind an interface, so that tests can make each of them
 * fail. This is the implementation on `node:fs`; every error leaves as a NorthrootError.
 */

import { constants as bufferConstants } from 'node:buffer';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import {
  access,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rmdir,
  stat,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { errnoOf, toIoError } from './io-error.js';

/** An open file. Positions and sizes are in bytes. */
export interface OpenFile {
  /** The descriptor, for locking; -1 where there is none. */
  readonly fd: number;
  readonly path: string;
  size(): Promise<number>;
  /** Reads at most `buffer.length` bytes at `position`; 0 at the end. */
  read(buffer: Uint8Array, position: number): Promise<number>;
  /** Appends with one system call; returns how many bytes it took, which may be fewer. */
  write(bytes: Uint8Array): Promise<number>;
  /** fdatasync(2): returns when what was written is on disk. */
  datasync(): Promise<void>;
  truncate(size: number): Promise<void>;
  close(): Promise<void>;
  /** Whether `path` still names this file. */
  isInPlace(): Promise<boolean>;
}

/** What a path is. */
export type PathKind = 'file' | 'folder' | 'other' | 'missing';

/** How a file is opened: to read, to append (it must exist), to append (made when missing), or made new. */
export type OpenMode = 'read' | 'append' | 'create' | 'new';

/** The file system as a ledger needs it. */
export interface FileSystem {
  kindOf(path: string): Promise<PathKind>;
  /** Opens a file, or with `read` a folder for locking. New files get the permission bits `permissions` (default 0o644). */
  open(path: string, mode: OpenMode, permissions?: number): Promise<OpenFile>;
  /** The names in a folder, sorted. */
  list(path: string): Promise<string[]>;
  /** Makes a folder and those above it that are missing; their names are on disk when the call returns. */
  makeFolder(path: string): Promise<void>;
  remove(path: string): Promise<void>;
  /** Removes a folder that is empty. */
  removeFolder(path: string): Promise<void>;
  /** Gives the file `from` the name `to`, in one step; what had that name before is gone. */
  rename(from: string, to: string): Promise<void>;
  /**
   * Gives the file `from` the name `to`, in one step, where nothing has that name.
   *
   * @throws NorthrootError `FILE_EXISTS`.
   */
  renameNew(from: string, to: string): Promise<void>;
  /** Which file a path names, its size, and when it was last changed, as text: another one after each change, as far as the clock tells. */
  stampOf(path: string): Promise<string>;
  /** When a file was last written to, in milliseconds since 1970. */
  modifiedAt(path: string): Promise<number>;
  /** fsync(2) of the folder that holds `path`, so that a new name in it survives a crash. */
  syncFolderOf(path: string): Promise<void>;
}

const FLAGS: Readonly<Record<OpenMode, number>> = {
  read: constants.O_RDONLY,
  append: constants.O_RDWR | constants.O_APPEND,
  create: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT,
  new: constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | constants.O_EXCL,
};

class NodeFile implements OpenFile {
  readonly path: string;
  readonly #handle: FileHandle;

  constructor(handle: FileHandle, path: string) {
    this.#handle = handle;
    this.path = path;
  }

  get fd(): number {
    return this.#handle.fd;
  }

  async size(): Promise<number> {
    return (await attempt('read', this.path, () => this.#handle.stat())).size;
  }

  async read(buffer: Uint8Array, position: number): Promise<number> {
    const { bytesRead } = await attempt('read', this.path, () =>
      this.#handle.read(buffer, 0, buffer.length, position),
    );
    return bytesRead;
  }

  async write(bytes: Uint8Array): Promise<number> {
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
    await attempt('close', this.path, () => this.#handle.close());
  }

  async isInPlace(): Promise<boolean> {
    const own = await attempt('read', this.path, () => this.#handle.stat());
    const named = await stat(this.path).catch(() => undefined);
    return named?.ino === own.ino && named.dev === own.dev;
  }
}

/** What link(2) says where the file system knows one name a file only. */
const HAS_NO_LINKS = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'EMLINK']);

/** The machine's own file system. */
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

  async makeFolder(path) {
    const made = await attempt('create', path, () => mkdir(path, { recursive: true }));
    if (made === undefined) return;
    for (let folder = resolve(path); folder.length >= resolve(made).length; folder = dirname(folder)) {
      await nodeFileSystem.syncFolderOf(folder);
    }
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
      // The empty file keeps others out; only who is killed between the two calls leaves it.
      const claim = await attempt('create', to, () => open(to, FLAGS.new, 0o600));
      await attempt('close', to, () => claim.close());
      await attempt('create', to, () => rename(from, to));
      return;
    }
    // The file is where it should be; the other name of it is litter, which somebody will remove.
    await unlink(from).catch(() => undefined);
  },

  async stampOf(path) {
    const status = await attempt('read', path, () => stat(path, { bigint: true }));
    // The time of change cannot be set by whoever writes: that of modification can.
    return [status.dev, status.ino, status.size, status.mtimeNs, status.ctimeNs].join(':');
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

/** What stands at a path: `missing`, `file`, `folder`, or `other` (a device, a pipe). Links are followed. */
export function kindOfPath(path: string): Promise<PathKind> {
  return nodeFileSystem.kindOf(path);
}

/** Whether two paths lead to one file or folder. One that leads nowhere is no other's. */
export async function isSameFile(a: string, b: string): Promise<boolean> {
  const [first, second] = await Promise.all([a, b].map((path) => stat(path).catch(() => undefined)));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
}

/**
 * Removes a file.
 *
 * @throws NorthrootError as {@link toIoError}.
 */
export function removeFile(path: string): Promise<void> {
  return nodeFileSystem.remove(path);
}

/**
 * Reads a small file whole. No more than one byte past `limit` is read: what has no end (a device, a pipe) is refused too.
 *
 * @throws NorthrootError `FILE_TOO_BIG` beyond `limit` bytes, or as {@link toIoError}.
 */
export async function readSmallFile(path: string, limit: number): Promise<Uint8Array> {
  const handle = await attempt('read', path, () => open(path, constants.O_RDONLY));
  try {
    const buffer = new Uint8Array(limit + 1);
    let size = 0;
    for (;;) {
      const { bytesRead } = await attempt('read', path, () =>
        handle.read(buffer, size, buffer.length - size, null),
      );
      size += bytesRead;
      if (size > limit) {
        throw new NorthrootError(
          'FILE_TOO_BIG',
          `cannot read ${printable(path)}: it has more than ${limit} bytes`,
        );
      }
      if (bytesRead === 0) return buffer.slice(0, size);
    }
  } finally {
    await attempt('close', path, () => handle.close());
  }
}

/**
 * Whether others than the owner of a regular file may read or change it, by its permission bits; false where the system has none.
 *
 * @throws NorthrootError as {@link toIoError}.
 */
export async function isOpenToOthers(path: string): Promise<boolean> {
  const status = await attempt('read', path, () => stat(path));
  return process.platform !== 'win32' && status.isFile() && (status.mode & 0o077) !== 0;
}

/** Whether files can be made in a folder. */
export function isWritableFolder(path: string): Promise<boolean> {
  return access(path, constants.W_OK | constants.X_OK).then(
    async () => (await nodeFileSystem.kindOf(path)) === 'folder',
    () => false,
  );
}

/**
 * Makes a new file with these bytes, on disk when the call returns. It appears whole or not at all, whatever happens meanwhile, and
 * what has its name already is never touched.
 *
 * @throws NorthrootError `FILE_EXISTS` when `path` exists, or as {@link toIoError}.
 */
export async function writeNewFile(
  path: string,
  bytes: Uint8Array,
  permissions: number,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<void> {
  if ((await fileSystem.kindOf(path)) !== 'missing') {
    throw new NorthrootError('FILE_EXISTS', `cannot create ${printable(path)}: it exists already`);
  }
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

/** A file's bytes from beginning to end, in chunks that are not reused. */
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

/** How much of a file is looked at before the rest is read. */
const HEAD_BYTES = 4096;
/** Of one call of the system. */
const MAX_READ_BYTES = 1 << 30;

/**
 * A file's bytes in one piece, however many there are.
 *
 * @param isWanted - Asked of the first 4 KiB: where it says no, nothing else is read.
 * @returns undefined for a file that is not wanted.
 * @throws NorthrootError `FILE_TOO_BIG` for more bytes than one piece of memory can have; as {@link toIoError}.
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
      // One more than there should be, so that the end is seen.
      if (size === bytes.length) bytes = enlarge(path, bytes, Math.max(expected + 1, size * 2));
    }
  } finally {
    await attempt('close', path, () => handle.close());
  }
}

function enlarge(path: string, bytes: Buffer, length: number): Buffer {
  if (length > bufferConstants.MAX_LENGTH) {
    throw new NorthrootError(
      'FILE_TOO_BIG',
      `cannot read ${printable(path)}: it has ${length} bytes and more`,
    );
  }
  const larger = Buffer.allocUnsafeSlow(length);
  bytes.copy(larger);
  return larger;
}

/** How {@link replaceFile} goes about it. */
export interface ReplaceOptions {
  /**
   * The name that the file has until it is whole, in the same file system. What has it already is removed, so nobody else may be
   * about to use it. Default: one that nobody else has, beside the file; such ones that killed processes left are removed.
   */
  readonly temporary?: string;
  /** Asked when the file is whole, before it gets its name; rejecting leaves what has that name. */
  readonly confirm?: () => Promise<void>;
  readonly fileSystem?: FileSystem;
}

/** Gives `path` these bytes in one step: whoever reads it sees the old ones or the new ones, also after a crash. */
export async function replaceFile(
  path: string,
  bytes: Uint8Array,
  options: ReplaceOptions = {},
): Promise<void> {
  await placeFile(path, bytes, options);
  await (options.fileSystem ?? nodeFileSystem).syncFolderOf(path);
}

/** As {@link replaceFile}, but the name is on disk for certain only after `syncFolderOf`: for many files in a folder. */
export async function placeFile(
  path: string,
  bytes: Uint8Array,
  { temporary, confirm, fileSystem = nodeFileSystem }: ReplaceOptions = {},
): Promise<void> {
  if (temporary === undefined) await removeLitter(path, fileSystem);
  else if ((await fileSystem.kindOf(temporary)) !== 'missing') await fileSystem.remove(temporary);
  await viaTemporary(path, temporary ?? makeTemporaryName(path), fileSystem, async (name) => {
    await writeWhole(name, bytes, 0o644, fileSystem);
    await confirm?.();
    await fileSystem.rename(name, path);
  });
}

/** Older than this a temporary file belongs to nobody who lives: it takes milliseconds to write one. */
const LITTER_MS = 10 * 60_000;
const TEMPORARY_ENDING = /^\.new-[0-9a-f]{1,16}$/;

/** A name beside `path` that nobody else has. */
export function makeTemporaryName(path: string): string {
  return `${path}.new-${randomBytes(8).toString('hex')}`;
}

/** Removes the temporary files for `path` that killed processes left. What cannot be removed stays: it is in nobody's way. */
export async function removeLitter(path: string, fileSystem: FileSystem): Promise<void> {
  const [folder, name] = [dirname(path), basename(path)];
  const names = await fileSystem.list(folder).catch(() => []);
  for (const each of names) {
    if (!each.startsWith(name) || !TEMPORARY_ENDING.test(each.slice(name.length))) continue;
    const litter = join(folder, each);
    try {
      if (Date.now() - (await fileSystem.modifiedAt(litter)) > LITTER_MS) await fileSystem.remove(litter);
    } catch {
      continue;
    }
  }
}

/** The names of a folder's files of which killed processes left temporary ones. */
export async function litterIn(folder: string, fileSystem: FileSystem): Promise<ReadonlySet<string>> {
  const left = (await fileSystem.list(folder)).filter((name) => TEMPORARY_ENDING.test(endingOf(name)));
  return new Set(left.map((name) => name.slice(0, -endingOf(name).length)));
}

function endingOf(name: string): string {
  return name.slice(Math.max(name.lastIndexOf('.'), 0));
}

/** Runs `place` with a temporary name, of which nothing is left when that fails; errors speak of the file that was meant. */
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
    throw isOfTemporary ? toIoError(error.cause, 'write', path) : error;
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
