/**
 * The index of a ledger, `LEDGER.index/` or a named folder: a cache that `verify` never reads. It is first compared with the ledger: its
 * last line's place and hash, and its tree's root. A mismatch rebuilds it. Its folder MUST NOT be writable by other users.
 */

import { dirname, resolve } from 'node:path';
import { BlockSteps } from '#fast/step';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { canonicalBytes } from '../../base/json/canonicalize.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { appendLeaf, emptyRange, leafHash, rangeRoot } from '../../format/tree/compact-range.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { type FileSystem, nodeFileSystem } from '../fs/file-system.js';
import { besidePath } from '../fs/place.js';
import { isOwnFolder } from '../fs/plain-file.js';
import { isTailSound, noteStored, positionOf } from '../store/position.js';
import type { LedgerStore } from '../store/ledger-store.js';
import type { FileNames } from './codec.js';
import { type EntryChange, type EntryRange, type EntryStore, IndexFault } from './entry-store.js';
import { readWish } from '../fs/index-wish.js';
import { IndexedState } from './indexed-state.js';
import { destroyLevelEntries, openLevelEntries } from './level-entries.js';
import { Entries } from './tables.js';

/** Smaller ledgers have no index: reading them costs less. */
export const MIN_INDEXED_BYTES = 256 * 1024;

const DEFAULT_WAIT_MS = 5_000;
/** Store errors that mean the index does not match the ledger. */
const MISFIT = new Set(['LEDGER_CONFLICT', 'FILE_CHANGED']);

/** Lines between two writes to the index. */
const BATCH_LINES = 1_000;

/** `INDEX_UNUSABLE` is of a folder that was named: who names none asks for none. */
export interface IndexNotice {
  readonly code: 'INDEX_REBUILT' | 'INDEX_UNUSABLE';
  readonly path: string;
  readonly reason: string;
}

export interface IndexOptions {
  /** Its folder. Default: beside the ledger. */
  readonly folder?: string | undefined;
  /** Creates a missing index. Default true. */
  readonly create?: boolean;
  /** How long to wait for another process, in milliseconds. Default 5,000. */
  readonly waitMs?: number;
  readonly fileSystem?: FileSystem | undefined;
  readonly onNotice?: ((notice: IndexNotice) => void) | undefined;
}

interface CatchUpOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called after each write, with the bytes verified. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  /** Stops at this many lines. Default: all. */
  readonly lines?: number | undefined;
}

interface CaughtUp {
  /** A file ends within a line. */
  readonly isTorn: boolean;
}

/**
 * Whether a ledger has an index, or is large enough for one.
 * @param bytes - The ledger's size, if known
 */
export async function isIndexed(
  path: string,
  fileSystem: FileSystem = nodeFileSystem,
  bytes?: number,
): Promise<boolean> {
  if ((await fileSystem.kindOf(indexPath(path))) !== 'missing') return true;
  return (bytes ?? (await sizeOf(path, fileSystem, MIN_INDEXED_BYTES))) >= MIN_INDEXED_BYTES;
}

/** The size of a file, or of a folder's files but those that are removed meanwhile; 0 for anything else. Stops counting at `enough`. */
export async function sizeOf(path: string, fileSystem: FileSystem, enough = Infinity): Promise<number> {
  const kind = await fileSystem.kindOf(path);
  if (kind !== 'file' && kind !== 'folder') return 0;
  const names = kind === 'file' ? [path] : (await fileSystem.list(path)).map((name) => `${path}/${name}`);
  let size = 0;
  for (const name of names) {
    if (size >= enough) break;
    try {
      const file = await fileSystem.open(name, 'read');
      try {
        size += await file.size();
      } finally {
        await file.close();
      }
    } catch (error) {
      // LevelDB does so when it compacts.
      if (!(error instanceof NorthrootError) || error.code !== 'FILE_NOT_FOUND') throw error;
    }
  }
  return size;
}

export function indexPath(ledger: string): string {
  return besidePath(ledger, '.index');
}

/** An entry store that can be closed and reopened. */
class OpenEntries implements EntryStore {
  current: EntryStore | undefined;

  get(key: string): string | undefined {
    return this.#opened().get(key);
  }

  has(keys: readonly string[]): Promise<readonly boolean[]> {
    return this.#opened().has(keys);
  }

  list(range: EntryRange): AsyncIterable<readonly [string, string]> {
    return this.#opened().list(range);
  }

  write(changes: readonly EntryChange[]): Promise<void> {
    return this.#opened().write(changes);
  }

  async close(): Promise<void> {
    const { current } = this;
    this.current = undefined;
    await current?.close();
  }

  #opened(): EntryStore {
    if (this.current === undefined) throw new TypeError('the index is not open');
    return this.current;
  }
}

type StampedStore = Pick<LedgerStore, 'read' | 'stamp' | 'ownStamp'>;

interface View {
  readonly indexed: IndexedState;
  /** The head as last read or written; unchanged, no other process has written. */
  head: string | undefined;
}

/** The folder that an option `index` names. */
export function indexFolder(index: string | boolean | undefined): string | undefined {
  return typeof index === 'string' ? index : undefined;
}

/** An open index. LevelDB admits one process at a time: close it after use, and reopen it. */
export class LedgerIndex {
  /** The ledger's. */
  readonly path: string;
  readonly #folder: string;
  readonly #names: FileNames;
  readonly #options: IndexOptions;
  readonly #entries = new OpenEntries();
  readonly #views = new Map<string, View>();
  /** Others' wish at opening. */
  #wish = '';

  private constructor(path: string, options: IndexOptions) {
    this.path = path;
    this.#folder = options.folder ?? indexPath(path);
    this.#options = options;
    this.#names = namesOf(path);
  }

  /**
   * Opens the index of a ledger.
   * @param path - The name of its store
   * @returns undefined if there is none and `create` is false, if it cannot be used or rebuilt (a read-only folder), and if other processes
   *   keep it open. Callers MUST work without it.
   */
  static async open(path: string, options: IndexOptions = {}): Promise<LedgerIndex | undefined> {
    const index = new LedgerIndex(path, options);
    return (await index.reopen()) ? index : undefined;
  }

  /**
   * Reopens it after {@link LedgerIndex.close}. Views stay if no other process has written.
   * @returns false where `open` returns undefined
   */
  async reopen(waitMs = this.#options.waitMs ?? DEFAULT_WAIT_MS): Promise<boolean> {
    const { create = true, fileSystem = nodeFileSystem, onNotice } = this.#options;
    const folder = this.#folder;
    const isThere = (await fileSystem.kindOf(folder)) !== 'missing';
    if (!isThere && !create) return false;
    if (isThere && !(await this.#isUsable(fileSystem))) return this.#refuse();
    try {
      this.#entries.current = await openLevelEntries(folder, waitMs);
      for (const [name, { head }] of this.#views)
        if (this.#entries.current?.get(headKey(name)) !== head) this.#views.delete(name);
    } catch (error) {
      if (!(error instanceof IndexFault)) throw error;
      await this.#entries.close();
      this.#views.clear();
      this.#entries.current = await remake(folder, waitMs);
      if (this.#entries.current === undefined) return this.#refuse();
      onNotice?.({ code: 'INDEX_REBUILT', path: folder, reason: error.message });
    }
    this.#wish = readWish(folder);
    return this.#entries.current !== undefined;
  }

  /** Whether another process has said since the opening that it waits. */
  get isWanted(): boolean {
    const wish = readWish(indexPath(this.path));
    return wish !== '' && wish !== this.#wish;
  }

  /**
   * The indexed state under a trust policy, compared with the ledger; a fresh state if there is none, or none that matches.
   * @throws NorthrootError as the store does
   */
  async view(store: StampedStore, trust?: TrustPolicy, signal?: AbortSignal): Promise<IndexedState> {
    const name = viewName(trust);
    const known = this.#views.get(name);
    const stamp = await store.stamp?.();
    // This process continues from its own views, as it would without an index; stamps protect the next process.
    for (const [name, { indexed }] of this.#views)
      if (indexed.stamp !== stamp && !this.#isOnlyLonger(name, indexed.stamp, stamp))
        indexed.stamp = undefined;
    if (known !== undefined) return known.indexed;
    let view: IndexedState;
    try {
      view = await this.#open(name, trust);
      await assertBelongs(view.state, store);
      if (stamp === undefined || view.stamp !== stamp) {
        if (!this.#isOnlyLonger(name, view.stamp, stamp)) await assertSame(view, store, signal);
        view.stamp = stamp;
        view.isStampNew = true;
      }
    } catch (error) {
      const isMisfit = error instanceof NorthrootError && MISFIT.has(error.code);
      if (!isMisfit && !(error instanceof IndexFault)) throw error;
      await this.rebuild(isMisfit ? 'it is of another ledger, or of one that was longer' : error.message);
      view = await this.#open(name, trust);
      view.stamp = stamp;
    }
    this.#views.set(name, { indexed: view, head: this.#entries.get(headKey(name)) });
    return view;
  }

  /** Drops what a view has learnt since its last save. */
  dropView(trust?: TrustPolicy): void {
    this.#views.delete(viewName(trust));
  }

  /** Clears the index; call when an entry turns out to be wrong. */
  async rebuild(reason: string): Promise<void> {
    const folder = this.#folder;
    this.#views.clear();
    await this.#entries.close();
    this.#entries.current = await remake(folder, DEFAULT_WAIT_MS);
    if (this.#entries.current === undefined)
      throw new NorthrootError('INDEX_UNUSABLE', `the index ${folder} cannot be rebuilt`, {
        hint: 'remove it',
      });
    this.#options.onNotice?.({ code: 'INDEX_REBUILT', path: folder, reason });
  }

  /**
   * Verifies and saves the ledger's lines after a view, up to the last whole line.
   * @throws as the store does; the signal's reason, keeping what was written
   */
  catchUp(view: IndexedState, store: StampedStore, options: CatchUpOptions = {}): Promise<CaughtUp> {
    return catchUpWith(view, store, () => this.save(view, store), options);
  }

  entriesOf(trust?: TrustPolicy): Entries {
    return new Entries(this.#entries, viewName(trust), this.#names);
  }

  entriesIn(store: EntryStore): Entries {
    return new Entries(store, '', this.#names);
  }

  /** A view of the same ledger in another entry store. */
  viewInto(entries: EntryStore, trust?: TrustPolicy): Promise<IndexedState> {
    return IndexedState.open(entries, '', this.#names, defaultBackend, trust);
  }

  /** Saves a view. The lines that it saw MUST be on disk. */
  async save(view: IndexedState, store: StampedStore): Promise<void> {
    if (view.stamp !== undefined) view.stamp = await store.ownStamp?.();
    view.isStampNew = false;
    try {
      await this.#entries.write(view.takeChanges());
    } catch (error) {
      // Its changes are taken, and would be missing from later writes.
      for (const [name, each] of this.#views) if (each.indexed === view) this.#views.delete(name);
      throw error;
    }
    view.trim();
    for (const [name, each] of this.#views)
      if (each.indexed === view) each.head = this.#entries.get(headKey(name));
  }

  /**
   * Notes the stamp of a store to which only this process has added lines since a view was saved: if it is killed before it saves the view
   * again, who comes next need not hash again what the view covers.
   */
  async noteAppended(view: IndexedState, store: StampedStore): Promise<void> {
    const { stamp } = view;
    const now = stamp === undefined ? undefined : await store.ownStamp?.();
    if (stamp === undefined || now === undefined || now === stamp) return;
    for (const [name, { indexed }] of this.#views)
      if (indexed === view) await this.#entries.write([{ key: longerKey(name), value: `${stamp} ${now}` }]);
  }

  async close(): Promise<void> {
    await this.#entries.close();
  }

  /** Whether from one stamp to the other lines were added, and none was changed. */
  #isOnlyLonger(name: string, before: string | undefined, now: string | undefined): boolean {
    if (before === undefined || now === undefined) return false;
    return this.#entries.get(longerKey(name)) === `${before} ${now}`;
  }

  /** Whether the folder is one's own; and an index, unless it is empty: to rebuild it removes files. */
  async #isUsable(fileSystem: FileSystem): Promise<boolean> {
    if (this.#options.folder === undefined) return isOwnFolder(this.#folder, this.path);
    if (!(await isOwnFolder(this.#folder, dirname(resolve(this.#folder))))) return false;
    const names = await fileSystem.list(this.#folder);
    return names.length === 0 || names.includes('CURRENT') || names.includes('LOCK');
  }

  #refuse(): false {
    const { folder, onNotice } = this.#options;
    if (folder !== undefined)
      onNotice?.({
        code: 'INDEX_UNUSABLE',
        path: folder,
        reason: 'it is no index, not yours to write, or in use',
      });
    return false;
  }

  #open(name: string, trust: TrustPolicy | undefined): Promise<IndexedState> {
    return IndexedState.open(this.#entries, name, this.#names, defaultBackend, trust);
  }
}

/** Verifies a store's lines after a view. `save` is called after every batch, and at the end if there were lines. */
export async function catchUpWith(
  view: IndexedState,
  store: Pick<LedgerStore, 'read'>,
  save: () => Promise<void>,
  { signal, onProgress, lines = Infinity }: CatchUpOptions = {},
): Promise<CaughtUp> {
  const { state } = view;
  const steps = new BlockSteps(view);
  let saved = state.lines;
  let isTorn = false;
  const keep = async (): Promise<void> => {
    saved = state.lines;
    await save();
    onProgress?.(state.bytes);
  };
  for await (const stored of store.read(positionOf(state))) {
    signal?.throwIfAborted();
    if (stored.kind !== 'lines') {
      await steps.flush();
      noteStored(state, stored);
      if (stored.kind === 'torn') isTorn = true;
      continue;
    }
    const { file, firstSeq } = stored;
    for (const line of stored.lines) {
      if (state.lines + steps.waiting >= lines) break;
      await steps.apply(line, { file, firstSeq });
    }
    if (state.lines - saved >= BATCH_LINES && isTailSound(state)) await keep();
    if (state.lines + steps.waiting >= lines) break;
  }
  await steps.flush();
  if ((state.lines > saved && isTailSound(state)) || view.isStampNew) await keep();
  return { isTorn };
}

/** @throws NorthrootError `LEDGER_CONFLICT` if the ledger does not continue the state */
async function assertBelongs(state: VerifyState, store: Pick<LedgerStore, 'read'>): Promise<void> {
  for await (const stored of store.read(positionOf(state))) {
    void stored;
    return;
  }
}

/**
 * Hashes again every line that a view covers, and compares files and root.
 * @throws IndexFault if they differ, or the root cannot tell
 */
async function assertSame(
  view: IndexedState,
  store: Pick<LedgerStore, 'read'>,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { records, lines, tree, damage } = view.state;
  const seen = emptyRange();
  let [files, last] = ['', ''];
  let torn = 0;
  // Lines outside the tree could have been anywhere.
  if (records !== lines) throw new IndexFault('the ledger was changed, and has lines that are no records');
  for await (const stored of store.read()) {
    signal?.throwIfAborted();
    // Lines after the view are not its concern.
    if (seen.size === records && stored.kind !== 'torn') break;
    if (stored.kind === 'torn' && !stored.isLast) torn += 1;
    if (stored.kind !== 'lines') continue;
    for (const { bytes, longLeafHash } of stored.lines) {
      if (seen.size === records) break;
      if (stored.file !== last) files = view.addFile(files, stored.file, seen.size);
      last = stored.file;
      appendLeaf(seen, longLeafHash ?? leafHash(bytes));
    }
  }
  if (
    torn !== damage.files ||
    files !== view.files ||
    seen.size !== records ||
    rangeRoot(seen) !== rangeRoot(tree)
  )
    throw new IndexFault('the ledger was changed before its end');
}

/** A digest, so that each policy has its own view. */
function viewName(trust: TrustPolicy | undefined): string {
  return trust === undefined ? '-:' : `${sha256Base64url(canonicalBytes(trust))}:`;
}

function headKey(view: string): string {
  return `${view}h`;
}

/** Outside the view, whose entries are those that its lines give. */
function longerKey(view: string): string {
  return `+${view}`;
}

/** Segments are named by base name; a single-file ledger by the empty name. */
function namesOf(path: string): FileNames {
  const folder = path.replace(/\/+$/, '');
  return {
    toIndex: (file) => (file === path ? '' : file.slice(file.lastIndexOf('/') + 1)),
    fromIndex: (name) => (name === '' ? path : `${folder}/${name}`),
  };
}

async function remake(folder: string, waitMs: number): Promise<EntryStore | undefined> {
  try {
    await destroyLevelEntries(folder);
    return await openLevelEntries(folder, waitMs);
  } catch {
    return undefined;
  }
}
