/** The index of a ledger as something to look after: made, made anew, and held against what the ledger gives. */

import type { EntryStore } from '../cache/entry-store.js';
import type { IndexedState } from '../cache/indexed-state.js';
import { LedgerIndex, indexPath, type IndexNotice } from '../cache/ledger-index.js';
import { destroyLevelEntries, openLevelEntries } from '../cache/level-entries.js';
import { NorthrootError } from '../error.js';
import { nodeFileSystem } from '../fs/file-system.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { FileStore } from '../store/file-store.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { positionOf } from '../verify/position.js';

/** How an index is looked after. */
export interface MaintainOptions {
  /** Under which trust policy the ledger is verified; each has entries of its own. */
  readonly trust?: TrustPolicy | undefined;
  /** Whether what is there is thrown away first. Default: false. */
  readonly rebuild?: boolean | undefined;
  /** Whether the ledger is verified anew, and every entry compared with those that gives. Default: false. */
  readonly check?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the bytes of the ledger that were verified so far. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly onNotice?: ((notice: IndexNotice) => void) | undefined;
}

/** An index that is up to date. */
export interface MaintainedIndex {
  /** Its folder. */
  readonly path: string;
  /** How many records of the ledger it has, and up to which byte of which file. */
  readonly records: number;
  readonly end: { readonly file: string; readonly byteOffset: number };
  /** The size of its files in bytes. */
  readonly bytes: number;
  /** With `check`: the entries that differ from those that the ledger gives, at most 100, and how many there are. */
  readonly differences: readonly string[];
  readonly differencesTotal: number;
}

const MAX_DIFFERENCES = 100;
const BATCH_LINES = 1_000;

/**
 * Makes the index of a ledger, or brings it up to date.
 *
 * @throws NorthrootError `INDEX_UNUSABLE` when it cannot be made, or others use it all the time; as {@link FileStore.open}; with the
 *   reason of the signal when that aborts.
 */
export async function maintainIndex(ledger: string, options: MaintainOptions = {}): Promise<MaintainedIndex> {
  const { trust, rebuild = false, check = false, signal, onProgress, onNotice } = options;
  const folder = indexPath(ledger);
  const store = await FileStore.open(ledger);
  const index = await LedgerIndex.open(ledger, { onNotice });
  if (index === undefined) {
    await store.close();
    throw new NorthrootError('INDEX_UNUSABLE', `the index ${folder} can be neither used nor made`, {
      hint: 'its folder must be yours to write, and no other process may use it all the time',
    });
  }
  const anew = `${folder}.check`;
  try {
    if (rebuild) await index.rebuild('it was asked for');
    let view = await index.view(store, trust);
    await index.catchUp(view, store, signal, onProgress);
    let differences: string[] = [];
    if (check) {
      // Others may use the index meanwhile, and bring it further.
      await index.close();
      await destroyLevelEntries(anew).catch(() => undefined);
      const entries = await openLevelEntries(anew, { create: true, waitMs: 0 });
      if (entries === undefined) throw new NorthrootError('INDEX_UNUSABLE', `${anew} is in use`);
      try {
        const fresh = await index.viewInto(entries, trust);
        await stepTo(fresh, entries, store, Infinity, signal, onProgress);
        if (!(await index.reopen())) throw new NorthrootError('INDEX_UNUSABLE', `${folder} is in use`);
        view = await index.view(store, trust);
        await index.catchUp(view, store, signal);
        await stepTo(fresh, entries, store, view.state.lines, signal);
        differences = await compare(index.entriesOf(trust), entries.list({ prefix: '' }));
      } finally {
        await entries.close();
        await destroyLevelEntries(anew);
      }
    }
    const { records, end } = view.state;
    return {
      path: folder,
      records,
      end: { file: end.file, byteOffset: end.byteOffset },
      bytes: await sizeOfFolder(folder),
      differences: differences.slice(0, MAX_DIFFERENCES),
      differencesTotal: differences.length,
    };
  } finally {
    await index.close();
    await store.close();
  }
}

/** Goes on to a line, or to the end. */
async function stepTo(
  fresh: IndexedState,
  entries: EntryStore,
  store: LedgerStore,
  lines: number,
  signal: AbortSignal | undefined,
  onProgress?: (bytes: number) => void,
): Promise<void> {
  const { state } = fresh;
  const write = async (): Promise<void> => {
    await entries.write(fresh.takeChanges());
    fresh.trim();
    onProgress?.(state.bytes);
  };
  let written = state.lines;
  for await (const stored of store.read(positionOf(state))) {
    signal?.throwIfAborted();
    if (stored.kind !== 'lines') continue;
    for (const line of stored.lines) {
      if (state.lines >= lines) break;
      fresh.step(line, stored);
    }
    if (state.lines - written >= BATCH_LINES) {
      written = state.lines;
      await write();
    }
    if (state.lines >= lines) break;
  }
  await write();
}

type Listed = AsyncIterable<readonly [key: string, text: string]>;

/** The keys under which the two have other entries. Both are in the order of their keys. */
async function compare(own: Listed, expected: Listed): Promise<string[]> {
  const differences: string[] = [];
  const [a, b] = [own[Symbol.asyncIterator](), expected[Symbol.asyncIterator]()];
  let [left, right] = [await a.next(), await b.next()];
  while (left.done !== true || right.done !== true) {
    const [key, text] = left.done === true ? [] : left.value;
    const [otherKey, otherText] = right.done === true ? [] : right.value;
    const order =
      key === undefined ? 1 : otherKey === undefined || key < otherKey ? -1 : key > otherKey ? 1 : 0;
    const at = (order > 0 ? otherKey : key) as string;
    const isAlike = order === 0 && essence(at, text as string) === essence(at, otherText as string);
    if (!isAlike && !at.startsWith(TIMELINE_NODE)) differences.push(at);
    if (order <= 0) left = await a.next();
    if (order >= 0) right = await b.next();
  }
  return differences;
}

/** Timelines are trees whose shape is chance: which nodes there are and where they hang says nothing. */
const TIMELINE_NODE = 't:';

/** An entry without what depends on chance, or on how often was written. */
function essence(key: string, text: string): string {
  if (key.startsWith('g:')) return text.replace(/"timeline":\{"root":\d+,"saved":\d+\}/g, '"timeline":{}');
  // How many findings are folded depends on what was read at once.
  return key === 'h' ? text.replace(/"findings":\d+,/, '') : text;
}

async function sizeOfFolder(folder: string): Promise<number> {
  let size = 0;
  for (const name of await nodeFileSystem.list(folder)) {
    const file = await nodeFileSystem.open(`${folder}/${name}`, 'read');
    try {
      size += await file.size();
    } finally {
      await file.close();
    }
  }
  return size;
}
