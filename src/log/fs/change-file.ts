/** Small files that several commands may change at once, such as lists of tokens: each begins with what the one before has left. */

import { NorthrootError } from '../../base/error.js';
import { nodeFileSystem, readSmallFile, rewriteFile, writeNewFile } from './file-system.js';

/** How long to wait for another command. */
const LOCK_MS = 10_000;
const MAX_TRIES = 10;

/**
 * Changes a file of at most `limit` bytes as {@link rewriteFile}, under a lock on it.
 * @param change - Given what is there; undefined for nothing. Called again where another has made the file meanwhile. What it throws keeps
 *   the file as it is.
 * @throws NorthrootError `LEDGER_LOCKED`, `LOCK_UNAVAILABLE`, `FILE_TOO_BIG`; as the file system does
 */
export async function changeFile(
  path: string,
  limit: number,
  change: (bytes: Uint8Array | undefined) => Uint8Array,
): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    if ((await nodeFileSystem.kindOf(path)) === 'missing') {
      try {
        return await writeNewFile(path, change(undefined), 0o644);
      } catch (error) {
        // Another has made it meanwhile; or it is a link to nothing, which stays one.
        if (!(error instanceof NorthrootError && error.code === 'FILE_EXISTS') || tries > MAX_TRIES)
          throw error;
        continue;
      }
    }
    // A link leads to the file whose place is looked at.
    const own = await nodeFileSystem.followLinks(path);
    const file = await nodeFileSystem.open(own, 'read');
    try {
      await file.lock(LOCK_MS);
      // Who had the lock before may have put another file there.
      if (!(await file.isInPlace())) continue;
      await rewriteFile(own, change(await readSmallFile(own, limit)));
      return;
    } finally {
      await file.close();
    }
  }
}
