/** Opens a ledger in any form on disk: a file, a folder of segments (SPEC §4), or a tile tree (SPEC §6). */

import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { openScratchFile } from '../fs/scratch-file.js';
import { assertUnmixed, openLedgerSource } from '../fs/source.js';
import { isTileTree, openTileTree } from './tile-tree.js';
import { CHECKPOINT_FILE, inTree } from './tile-writer.js';

/**
 * @throws NorthrootError `FILE_NOT_FOUND`, `NOT_A_LEDGER`, `CHECKPOINT_NOTE_MALFORMED` (of a tile tree), …; while reading also
 *   `FILE_CHANGED`
 */
export async function openLedger(path: string): Promise<LedgerSource> {
  if (!(await isTileTree(path))) return openLedgerSource(path);
  await assertUnmixed(path);
  const tree = await openTileTree(path);
  return {
    ...tree.source,
    published: { name: inTree(path, CHECKPOINT_FILE), note: tree.note },
    findFaults: () => tree.finish(),
    openScratch: openScratchFile,
  };
}
