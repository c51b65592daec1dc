/** A folder in TMPDIR that is removed with all that is in it. */

import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toIoError } from './io-error.js';

/** What is still ending may write there while it is removed. */
const REMOVAL = { recursive: true, force: true, maxRetries: 20, retryDelay: 50 } as const;

/**
 * Does something in a new folder, which only its owner may enter, and removes the folder.
 * @param work - Is given the folder's path without links
 * @throws NorthrootError as files give it, and what the work throws
 */
export async function withScratchFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'northroot-'))
    .then((path) => realpath(path))
    .catch((error: unknown) => {
      throw toIoError(error, 'create a folder in', tmpdir());
    });
  try {
    return await work(folder);
  } finally {
    await rm(folder, REMOVAL).catch((error: unknown) => {
      throw toIoError(error, 'remove', folder);
    });
  }
}
