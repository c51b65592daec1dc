/** Files written in pieces that appear whole or not at all. */

import { dirname, join, resolve } from 'node:path';
import type { ByteSink } from '../../base/bytes/byte-sink.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import {
  type FileSystem,
  litterIn,
  makeTemporaryName,
  nodeFileSystem,
  type OpenFile,
  placeFile,
  removeLitter,
  viaTemporary,
} from './file-system.js';

const BLOCK_BYTES = 256 * 1024;

export interface WriteThroughOptions {
  /** Called when the file is whole, before it gets its name; rejecting keeps the old file. */
  readonly confirm?: () => Promise<void>;
  readonly fileSystem?: FileSystem;
}

/**
 * Replaces `path` by what `fill` writes: readers see the old bytes or all of the new ones, also after a crash. If `fill` rejects, the old
 * file stays.
 * @throws NorthrootError as {@link replaceFile}; what `fill` rejects with
 */
export async function writeThrough<T>(
  path: string,
  fill: (sink: ByteSink) => Promise<T>,
  { confirm, fileSystem = nodeFileSystem }: WriteThroughOptions = {},
): Promise<T> {
  await removeLitter(path, fileSystem);
  const result = await viaTemporary(path, makeTemporaryName(path), fileSystem, async (temporary) => {
    const file = await fileSystem.open(temporary, 'new', 0o644);
    let filled: T;
    try {
      const sink = new FileSink(file);
      filled = await fill(sink);
      await sink.flush();
      await file.datasync();
    } finally {
      await file.close();
    }
    await confirm?.();
    await fileSystem.rename(temporary, path);
    return filled;
  });
  await fileSystem.syncFolderOf(path);
  return result;
}

/**
 * The same for several files of one folder, created if missing. None appears before `fill` ends; if it rejects, a created folder is
 * removed.
 * @throws NorthrootError as {@link writeThrough}; what `fill` rejects with
 */
export async function writeFolderThrough<N extends string, T>(
  folder: string,
  names: readonly N[],
  fill: (sinks: Readonly<Record<N, ByteSink>>) => Promise<T>,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<T> {
  const made = await missingFolders(folder, fileSystem);
  await fileSystem.makeFolder(folder);
  const open = (rest: readonly N[], sinks: Partial<Record<N, ByteSink>>): Promise<T> => {
    const [name, ...others] = rest;
    if (name === undefined) return fill(sinks as Readonly<Record<N, ByteSink>>);
    return writeThrough(join(folder, name), (sink) => open(others, { ...sinks, [name]: sink }), {
      fileSystem,
    });
  };
  try {
    return await open(names, {});
  } catch (error) {
    // One that is not empty by now is in use by another process.
    for (const each of made) await fileSystem.removeFolder(each).catch(() => undefined);
    throw error;
  }
}

/** The folders to create for `folder`, deepest first. */
async function missingFolders(folder: string, fileSystem: FileSystem): Promise<string[]> {
  const missing: string[] = [];
  let at = resolve(folder);
  while ((await fileSystem.kindOf(at)) === 'missing' && dirname(at) !== at) {
    missing.push(at);
    at = dirname(at);
  }
  return missing;
}

/** Writes a file of the folder and gives it its name, replacing another. */
type PlaceInFolder = (name: string, bytes: Uint8Array) => Promise<void>;

/**
 * Any number of small files in a folder, created with the first one. Each appears whole or not at all; all names are on disk on return. If
 * `fill` rejects, the files placed so far stay.
 * @throws NorthrootError as {@link writeThrough}; what `fill` rejects with
 */
export async function writeFilesThrough<T>(
  folder: string,
  fill: (place: PlaceInFolder) => Promise<T>,
  fileSystem: FileSystem = nodeFileSystem,
): Promise<T> {
  let litter: ReadonlySet<string> | undefined;
  const begin = async (): Promise<ReadonlySet<string>> => {
    await fileSystem.makeFolder(folder);
    return litterIn(folder, fileSystem);
  };
  const result = await fill(async (name, bytes) => {
    const path = join(folder, name);
    litter ??= await begin();
    if (litter.has(name)) await removeLitter(path, fileSystem);
    await placeFile(path, bytes, { temporary: makeTemporaryName(path), fileSystem });
  });
  if (litter === undefined) await begin();
  await fileSystem.syncFolderOf(join(folder, '.'));
  return result;
}

class FileSink implements ByteSink {
  readonly #file: OpenFile;
  #pieces: Uint8Array[] = [];
  #size = 0;

  constructor(file: OpenFile) {
    this.#file = file;
  }

  write(piece: Uint8Array | string): Promise<void> | undefined {
    const bytes = typeof piece === 'string' ? encodeUtf8(piece) : Uint8Array.from(piece);
    this.#pieces.push(bytes);
    this.#size += bytes.length;
    return this.#size < BLOCK_BYTES ? undefined : this.flush();
  }

  async flush(): Promise<void> {
    const block = Buffer.concat(this.#pieces, this.#size);
    this.#pieces = [];
    this.#size = 0;
    for (let done = 0; done < block.length;) done += await this.#file.write(block.subarray(done));
  }
}
