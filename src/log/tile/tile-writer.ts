/**
 * Writes or updates a ledger's tlog-tiles tree (https://c2sp.org/tlog-tiles, SPEC §6) for one checkpoint, which is written last:
 *
 *     read the ledger: is the checkpoint's root its root, and does it extend the tree's own checkpoint?
 *     flock(DIR)
 *     read the ledger again; per missing bundle and tile:
 *       open(DIR/tile.new), write, fdatasync, rename(DIR/tile/…)
 *     fsync of the folders
 *     open(DIR/checkpoint.new), write, fdatasync, rename(DIR/checkpoint), fsync(DIR)
 *     unlink partial tiles that have full ones
 *
 * So the tree is whole after a crash at any point. Its files are immutable: a differing file is an error and stays. Signatures are not
 * verified here.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { toDigestText } from '../../base/value/digest.js';
import { type Checkpoint, parseCheckpoint } from '../../format/note/checkpoint.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import {
  appendLeaf,
  emptyRange,
  hashToBase64url,
  leafHash,
  rangeRoot,
} from '../../format/tree/compact-range.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { hashLine, readLines, type ReadLinesOptions } from '../../rules/source/read-lines.js';
import { type FileSystem, nodeFileSystem, type OpenFile, placeFile, replaceFile } from '../fs/file-system.js';
import { kindOfEntry, readPlainFile } from '../fs/plain-file.js';
import { SEGMENT_NAME } from '../fs/source.js';
import { joinPath } from '../store/segments.js';
import { findCheckpoint } from '../read/find-checkpoint.js';
import { BundleBuilder, maxBundleBytes } from './entry-bundle.js';
import { type HashTile, TileHasher } from './hash-tiles.js';
import { formatTilePath, hasTile, TILE_WIDTH, type TileId, type TileLevel, tileLevels } from './tile-path.js';

export interface WriteTilesOptions {
  /** The checkpoint to publish, a signed note. Default: the ledger's last one, with its attestations' signatures. */
  readonly note?: Uint8Array | undefined;
  /** Called with the bytes read, and the total if known. */
  readonly onProgress?: (bytes: number, size: number | undefined) => void;
  /** Aborting ends with the signal's reason; the tree stays whole. */
  readonly signal?: AbortSignal | undefined;
  /** For tests. */
  readonly fileSystem?: FileSystem | undefined;
}

export interface FileCount {
  readonly written: number;
  readonly kept: number;
}

export interface WrittenTiles {
  readonly checkpoint: Checkpoint;
  /** Before the update. */
  readonly previousSize: number | undefined;
  readonly tiles: FileCount;
  readonly bundles: FileCount;
  /** Partial tiles and bundles that have full ones. */
  readonly removed: number;
}

export const MAX_TILE_BYTES = TILE_WIDTH * 32;
export const CHECKPOINT_FILE = 'checkpoint';

/**
 * Writes the tile tree of a checkpoint into a folder, created if missing.
 * @param openSource - Opens the ledger, which is read up to three times
 * @throws NorthrootError, writing nothing: `CHECKPOINT_MISSING`, `NOTE_MALFORMED`, `CHECKPOINT_ROOT_MISMATCH`, `TRUNCATED` (the ledger or
 *   the checkpoint is too small), `FORKED` (the tree is of another history), `ORIGIN_MISMATCH`, `LINE_TOO_LONG`, `NOT_A_TILE_TREE`,
 *   `TREE_LOCKED`, `LOCK_UNAVAILABLE`
 * @throws NorthrootError, keeping the tree's checkpoint: `TILE_MISMATCH`, `FILE_CHANGED`, and as the file system does
 */
export async function writeTiles(
  openSource: () => Promise<LedgerSource>,
  folder: string,
  options: WriteTilesOptions = {},
): Promise<WrittenTiles> {
  const { fileSystem = nodeFileSystem } = options;
  const note = options.note ?? (await lastNote(openSource, options.signal));
  const { checkpoint } = parseCheckpoint(note);
  const before = await readTreeCheckpoint(folder);
  const old = before && parseTreeCheckpoint(folder, before);
  await assertSource(await openSource(), checkpoint, old, options);

  await fileSystem.makeFolder(folder);
  const lock = await lockTree(folder, fileSystem, options.signal);
  try {
    const now = await readTreeCheckpoint(folder);
    if (Buffer.compare(now ?? Buffer.of(), before ?? Buffer.of()) !== 0) throw changed(folder);
    const writer = new TreeWriter(folder, old, fileSystem);
    await writer.writeAll(await openSource(), checkpoint, options);
    const path = joinPath(folder, CHECKPOINT_FILE);
    if (before === undefined || Buffer.compare(before, note) !== 0) {
      await replaceFile(path, note, { temporary: `${path}.new`, fileSystem });
    } else {
      // Its writer may have been killed before its name was on disk.
      await fileSystem.syncFolderOf(path);
    }
    const removed = await removePartials(folder, checkpoint.size, fileSystem);
    const { tiles, bundles } = writer;
    return { checkpoint, previousSize: old?.size, tiles, bundles, removed };
  } finally {
    await lock.close();
  }
}

/** Writes files and makes their names durable. */
class TreeWriter {
  readonly tiles = { written: 0, kept: 0 };
  readonly bundles = { written: 0, kept: 0 };
  readonly #folder: string;
  readonly #old: readonly TileLevel[];
  readonly #fileSystem: FileSystem;
  /** Per level, the last file whose folder may not be synced. */
  readonly #unsynced = new Map<string, string>();

  constructor(folder: string, old: Checkpoint | undefined, fileSystem: FileSystem) {
    this.#folder = folder;
    this.#old = tileLevels(old?.size ?? 0);
    this.#fileSystem = fileSystem;
  }

  async writeAll(source: LedgerSource, checkpoint: Checkpoint, options: WriteTilesOptions): Promise<void> {
    await this.#fileSystem.makeFolder(joinPath(this.#folder, 'tile'));
    const hasher = new TileHasher();
    const range = emptyRange();
    const bundle = new BundleBuilder();
    for await (const { line, takesPlace } of readLines(source, toReading(source, options))) {
      if (hasher.size === checkpoint.size) break;
      if (!takesPlace) continue;
      // The ledger was checked before, and its root is compared at the end.
      if (line.length > MAX_LINE_BYTES) throw changed(source.paths[0]);
      const hash = leafHash(line.bytes);
      bundle.add(line.bytes);
      appendLeaf(range, hash);
      for (const tile of hasher.push(hash)) await this.#putTile(tile);
      if (bundle.width === TILE_WIDTH) await this.#putBundle(bundle, hasher.size);
    }
    for (const tile of hasher.partials()) await this.#putTile(tile);
    if (bundle.width > 0) await this.#putBundle(bundle, hasher.size);
    if (rangeRoot(range) !== checkpoint.root) throw changed(source.paths[0]);
    for (const path of this.#unsynced.values()) await this.#sync(path);
  }

  async #putTile({ bytes, ...id }: HashTile): Promise<void> {
    this.tiles[await this.#put(id, bytes, MAX_TILE_BYTES)] += 1;
  }

  async #putBundle(bundle: BundleBuilder, size: number): Promise<void> {
    const { width } = bundle;
    const id: TileId = { level: 'entries', index: (size - width) / TILE_WIDTH, width };
    this.bundles[await this.#put(id, bundle.bytes(), maxBundleBytes(width))] += 1;
    bundle.clear();
  }

  async #put(id: TileId, bytes: Uint8Array, limit: number): Promise<keyof FileCount> {
    const path = joinPath(this.#folder, formatTilePath(id));
    const found = await readPlainFile(path, limit);
    if (found.kind !== 'missing') {
      if (found.kind !== 'file' || Buffer.compare(found.bytes, bytes) !== 0) {
        throw new NorthrootError(
          'TILE_MISMATCH',
          `${printable(path)} is not what the ledger's tree has there`,
          {
            hint: 'what was published is not changed: find out what did, or write the tree to another folder',
          },
        );
      }
      // Nor may the names of a killed run's files be on disk.
      if (!hasTile(this.#old, id)) await this.#enter(id, path);
      return 'kept';
    }
    await this.#fileSystem.makeFolder(folderOf(path));
    const temporary = joinPath(this.#folder, 'tile.new');
    await placeFile(path, bytes, { temporary, fileSystem: this.#fileSystem });
    await this.#enter(id, path);
    return 'written';
  }

  async #enter({ level, width }: TileId, path: string): Promise<void> {
    const key = width === TILE_WIDTH ? String(level) : `${level}.p`;
    const last = this.#unsynced.get(key);
    if (last !== undefined && folderOf(last) !== folderOf(path)) await this.#sync(last);
    this.#unsynced.set(key, path);
  }

  /** Syncs the names of the file and its folders. */
  async #sync(path: string): Promise<void> {
    const top = joinPath(this.#folder, '').length;
    for (let each = path; each.length > top; each = folderOf(each)) await this.#fileSystem.syncFolderOf(each);
  }
}

function toReading({ size }: LedgerSource, { signal, onProgress }: WriteTilesOptions): ReadLinesOptions {
  return { signal, onChunk: (bytes) => onProgress?.(bytes, size) };
}

async function lastNote(
  openSource: () => Promise<LedgerSource>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const source = await openSource();
  const found = await findCheckpoint(source, { signal });
  if (found !== undefined) return Buffer.from(found.note);
  const name = printable(source.paths[0] ?? '');
  throw new NorthrootError('CHECKPOINT_MISSING', `${name} has no checkpoint`, {
    hint: 'make a checkpoint first',
  });
}

/** Checks that the ledger has the new checkpoint's root, and extends the published one. @throws NorthrootError as {@link writeTiles} */
async function assertSource(
  source: LedgerSource,
  checkpoint: Checkpoint,
  old: Checkpoint | undefined,
  options: WriteTilesOptions,
): Promise<void> {
  const name = printable(source.paths[0] ?? '');
  const range = emptyRange();
  const roots = new Map([[0, rangeRoot(range)]]);
  const last = Math.max(checkpoint.size, old?.size ?? 0);
  let origin: string | undefined;
  let tooLong: number | undefined;
  for await (const { line, takesPlace } of readLines(source, toReading(source, options))) {
    if (range.size === last) break;
    if (!takesPlace) continue;
    if (line.length > MAX_LINE_BYTES) tooLong ??= range.size;
    else if (range.size === 0) origin = originOf(line.bytes);
    appendLeaf(range, hashLine(line));
    if (range.size === checkpoint.size || range.size === old?.size) roots.set(range.size, rangeRoot(range));
  }

  for (const other of [old?.origin, origin]) {
    if (other === undefined || other === checkpoint.origin) continue;
    const found = `${other === old?.origin ? 'the tree' : name} is of ${printable(other)}`;
    throw refuse('ORIGIN_MISMATCH', `the checkpoint is of ${printable(checkpoint.origin)}, ${found}`);
  }
  const oldRoot = old && roots.get(old.size);
  if (old !== undefined && old.size <= range.size && oldRoot !== old.root) {
    const found = `${name} has ${shown(oldRoot ?? '')}`;
    throw refuse(
      'FORKED',
      `the published root at size ${old.size} is ${shown(old.root)}, ${found}`,
      FORK_HINT,
    );
  }
  if (old !== undefined && old.size > checkpoint.size) {
    const message = `the published checkpoint covers ${old.size} records, the new one ${checkpoint.size}`;
    throw refuse('TRUNCATED', message, 'a log never goes back: publish a checkpoint of at least that size');
  }
  if (checkpoint.size > range.size) {
    const message = `the checkpoint covers ${checkpoint.size} records, ${name} has ${range.size}`;
    throw refuse('TRUNCATED', message, 'records were cut off, or the checkpoint is of another ledger');
  }
  const root = roots.get(checkpoint.size) ?? '';
  if (root !== checkpoint.root) {
    const message = `the checkpoint's root at size ${checkpoint.size} is ${shown(checkpoint.root)}, ${name} has ${shown(root)}`;
    throw refuse('CHECKPOINT_ROOT_MISMATCH', message, 'verify the ledger: its findings say more');
  }
  if (tooLong !== undefined && tooLong < checkpoint.size) {
    const message = `record ${tooLong} of ${name} has more than ${MAX_LINE_BYTES} bytes`;
    throw refuse('LINE_TOO_LONG', message, 'no entry of a tile tree can hold it');
  }
}

const FORK_HINT = 'the ledger was rewritten, or the folder is of another one';

function refuse(code: string, message: string, hint?: string): NorthrootError {
  return new NorthrootError(code, message, { ...(hint === undefined ? {} : { hint }) });
}

function shown(root: string): string {
  return toDigestText(hashToBase64url(root));
}

function originOf(line: Uint8Array): string | undefined {
  const examined = examineLine(line, undefined);
  const origin = examined.eventType === 'genesis' ? examined.json()?.['origin'] : undefined;
  return typeof origin === 'string' ? origin : undefined;
}

async function readTreeCheckpoint(folder: string): Promise<Uint8Array | undefined> {
  const path = joinPath(folder, CHECKPOINT_FILE);
  const found = await readPlainFile(path, MAX_NOTE_BYTES);
  if (found.kind === 'missing') return undefined;
  if (found.kind === 'file') return found.bytes;
  throw new NorthrootError('NOT_A_TILE_TREE', `${printable(path)} is not a valid checkpoint`, {
    hint: 'write the tree to a folder of its own',
  });
}

function parseTreeCheckpoint(folder: string, note: Uint8Array): Checkpoint {
  try {
    return parseCheckpoint(note).checkpoint;
  } catch (cause) {
    const path = printable(joinPath(folder, CHECKPOINT_FILE));
    const reason = cause instanceof NorthrootError ? cause.message : String(cause);
    throw new NorthrootError('CHECKPOINT_NOTE_MALFORMED', `${path}: ${reason}`, {
      cause,
      hint: 'it is not changed: find out what it was, or write the tree to another folder',
    });
  }
}

/** Locks the folder until the returned file is closed. */
async function lockTree(
  folder: string,
  fileSystem: FileSystem,
  signal: AbortSignal | undefined,
): Promise<OpenFile> {
  const lock = await fileSystem.open(folder, 'read');
  try {
    await lock.lock(0, signal);
    if ((await fileSystem.list(folder)).some((name) => SEGMENT_NAME.test(name))) {
      throw new NorthrootError('NOT_A_TILE_TREE', `${printable(folder)} is a ledger`, {
        hint: 'write the tree to a folder of its own',
      });
    }
    return lock;
  } catch (error) {
    await lock.close();
    if (!(error instanceof NorthrootError) || error.code !== 'LEDGER_LOCKED') throw error;
    throw new NorthrootError('TREE_LOCKED', `another process is writing to ${printable(folder)}`, {
      hint: 'wait until it has finished',
    });
  }
}

/** Removes partial tiles that have full ones; returns how many. */
async function removePartials(folder: string, size: number, fileSystem: FileSystem): Promise<number> {
  let removed = 0;
  for (const { level, full } of tileLevels(size)) {
    for (let index = 0; index < full; index += 1) {
      const partials = `${joinPath(folder, formatTilePath({ level, index, width: TILE_WIDTH }))}.p`;
      if ((await kindOfEntry(partials)) !== 'folder') continue;
      const names = await fileSystem.list(partials);
      const own = names.filter((name) => /^[1-9]\d{0,2}$/.test(name) && Number(name) < TILE_WIDTH);
      for (const name of own) await fileSystem.remove(`${partials}/${name}`);
      if (own.length === names.length) await fileSystem.removeFolder(partials);
      removed += own.length;
    }
  }
  return removed;
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/'));
}

function changed(path = ''): NorthrootError {
  return new NorthrootError('FILE_CHANGED', `${printable(path)} was changed while the tiles were written`, {
    hint: 'run the command again; if it happens again, find out what changes it',
  });
}
