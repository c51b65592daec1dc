/** Reads files that others may have made: regular files of bounded size only; no waiting on pipes, no following links. */

import { constants, lstatSync } from 'node:fs';
import { lstat, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { toIoError } from './io-error.js';

export type EntryKind = 'file' | 'folder' | 'link' | 'other';

export type PlainFile =
  | { readonly kind: 'file'; readonly bytes: Uint8Array }
  | { readonly kind: 'missing' | 'folder' | 'link' | 'other' }
  | { readonly kind: 'large'; readonly size: number };

interface FolderListing {
  readonly entries: readonly { readonly name: string; readonly kind: EntryKind }[];
  /** Entries beyond the limit. */
  readonly more: number;
}

interface Status {
  isFile(): boolean;
  isDirectory(): boolean;
  isSymbolicLink(): boolean;
}

/** Reads a regular file of at most `limit` bytes; a symbolic link is not followed. @throws NorthrootError as {@link toIoError} */
export async function readPlainFile(path: string, limit: number): Promise<PlainFile> {
  const kind = await kindOfEntry(path);
  if (kind !== 'file') return { kind };
  try {
    const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const status = await handle.stat();
      if (!status.isFile()) return { kind: 'other' };
      if (status.size > limit) return { kind: 'large', size: status.size };
      const bytes = Buffer.alloc(status.size);
      let size = 0;
      while (size < bytes.length) {
        const { bytesRead } = await handle.read(bytes, size, bytes.length - size, size);
        if (bytesRead === 0) break;
        size += bytesRead;
      }
      return { kind: 'file', bytes: bytes.subarray(0, size) };
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw toIoError(error, 'read', path);
  }
}

/** Links are not followed. @throws NorthrootError as {@link toIoError} */
export async function kindOfEntry(path: string): Promise<EntryKind | 'missing'> {
  try {
    return kindOf(await lstat(path));
  } catch (error) {
    if (isMissing(error)) return 'missing';
    throw toIoError(error, 'read', path);
  }
}

/** At most `limit` entries of a folder, sorted by name; none if it is missing. @throws NorthrootError as {@link toIoError} */
export async function listFolder(path: string, limit: number): Promise<FolderListing> {
  const entries: { name: string; kind: EntryKind }[] = [];
  let more = 0;
  try {
    for await (const entry of await opendir(path, { bufferSize: ENTRIES_AT_ONCE })) {
      if (entries.length < limit) entries.push({ name: entry.name, kind: kindOf(entry) });
      else more += 1;
    }
  } catch (error) {
    if (!isMissing(error)) throw toIoError(error, 'list', path);
  }
  return { entries: entries.sort((a, b) => (a.name < b.name ? -1 : 1)), more };
}

/** Names of a folder that are read at once: fewer cost a turn of the loop each. */
const ENTRIES_AT_ONCE = 1_024;
/** Files whose sizes are read before others have their turn: some milliseconds. */
const SIZES_AT_ONCE = 1_024;

/** The sizes of files, in bytes; 0 for one that is gone. Links are not followed. @throws NorthrootError as {@link toIoError} */
export async function sizesOf(paths: readonly string[]): Promise<number[]> {
  const sizes: number[] = [];
  for (const [index, path] of paths.entries()) {
    if (index % SIZES_AT_ONCE === SIZES_AT_ONCE - 1) await setImmediate();
    try {
      // A thread for each would take ten times as long.
      sizes.push(lstatSync(path, { throwIfNoEntry: false })?.size ?? 0);
    } catch (error) {
      throw toIoError(error, 'read', path);
    }
  }
  return sizes;
}

function kindOf(status: Status): EntryKind {
  if (status.isFile()) return 'file';
  if (status.isDirectory()) return 'folder';
  return status.isSymbolicLink() ? 'link' : 'other';
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === 'ENOENT' || code === 'ENOTDIR';
}

const MAX_FILES = 10_000;

/**
 * The paths of a folder's files, by name, without hidden files, links and folders.
 * @param onOther - Called for each entry that is neither a file nor hidden
 * @throws NorthrootError `INPUT_TOO_LARGE` for more than 10,000 entries; as {@link toIoError}
 */
export async function listFiles(
  folder: string,
  onOther?: (path: string, kind: 'folder' | 'link' | 'other') => void,
): Promise<string[]> {
  const { entries, more } = await listFolder(folder, MAX_FILES);
  if (more > 0)
    throw new NorthrootError('INPUT_TOO_LARGE', `${printable(folder)} has more than ${MAX_FILES} entries`);
  const files: string[] = [];
  for (const { name, kind } of entries) {
    if (name.startsWith('.')) continue;
    if (kind === 'file') files.push(join(folder, name));
    else onOther?.(join(folder, name), kind);
  }
  return files;
}

const WRITABLE_BY_GROUP = 0o020;
const WRITABLE_BY_ALL = 0o002;

/**
 * Whether a folder belongs to this user, root or the owner of `beside`, and others can write it only if they can write `beside` too. A
 * symbolic link is not followed.
 */
export async function isOwnFolder(folder: string, beside: string): Promise<boolean> {
  try {
    const [own, other] = await Promise.all([lstat(folder), lstat(beside)]);
    const owners = [process.getuid?.() ?? own.uid, 0, other.uid];
    const extra = own.mode & ~other.mode & (WRITABLE_BY_GROUP | WRITABLE_BY_ALL);
    return own.isDirectory() && owners.includes(own.uid) && extra === 0;
  } catch {
    return false;
  }
}
