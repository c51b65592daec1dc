/** Creates, rebuilds and checks the index of a ledger. */

import { NorthrootError } from '../../base/error.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { compareEntries } from '../cache/compare-entries.js';
import { catchUpWith, type IndexNotice, indexPath, LedgerIndex, sizeOf } from '../cache/ledger-index.js';
import { destroyLevelEntries, openLevelEntries } from '../cache/level-entries.js';
import { nodeFileSystem } from '../fs/file-system.js';
import { isStoreUrl, openStore } from '../store/open-store.js';

export interface MaintainOptions {
  /** Its folder. Default: beside a ledger in files; a database needs one. */
  readonly folder?: string | undefined;
  /** Each policy has its own entries. */
  readonly trust?: TrustPolicy | undefined;
  /** Discard the existing index first. Default false. */
  readonly rebuild?: boolean | undefined;
  /** Verify the ledger again, and compare every entry. Default false. */
  readonly check?: boolean | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called with the bytes verified so far. */
  readonly onProgress?: ((bytes: number) => void) | undefined;
  readonly onNotice?: ((notice: IndexNotice) => void) | undefined;
}

export interface MaintainedIndex {
  readonly path: string;
  readonly records: number;
  readonly end: { readonly file: string; readonly byteOffset: number };
  /** On disk. */
  readonly bytes: number;
  /** With `check`: keys of entries that differ, at most 100, and their number. A timeline has one key, `t:GRANT:LIMIT`. */
  readonly differences: readonly string[];
  readonly differencesTotal: number;
}

const MAX_DIFFERENCES = 100;

/**
 * Creates or updates the index of a ledger.
 * @param ledger - A file or folder, or the URL of a database
 * @throws RangeError for a database without a folder
 * @throws NorthrootError `INDEX_UNUSABLE` when it cannot be created, or is always in use; as `openStore`; the signal's reason
 */
export async function maintainIndex(ledger: string, options: MaintainOptions = {}): Promise<MaintainedIndex> {
  const { trust, rebuild = false, check = false, signal, onProgress, onNotice } = options;
  if (isStoreUrl(ledger) && options.folder === undefined)
    throw new RangeError('maintainIndex: expected the folder of the index of a database');
  const store = await openStore(ledger);
  const folder = options.folder ?? indexPath(ledger);
  const index = await LedgerIndex.open(store.name, { folder: options.folder, onNotice });
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
      // Other processes may use and extend the index meanwhile.
      await index.close();
      await destroyLevelEntries(anew).catch(() => undefined);
      const entries = await openLevelEntries(anew, 0);
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
