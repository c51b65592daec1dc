/** Whether a ledger can be created at a path, also after a killed attempt. */

import { type FileSystem, nodeFileSystem } from '../fs/file-system.js';
import { joinPath, segmentName } from '../store/segments.js';
import { isStartOfGenesis } from './genesis-line.js';

/** Above any genesis, in bytes. */
const MAX_START_BYTES = 65_536;

/**
 * Whether a path has no more than a writer killed before acknowledging a genesis leaves: nothing, an empty file, a torn genesis, an empty
 * folder, or such a file as its only segment.
 * @throws NorthrootError as the file system does
 */
export async function isEmptyLedger(path: string, fileSystem: FileSystem = nodeFileSystem): Promise<boolean> {
  switch (await fileSystem.kindOf(path)) {
    case 'missing':
      return true;
    case 'file':
      return hasNoRecord(path, fileSystem);
    case 'folder': {
      const first = segmentName(0);
      const names = await fileSystem.list(path);
      const isOurs = names.every((name) => name === first || name.startsWith(`${first}.torn-0`));
      return isOurs && (!names.includes(first) || (await hasNoRecord(joinPath(path, first), fileSystem)));
    }
    case 'other':
      return false;
  }
}

async function hasNoRecord(path: string, fileSystem: FileSystem): Promise<boolean> {
  const file = await fileSystem.open(path, 'read');
  try {
    const buffer = Buffer.alloc(MAX_START_BYTES);
    let size = 0;
    for (;;) {
      const count = await file.read(buffer.subarray(size), size);
      size += count;
      if (count === 0) break;
    }
    const start = buffer.subarray(0, size);
    return size < MAX_START_BYTES && !start.includes('\n') && isStartOfGenesis(start);
  } finally {
    await file.close();
  }
}
