/**
 * Reads a tlog-tiles tree (https://c2sp.org/tlog-tiles, SPEC §6) as a ledger, and checks that its files are consistent: all files of its
 * checkpoint exist, each hash matches its entries, nothing else is there. The checkpoint's root and signatures are the verifier's to check.
 * Faults are returned as data.
 * The folder is untrusted: reads are bounded, links are not followed, and of foreign files only names are read.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { FileFault } from '../../base/fault.js';
import { toDigestText } from '../../base/value/digest.js';
import { decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { leafHash } from '../../format/tree/compact-range.js';
import type { LedgerSource, Segment, TileFaultCode } from '../../rules/source/ledger-source.js';
import { type EntryKind, kindOfEntry, listFolder, type PlainFile, readPlainFile } from '../fs/plain-file.js';
import { openScratchFile } from '../fs/scratch-file.js';
import { assertUnmixed } from '../fs/source.js';
import { isStoreUrl, openStoreSource } from '../store/open-store.js';
import { joinPath } from '../store/segments.js';
import { decodeBundle, type DecodedBundle, maxBundleBytes } from './entry-bundle.js';
import { type HashTile, TileHasher } from './hash-tiles.js';
import {
  formatTilePath,
  hasTile,
  TILE_WIDTH,
  type TileId,
  type TileLevel,
  tileLevels,
  tryParseTilePath,
} from './tile-path.js';
import { CHECKPOINT_FILE, MAX_TILE_BYTES } from './tile-writer.js';

interface TileCheck {
  /** The first 1,000: in entry order, then unexpected files by name. */
  readonly faults: readonly FileFault<TileFaultCode>[];
  readonly total: number;
}

interface TileTree {
  /** Its checkpoint, unverified. */
  readonly note: Uint8Array;
  readonly checkpoint: SignedCheckpoint;
  /**
   * Its entries as lines, one segment per bundle; ends early at a missing or unreadable bundle, which {@link TileTree.finish} reports.
   * Offsets count lines, one byte less per entry than in the bundle. To be read once.
   */
  readonly source: LedgerSource;
  /**
   * The faults of the tree's files.
   * @throws TypeError unless `source` was read to its end; NorthrootError when the folder cannot be read
   */
  finish(): Promise<TileCheck>;
}

export const MAX_TILE_FAULTS = 1_000;
/** Above the 3,000 names that a folder may need: tiles, partials, groups. */
const MAX_NAMES = 4_096;

/** Whether a folder has a `checkpoint` of any kind and a folder `tile`. */
export async function isTileTree(path: string): Promise<boolean> {
  const [checkpoint, tile] = [joinPath(path, CHECKPOINT_FILE), joinPath(path, 'tile')];
  return (await kindOfEntry(checkpoint)) !== 'missing' && (await kindOfEntry(tile)) === 'folder';
}

/** @throws NorthrootError `NOT_A_TILE_TREE` without a checkpoint, `CHECKPOINT_NOTE_MALFORMED`; as the file system does */
export async function openTileTree(folder: string): Promise<TileTree> {
  const path = joinPath(folder, CHECKPOINT_FILE);
  const found = await readPlainFile(path, MAX_NOTE_BYTES);
  if (found.kind !== 'file')
    throw new NorthrootError(
      'NOT_A_TILE_TREE',
      `${printable(path)} is not a valid checkpoint: ${nameOf(found)}`,
    );
  const decoded = decodeCheckpoint(found.bytes);
  if (!decoded.ok) {
    const { expected, actual } = decoded.fault;
    throw new NorthrootError(
      'CHECKPOINT_NOTE_MALFORMED',
      `${printable(path)} is malformed: expected ${expected}, found ${printable(actual)}`,
      { hint: 'get it again from where the tree was published' },
    );
  }
  const checkpoint = decoded.value;
  const reader = new TreeReader(folder, checkpoint.checkpoint.size);
  return {
    note: found.bytes,
    checkpoint,
    source: { paths: [folder], size: undefined, segments: reader.segments() },
    finish: () => reader.finish(),
  };
}

/** A file of the tree; `isPrefix` where a full tile serves for a partial one. */
type Part =
  | { readonly path: string; readonly bytes: Uint8Array; readonly isPrefix: boolean }
  | { readonly path: string; readonly bytes: undefined };

class TreeReader {
  readonly #folder: string;
  readonly #size: number;
  readonly #levels: readonly TileLevel[];
  readonly #hasher = new TileHasher();
  readonly #faults: FileFault<TileFaultCode>[] = [];
  #total = 0;
  #isAtEnd = false;
  #check: Promise<TileCheck> | undefined;
  /** Full tiles used in place of missing partial ones. */
  readonly #standIns = new Set<string>();

  constructor(folder: string, size: number) {
    this.#folder = folder;
    this.#size = size;
    this.#levels = tileLevels(size);
  }

  async *segments(): AsyncGenerator<Segment, void, void> {
    for (let index = 0; index * TILE_WIDTH < this.#size; index += 1) {
      const width = Math.min(TILE_WIDTH, this.#size - index * TILE_WIDTH);
      const part = await this.#read({ level: 'entries', index, width });
      if (part.bytes === undefined) break;
      const bundle = decodeBundle(part.bytes, width, part.isPrefix);
      if (bundle.fault !== undefined) this.#add({ file: part.path, ...bundle.fault });
      await this.#checkOldBundles(index, width, part.bytes, bundle);
      for (const entry of bundle.entries)
        for (const tile of this.#hasher.push(leafHash(entry))) await this.#checkTile(tile);
      if (bundle.entries.length > 0) {
        const firstSeq = index * TILE_WIDTH;
        yield { file: part.path, firstSeq, chunks: once(toLines(part.bytes, bundle)) };
      }
      if (bundle.entries.length < width) break;
    }
    this.#isAtEnd = true;
  }

  async finish(): Promise<TileCheck> {
    if (!this.#isAtEnd) throw new TypeError('the tree was not read to its end');
    this.#check ??= this.#finish();
    return this.#check;
  }

  async #finish(): Promise<TileCheck> {
    if (this.#hasher.size === this.#size) {
      for (const tile of this.#hasher.partials()) await this.#checkTile(tile);
    }
    await this.#checkNames();
    return { faults: this.#faults, total: this.#total };
  }

  /** Reads a tile; a missing partial one is the beginning of the full one. */
  async #read(id: TileId): Promise<Part> {
    const limit = id.level === 'entries' ? maxBundleBytes : () => MAX_TILE_BYTES;
    const path = joinPath(this.#folder, formatTilePath(id));
    const found = await readPlainFile(path, limit(id.width));
    if (found.kind === 'file') return { path, bytes: found.bytes, isPrefix: false };
    if (found.kind === 'missing' && id.width < TILE_WIDTH) {
      const whole = formatTilePath({ ...id, width: TILE_WIDTH });
      const standIn = await readPlainFile(joinPath(this.#folder, whole), limit(TILE_WIDTH));
      if (standIn.kind === 'file') {
        this.#standIns.add(whole);
        return { path: joinPath(this.#folder, whole), bytes: standIn.bytes, isPrefix: true };
      }
    }
    const code = found.kind === 'missing' ? 'TILE_MISSING' : 'TILE_MISMATCH';
    const what = id.level === 'entries' ? 'entries' : 'hashes';
    this.#add({ code, file: path, expected: `a file of ${id.width} ${what}`, actual: nameOf(found) });
    return { path, bytes: undefined };
  }

  /** Compares a tile with the one computed from the entries. */
  async #checkTile(tile: HashTile): Promise<void> {
    const part = await this.#read(tile);
    if (part.bytes !== undefined) {
      const length = part.isPrefix ? MAX_TILE_BYTES : tile.bytes.length;
      this.#compareHashes(part.path, part.bytes, tile.bytes, length);
    }
    for (const width of await this.#oldWidths(tile)) {
      const { path, found } = await this.#readOld(tile, width);
      const expected = tile.bytes.subarray(0, width * 32);
      if (found.kind === 'file') this.#compareHashes(path, found.bytes, expected, expected.length);
      else this.#addWrongKind(path, 'a file of hashes', found);
    }
  }

  #compareHashes(file: string, actual: Uint8Array, expected: Uint8Array, length: number): void {
    const fault = { code: 'TILE_MISMATCH', file } as const;
    if (actual.length !== length) {
      this.#add({ ...fault, expected: `${length} bytes`, actual: `${actual.length} bytes` });
      return;
    }
    const at = expected.findIndex((byte, i) => byte !== actual[i]);
    if (at === -1) return;
    const hash = Math.floor(at / 32);
    const textOf = (bytes: Uint8Array): string =>
      toDigestText(Buffer.from(bytes.subarray(hash * 32, hash * 32 + 32)).toString('base64url'));
    this.#add({ ...fault, expected: `${textOf(expected)} in place ${hash}`, actual: textOf(actual) });
  }

  /** A bundle of an earlier checkpoint is a prefix of the current one. */
  async #checkOldBundles(
    index: number,
    width: number,
    bytes: Uint8Array,
    bundle: DecodedBundle,
  ): Promise<void> {
    for (const old of await this.#oldWidths({ level: 'entries', index, width })) {
      const end = bundle.ends[old - 1];
      if (end === undefined) continue;
      const { path, found } = await this.#readOld({ level: 'entries', index }, old);
      if (found.kind !== 'file') this.#addWrongKind(path, 'a file of entries', found);
      else if (Buffer.compare(found.bytes, bytes.subarray(0, end)) !== 0) {
        const expected = `the first ${old} entries of bundle ${index}`;
        this.#add({ code: 'TILE_MISMATCH', file: path, expected, actual: 'other bytes' });
      }
    }
  }

  async #readOld(
    { level, index }: Omit<TileId, 'width'>,
    width: number,
  ): Promise<{ path: string; found: PlainFile }> {
    const path = joinPath(this.#folder, formatTilePath({ level, index, width }));
    return {
      path,
      found: await readPlainFile(path, level === 'entries' ? maxBundleBytes(width) : MAX_TILE_BYTES),
    };
  }

  /** Widths of a tile's partial versions from earlier checkpoints. */
  async #oldWidths({ level, index, width }: TileId): Promise<number[]> {
    const folder = `${joinPath(this.#folder, formatTilePath({ level, index, width: TILE_WIDTH }))}.p`;
    const { entries } = await listFolder(folder, MAX_NAMES);
    return entries
      .filter(({ name }) => /^[1-9]\d{0,2}$/.test(name) && Number(name) < width)
      .map(({ name }) => Number(name))
      .sort((a, b) => a - b);
  }

  /** Reports foreign files below `tile`. */
  async #checkNames(): Promise<void> {
    const kind = await kindOfEntry(joinPath(this.#folder, 'tile'));
    if (kind === 'folder') await this.#checkFolder('tile', 0);
    else if (kind !== 'missing') this.#addWrongKind(joinPath(this.#folder, 'tile'), 'a folder', { kind });
  }

  async #checkFolder(folder: string, depth: number): Promise<void> {
    const { entries, more } = await listFolder(joinPath(this.#folder, folder), MAX_NAMES);
    for (const { name, kind } of entries) {
      const path = `${folder}/${name}`;
      if (this.#isOwnFolder(path, depth)) {
        if (kind === 'folder') await this.#checkFolder(path, depth + 1);
        else this.#addWrongKind(joinPath(this.#folder, path), 'a folder', { kind });
      } else if (!this.#isOwnFile(path)) {
        const expected = `nothing, in a tree of ${this.#size} entries`;
        this.#add({
          code: 'TILE_UNEXPECTED',
          file: joinPath(this.#folder, path),
          expected,
          actual: WORDS[kind],
        });
      }
    }
    if (more === 0) return;
    const expected = `at most ${MAX_NAMES} names`;
    const actual = `${more} more`;
    this.#add({ code: 'TILE_UNEXPECTED', file: joinPath(this.#folder, folder), expected, actual });
  }

  #isOwnFolder(path: string, depth: number): boolean {
    if (depth === 0) return this.#levels.some(({ level }) => path === `tile/${level}`);
    const partials = path.endsWith('.p') ? tryParseTilePath(path.slice(0, -2)) : undefined;
    if (partials !== undefined) return this.#hasPartials(partials);
    // A group of digits must lead to some tile's number.
    const [, name, groups = ''] = /^tile\/([^/]+)\/((?:x\d{3}\/)*x\d{3})$/.exec(path) ?? [];
    const own = this.#levels.find(({ level }) => String(level) === name);
    if (own === undefined || groups === '') return false;
    const last = own.partial > 0 ? own.full : own.full - 1;
    const number = Number(groups.replace(/[x/]/g, ''));
    // A number's first group is not zero.
    if (number < 1000 ** (groups.split('/').length - 1)) return false;
    return number * 1000 <= last;
  }

  #hasPartials({ level, index }: TileId): boolean {
    const own = this.#levels.find((each) => each.level === level);
    return own !== undefined && (index < own.full || (index === own.full && own.partial > 0));
  }

  /** Whether a file is of this tree, or of an earlier one, which was then compared with its tile. */
  #isOwnFile(path: string): boolean {
    const id = tryParseTilePath(path);
    if (id === undefined) return false;
    if (hasTile(this.#levels, id) || this.#standIns.has(path)) return true;
    const own = this.#levels.find(({ level }) => level === id.level);
    if (own === undefined || id.width === TILE_WIDTH) return false;
    return id.index < own.full || (id.index === own.full && id.width < own.partial);
  }

  #addWrongKind(
    file: string,
    expected: string,
    found: Exclude<PlainFile, { kind: 'file' }> | { kind: EntryKind },
  ): void {
    this.#add({ code: 'TILE_MISMATCH', file, expected, actual: nameOf(found) });
  }

  #add(fault: FileFault<TileFaultCode>): void {
    this.#total += 1;
    if (this.#faults.length < MAX_TILE_FAULTS) this.#faults.push(fault);
  }
}

const WORDS = {
  file: 'a file',
  folder: 'a folder',
  link: 'a symbolic link',
  other: 'a device, pipe or socket',
};

function nameOf(found: PlainFile | { readonly kind: EntryKind }): string {
  if (found.kind === 'missing') return 'nothing';
  if (found.kind === 'large') return `${found.size} bytes`;
  return WORDS[found.kind];
}

/** Turns entries into lines in place: the lengths leave room for the newlines. */
function toLines(bytes: Uint8Array, { entries }: DecodedBundle): Uint8Array {
  let at = 0;
  for (const entry of entries) {
    bytes.copyWithin(
      at,
      entry.byteOffset - bytes.byteOffset,
      entry.byteOffset - bytes.byteOffset + entry.length,
    );
    at += entry.length;
    bytes[at] = 0x0a;
    at += 1;
  }
  return bytes.subarray(0, at);
}

async function* once(chunk: Uint8Array): AsyncGenerator<Uint8Array, void, void> {
  yield await Promise.resolve(chunk);
}

/**
 * Opens the ledger at a path: a file, a folder of segments (SPEC §4) or a tile tree (SPEC §6); or at the URL of a database.
 *
 * @throws NorthrootError as `openStore` for a URL; `FILE_NOT_FOUND`, `NOT_A_LEDGER`, `CHECKPOINT_NOTE_MALFORMED` (of a tile tree), …; while reading also
 *   `FILE_CHANGED`
 */
export async function openLedger(path: string): Promise<LedgerSource> {
  if (isStoreUrl(path) || !(await isTileTree(path))) return openStoreSource(path);
  await assertUnmixed(path);
  const tree = await openTileTree(path);
  return {
    ...tree.source,
    published: { name: joinPath(path, CHECKPOINT_FILE), note: tree.note },
    findFaults: () => tree.finish(),
    openScratch: openScratchFile,
  };
}
