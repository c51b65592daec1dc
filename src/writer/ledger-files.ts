/**
 * The files that a ledger is kept in: one file, or a folder of segments of which the last is appended to (SPEC §4). Holds
 * the writer's lock from opening to closing.
 */

import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import { lockFile } from '../fs/lock.js';
import { SEGMENT_NAME } from '../fs/source.js';

/** How {@link openLedgerFiles} opens. */
export interface OpenFilesOptions {
  readonly fileSystem: FileSystem;
  /** Whether a ledger that is not there is made. A path that ends in `/` becomes a folder. */
  readonly create: boolean;
  readonly lockTimeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Called once, when another writer keeps the ledger for longer than a second. */
  readonly onWait?: () => void;
}

/** The files of an open ledger, locked for this process. */
export interface LedgerFiles {
  readonly path: string;
  readonly isFolder: boolean;
  /** Whether opening made the ledger. */
  readonly isNew: boolean;
  /** The file or folder that is locked; the same as the only file where there is one. */
  readonly locked: OpenFile;
  /** The paths of the segments before the last, in order: they are only read. */
  readonly earlier: string[];
  /** The file that is appended to; undefined in a folder that has no segments yet. */
  last: OpenFile | undefined;
}

const MAX_ATTEMPTS = 10;

/** The name of the segment that begins with record `seq`. */
export function segmentName(seq: number): string {
  return `${String(seq).padStart(20, '0')}.jsonl`;
}

/** The `seq` that the name of a segment promises. */
export function firstSeqOf(path: string): number {
  return Number(path.slice(-'.jsonl'.length - 20, -'.jsonl'.length));
}

/** The path of a file in `folder`, which may end in `/`. */
export function joinPath(folder: string, name: string): string {
  return folder.endsWith('/') ? `${folder}${name}` : `${folder}/${name}`;
}

/**
 * Opens and locks a ledger's files.
 *
 * @throws NorthrootError `FILE_NOT_FOUND`, `NOT_A_LEDGER` (a device, a folder of other things), `LEDGER_LOCKED`, ….
 */
export async function openLedgerFiles(path: string, options: OpenFilesOptions): Promise<LedgerFiles> {
  for (let attempt = 1; ; attempt += 1) {
    const files = await openOnce(path, options).catch((error: unknown) => {
      // What was there when it was looked at may be gone when it is opened.
      const isGone = error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND';
      if (isGone && options.create && attempt < MAX_ATTEMPTS) return undefined;
      throw error;
    });
    if (files === undefined) continue;
    // The path may have been given another file between opening and locking: that one is the ledger now.
    try {
      if (await files.locked.isInPlace()) return files;
    } catch (error) {
      await closeLedgerFiles(files).catch(() => undefined);
      throw error;
    }
    await closeLedgerFiles(files);
    if (attempt === MAX_ATTEMPTS) {
      throw new NorthrootError('FILE_CHANGED', `${printable(path)} is replaced again and again`, {
        hint: 'find out what moves the ledger while it is written',
      });
    }
  }
}

/**
 * Refuses a ledger whose path leads to something else by now: what is written to the files that are open is in no ledger that
 * anybody will ever open.
 *
 * @throws NorthrootError `FILE_CHANGED`, or as the file system does.
 */
export async function assertInPlace({ locked, last }: LedgerFiles): Promise<void> {
  for (const file of new Set(last === undefined ? [locked] : [locked, last])) {
    if (await file.isInPlace()) continue;
    throw new NorthrootError('FILE_CHANGED', `${printable(file.path)} was replaced, renamed or removed`, {
      hint: 'find out what moves the ledger while it is written',
    });
  }
}

/** Closes every file; the lock goes with them. */
export async function closeLedgerFiles(files: LedgerFiles): Promise<void> {
  const open = new Set(files.last === undefined ? [files.locked] : [files.last, files.locked]);
  const results = await Promise.allSettled([...open].map((file) => file.close()));
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}

async function openOnce(path: string, options: OpenFilesOptions): Promise<LedgerFiles> {
  const { fileSystem } = options;
  const kind = await fileSystem.kindOf(path);
  if (kind === 'other')
    throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is neither a file nor a folder`);
  if (kind === 'missing' && !options.create) {
    throw new NorthrootError('FILE_NOT_FOUND', `there is no ledger ${printable(path)}`, {
      hint: 'northroot init makes one',
    });
  }
  const isFolder = kind === 'folder' || (kind === 'missing' && path.endsWith('/'));
  if (isFolder && kind === 'missing') await fileSystem.makeFolder(path);
  const mode = isFolder ? 'read' : kind === 'missing' ? 'create' : 'append';
  const locked = await fileSystem.open(path, mode);
  try {
    await lockFile(locked, options.lockTimeoutMs, options.signal, options.onWait);
    const common = { path, isFolder, isNew: kind === 'missing', locked };
    if (!isFolder) return { ...common, earlier: [], last: locked };
    const earlier = await listSegments(fileSystem, path, options.create);
    const name = earlier.pop();
    return {
      ...common,
      earlier,
      last: name === undefined ? undefined : await fileSystem.open(name, 'append'),
    };
  } catch (error) {
    await locked.close().catch(() => undefined);
    throw error;
  }
}

async function listSegments(fileSystem: FileSystem, folder: string, create: boolean): Promise<string[]> {
  const all = await fileSystem.list(folder);
  const names = all.filter((name) => SEGMENT_NAME.test(name));
  if (names.length === 0 && (all.length > 0 || !create)) {
    throw new NorthrootError('NOT_A_LEDGER', `${printable(folder)} is a folder without ledger segments`, {
      hint: 'a new ledger needs a folder that is empty or not there yet',
    });
  }
  return names.map((name) => joinPath(folder, name));
}
