/** The index of a ledger as something to look after: made, made anew, and held against what the ledger gives. */

import { NorthrootError } from '../../base/error.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { compareEntries } from '../cache/compare-entries.js';
import { catchUpWith, type IndexNotice, indexPath, LedgerIndex, sizeOf } from '../cache/ledger-index.js';
import { destroyLevelEntries, openLevelEntries } from '../cache/level-entries.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { FileStore } from '../store/file-store.js';

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
  /**
   * With `check`: the keys of the entries that differ from those that the ledger gives, at most 100, and how many there are. Of a
   * timeline one key stands for all: `t:GRANT:LIMIT`.
   */
  readonly differences: readonly string[];
  readonly differencesTotal: number;
}

const MAX_DIFFERENCES = 100;

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
      hint: 'its folder must be yours to write, no other process may use it all the time, and LevelDB must run on this platform',
    });
  }
  const anew = `${folder}.check`;
  try {
    if (rebuild) await index.rebuild('it was asked for');
    let view = await index.view(store, trust, signal);
    await index.catchUp(view, store, { signal, onProgress });
    let differences: string[] = [];
    if (check) {
      // Others may use the index meanwhile, and bring it further.
      await index.close();
      await destroyLevelEntries(anew).catch(() => undefined);
      const entries = await openLevelEntries(anew, { create: true, waitMs: 0 });
      if (entries === undefined) throw new NorthrootError('INDEX_UNUSABLE', `${anew} is in use`);
      try {
        const fresh = await index.viewInto(entries, trust);
        const save = async (): Promise<void> => {
          await entries.write(fresh.takeChanges());
          fresh.trim();
        };
        await catchUpWith(fresh, store, save, { signal, onProgress });
        if (!(await index.reopen())) throw new NorthrootError('INDEX_UNUSABLE', `${folder} is in use`);
        view = await index.view(store, trust, signal);
        await index.catchUp(view, store, { signal });
        await catchUpWith(fresh, store, save, { signal, lines: view.state.lines });
        differences = await compareEntries(index.entriesOf(trust), index.entriesIn(entries));
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
      bytes: await sizeOf(folder, nodeFileSystem),
      differences: differences.slice(0, MAX_DIFFERENCES),
      differencesTotal: differences.length,
    };
  } finally {
    await index.close();
    await store.close();
  }
}
