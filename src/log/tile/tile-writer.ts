/**
 * Writes or updates a ledger's tlog-tiles tree (https://c2sp.org/tlog-tiles, SPEC §6) for one checkpoint, which is written last:
 *
 *     read the ledger: is the checkpoint's root its root, and does it extend the tree's own checkpoint?
 *     begin: lock the folder, or try whether the bucket keeps its conditions
 *     read the ledger again; write the bundles and tiles that are missing, and make them durable
 *     replace the checkpoint that was read
 *     remove partial tiles that have full ones, where files can be listed
 *
 * So the tree is whole after a crash at any point. Its files are immutable: a differing file is an error and stays. Signatures are not
 * verified here.
 */

import { setMaxListeners } from 'node:events';
import { printable } from '../../base/bytes/printable.js';
import { type Deadline, joinSignals } from '../../base/deadline.js';
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
import type { FileSystem } from '../fs/file-system.js';
import { FolderSink } from '../object/folder-sink.js';
import { changedMeanwhile, isSame, type ObjectSink, type StoredObject } from '../object/object-sink.js';
import { findCheckpoint } from '../read/find-checkpoint.js';
import { BundleBuilder } from './entry-bundle.js';
import { type HashTile, TileHasher } from './hash-tiles.js';
import { formatTilePath, hasTile, TILE_WIDTH, type TileId, type TileLevel, tileLevels } from './tile-path.js';

export interface WriteTilesOptions {
  /** The checkpoint to publish, a signed note. Default: the ledger's last one, with its attestations' signatures. */
  readonly note?: Uint8Array | undefined;
  /** Called with the bytes read, and the total if known. */
  readonly onProgress?: (bytes: number, size: number | undefined) => void;
  /**
   * Compares also what the published checkpoint covers, and writes what is missing of it. Always so for a folder. Default: false, since in
   * a bucket each comparison is a request.
   */
  readonly recheck?: boolean | undefined;
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

/** Of bundles and tiles on their way; one larger one goes alone. */
const MAX_IN_FLIGHT_BYTES = 64 * 1024 * 1024;

/**
 * Writes the tile tree of a checkpoint to a folder, created if missing, or to another place of objects.
 * @param openSource - Opens the ledger, which is read up to three times
 * @throws NorthrootError, writing nothing: `CHECKPOINT_MISSING`, `NOTE_MALFORMED`, `CHECKPOINT_ROOT_MISMATCH`, `TRUNCATED` (the ledger or
 *   the checkpoint is too small), `FORKED` (the tree is of another history), `ORIGIN_MISMATCH`, `LINE_TOO_LONG`, `NOT_A_TILE_TREE`,
 *   `TREE_LOCKED`, `LOCK_UNAVAILABLE`, `OBJECT_STORE_UNFIT`
 * @throws NorthrootError, keeping the tree's checkpoint: `TILE_MISMATCH`, `FILE_CHANGED`, and as the file system or the store does
 */
export async function writeTiles(
  openSource: () => Promise<LedgerSource>,
  target: string | ObjectSink,
  options: WriteTilesOptions = {},
): Promise<WrittenTiles> {
  const { signal } = options;
  const sink = typeof target === 'string' ? new FolderSink(target, options.fileSystem) : target;
  const note = options.note ?? (await lastNote(openSource, signal));
  const { checkpoint } = parseCheckpoint(note);
  const before = await readTreeCheckpoint(sink, signal);
  const old = before && parseTreeCheckpoint(sink, before.bytes);
  await assertSource(await openSource(), checkpoint, old, options);
  const { recheck } = options;
  if (sink.isRemote && recheck !== true && old !== undefined && isSame(before?.bytes, note))
    return { checkpoint, previousSize: old.size, ...countAll(old.size), removed: 0 };

  try {
    await sink.begin(signal);
    const now = await readTreeCheckpoint(sink, signal);
    if (!isSame(now?.bytes, before?.bytes)) throw changedMeanwhile(sink.nameOf(CHECKPOINT_FILE));
    const writer = new TreeWriter(sink, old, options);
    await writer.writeAll(await openSource(), checkpoint);
    await sink.replaceIf(CHECKPOINT_FILE, note, now, signal);
    const removed = await removePartials(sink, checkpoint.size);
    const { tiles, bundles } = writer;
    return { checkpoint, previousSize: old?.size, tiles, bundles, removed };
  } finally {
    await sink.close();
  }
}

function countAll(size: number): Pick<WrittenTiles, 'tiles' | 'bundles'> {
  const counts = { tiles: 0, bundles: 0 };
  for (const { level, full, partial } of tileLevels(size))
    counts[level === 'entries' ? 'bundles' : 'tiles'] += full + Math.sign(partial);
  return {
    tiles: { written: 0, kept: counts.tiles },
    bundles: { written: 0, kept: counts.bundles },
  };
}

class TreeWriter {
  readonly tiles = { written: 0, kept: 0 };
  readonly bundles = { written: 0, kept: 0 };
  readonly #sink: ObjectSink;
  readonly #covered: readonly TileLevel[];
  readonly #options: WriteTilesOptions;
  readonly #inFlight = new Map<Promise<void>, number>();
  #bytesInFlight = 0;
  #failure: { readonly error: unknown } | undefined;
  /** Ended with what is on its way when one fails. */
  readonly #own = new AbortController();
  readonly #ending: Deadline;

  constructor(sink: ObjectSink, old: Checkpoint | undefined, options: WriteTilesOptions) {
    this.#sink = sink;
    this.#covered = sink.isRemote && options.recheck !== true ? tileLevels(old?.size ?? 0) : [];
    this.#options = options;
    this.#ending = joinSignals([options.signal, this.#own.signal]);
    // All that is on its way listens.
    setMaxListeners(0, this.#ending.signal);
  }

  /** Nothing is on its way when it ends, whichever way. */
  async writeAll(source: LedgerSource, checkpoint: Checkpoint): Promise<void> {
    try {
      await this.#writeAll(source, checkpoint);
    } finally {
      await Promise.all(this.#inFlight.keys());
      this.#ending.clear();
    }
    this.#throwFailure();
    await this.#sink.flush();
  }

  async #writeAll(source: LedgerSource, checkpoint: Checkpoint): Promise<void> {
    const hasher = new TileHasher();
    const range = emptyRange();
    const bundle = new BundleBuilder();
    for await (const { line, takesPlace } of readLines(source, toReading(source, this.#options))) {
      if (hasher.size === checkpoint.size) break;
      if (!takesPlace) continue;
      // The ledger was checked before, and its root is compared at the end.
      if (line.length > MAX_LINE_BYTES) throw changedMeanwhile(printable(source.paths[0] ?? ''));
      const hash = leafHash(line.bytes);
      bundle.add(line.bytes);
      appendLeaf(range, hash);
      for (const tile of hasher.push(hash)) await this.#putTile(tile);
      if (bundle.width === TILE_WIDTH) await this.#putBundle(bundle, hasher.size);
    }
    for (const tile of hasher.partials()) await this.#putTile(tile);
    if (bundle.width > 0) await this.#putBundle(bundle, hasher.size);
    if (rangeRoot(range) !== checkpoint.root) throw changedMeanwhile(printable(source.paths[0] ?? ''));
  }

  async #putTile({ bytes, ...id }: HashTile): Promise<void> {
    await this.#put(this.tiles, id, bytes);
  }

  async #putBundle(bundle: BundleBuilder, size: number): Promise<void> {
    const { width } = bundle;
    const id: TileId = { level: 'entries', index: (size - width) / TILE_WIDTH, width };
    await this.#put(this.bundles, id, bundle.bytes());
    bundle.clear();
  }

  /** Returns when there is room for the next one. The bytes may change then. */
  async #put(count: { written: number; kept: number }, id: TileId, bytes: Uint8Array): Promise<void> {
    if (hasTile(this.#covered, id)) {
      count.kept += 1;
      return;
    }
    const { concurrency } = this.#sink;
    const own = concurrency === 1 ? bytes : new Uint8Array(bytes);
    while (
      this.#inFlight.size >= concurrency ||
      (this.#inFlight.size > 0 && this.#bytesInFlight + own.length > MAX_IN_FLIGHT_BYTES)
    )
      await Promise.race(this.#inFlight.keys());
    this.#throwFailure();
    const put: Promise<void> = this.#sink
      .putNew(formatTilePath(id), own, this.#ending.signal)
      .then(
        (result) => {
          count[result] += 1;
        },
        (error: unknown) => {
          this.#failure ??= { error };
          this.#own.abort(error);
        },
      )
      .finally(() => {
        this.#inFlight.delete(put);
        this.#bytesInFlight -= own.length;
      });
    this.#inFlight.set(put, own.length);
    this.#bytesInFlight += own.length;
    if (concurrency === 1) await put;
    this.#throwFailure();
  }

  #throwFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
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

const FORK_HINT = 'the ledger was rewritten, or the tree is of another one';

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

async function readTreeCheckpoint(
  sink: ObjectSink,
  signal: AbortSignal | undefined,
): Promise<(StoredObject & { readonly bytes: Uint8Array }) | undefined> {
  const found = await sink.get(CHECKPOINT_FILE, MAX_NOTE_BYTES, signal);
  if (found === undefined) return undefined;
  const { bytes, tag } = found;
  if (bytes !== undefined) return { bytes, tag };
  throw new NorthrootError('NOT_A_TILE_TREE', `${sink.nameOf(CHECKPOINT_FILE)} is not a valid checkpoint`, {
    hint: 'write the tree to a place of its own',
  });
}

function parseTreeCheckpoint(sink: ObjectSink, note: Uint8Array): Checkpoint {
  try {
    return parseCheckpoint(note).checkpoint;
  } catch (cause) {
    const reason = cause instanceof NorthrootError ? cause.message : String(cause);
    throw new NorthrootError('CHECKPOINT_NOTE_MALFORMED', `${sink.nameOf(CHECKPOINT_FILE)}: ${reason}`, {
      cause,
      hint: 'it is not changed: find out what it was, or write the tree to another place',
    });
  }
}

/** Removes partial tiles that have full ones; returns how many. */
async function removePartials(sink: ObjectSink, size: number): Promise<number> {
  if (sink.prune === undefined) return 0;
  let removed = 0;
  for (const { level, full } of tileLevels(size)) {
    for (let index = 0; index < full; index += 1) {
      const below = `${formatTilePath({ level, index, width: TILE_WIDTH })}.p`;
      removed += await sink.prune(below, (name) => /^[1-9]\d{0,2}$/.test(name) && Number(name) < TILE_WIDTH);
    }
  }
  return removed;
}
