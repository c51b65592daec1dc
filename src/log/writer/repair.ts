/** `northroot repair`: cuts off a torn tail, and never touches records. */

import { NorthrootError } from '../../base/error.js';
import type { FileSystem } from '../fs/file-system.js';
import { isStoreUrl } from '../fs/place.js';
import { FileStore } from '../store/file-store.js';
import type { SavedTail } from '../store/ledger-store.js';
import { isStartOfGenesis, notALedger, parseGenesis } from './genesis.js';

export interface Repair {
  readonly saved: SavedTail | undefined;
  /** Whole lines. */
  readonly lines: number;
}

/**
 * Repairs a ledger's end under the write lock.
 * @param options - `lockTimeoutMs`: default 10,000; `signal`: aborting ends the wait with its reason
 * @throws NorthrootError `USAGE` for the URL of a database, `FILE_NOT_FOUND`, `LEDGER_LOCKED`, `NOT_A_LEDGER`, or as the file system does
 */
export async function repairLedger(
  path: string,
  options: {
    readonly lockTimeoutMs?: number;
    readonly signal?: AbortSignal;
    readonly fileSystem?: FileSystem;
  } = {},
): Promise<Repair> {
  const { fileSystem, lockTimeoutMs = 10_000, signal } = options;
  if (isStoreUrl(path)) throw new NorthrootError('USAGE', 'only files can end within a line, not databases');
  const store = await FileStore.open(path, fileSystem === undefined ? {} : { fileSystem });
  try {
    await store.acquire({ timeoutMs: lockTimeoutMs, signal });
    let lines = 0;
    for await (const stored of store.read()) {
      if (stored.kind === 'lines') {
        for (const { bytes } of stored.lines) {
          if (lines === 0) parseGenesis(path, bytes);
          lines += 1;
        }
      } else if (stored.kind === 'torn' && stored.isLast && lines === 0 && !isStartOfGenesis(stored.start)) {
        throw notALedger(path, 'it does not begin with a genesis');
      }
    }
    return { saved: await store.settleTornTail(), lines };
  } finally {
    await store.close();
  }
}
