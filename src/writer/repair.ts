/** `northroot repair`: cuts off what a crash left at a ledger's end, and nothing else. Records are never touched. */

import { nodeFileSystem, type FileSystem } from '../fs/file-system.js';
import { closeLedgerFiles, openLedgerFiles } from './ledger-files.js';
import { surveyLedger } from './survey.js';
import { settleTornTail, type SavedTail } from './torn-tail.js';

/** What a repair found and did. */
export interface Repair {
  /** The tail that was saved and cut off; undefined when the ledger ends as it should. */
  readonly saved: SavedTail | undefined;
  /** Whole lines in the ledger. */
  readonly lines: number;
}

/**
 * Repairs a ledger's end, under the writer's lock.
 *
 * @param options - `lockTimeoutMs`: how long to wait for a writer, in milliseconds, default 10,000; `signal`: aborting
 *   ends the wait with its reason.
 * @throws NorthrootError `FILE_NOT_FOUND`, `LEDGER_LOCKED`, `NOT_A_LEDGER`, or as the file system does.
 */
export async function repairLedger(
  path: string,
  options: {
    readonly lockTimeoutMs?: number;
    readonly signal?: AbortSignal;
    readonly fileSystem?: FileSystem;
  } = {},
): Promise<Repair> {
  const { fileSystem = nodeFileSystem, lockTimeoutMs = 10_000, signal } = options;
  const files = await openLedgerFiles(path, { fileSystem, create: false, lockTimeoutMs, signal });
  try {
    const survey = await surveyLedger(fileSystem, files);
    return { saved: await settleTornTail(fileSystem, files, survey), lines: survey.lines };
  } finally {
    await closeLedgerFiles(files);
  }
}
