/**
 * What a crash may leave at a ledger's end: bytes after the last newline, never acknowledged to anybody. They are
 * saved beside the ledger, and only when they are safely there is the ledger cut back to its last whole record.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import { writeNewFile, type FileSystem, type OpenFile } from '../fs/file-system.js';
import type { LedgerFiles } from './ledger-files.js';
import type { Survey } from './survey.js';

/** A torn tail that was saved and cut off. */
export interface SavedTail {
  /** The ledger's file. */
  readonly path: string;
  /** Where the bytes are now. */
  readonly savedTo: string;
  /** Where they began, in bytes: the file's size from now on. */
  readonly offset: number;
  readonly length: number;
}

const MAX_ATTEMPTS = 100;
const CHUNK_BYTES = 1024 * 1024;

/** What every record begins with: `event` is the first member in canonical order. */
const RECORD_START = '{"event":{';

/**
 * Saves the torn tail of a ledger, if it has one, as `FILE.torn-OFFSET` and cuts it off. Nothing is cut when it cannot be
 * saved, or when the file does not begin as a ledger does.
 *
 * @throws NorthrootError `NOT_A_LEDGER`, or as the file system does.
 */
export async function settleTornTail(
  fileSystem: FileSystem,
  files: LedgerFiles,
  survey: Survey,
): Promise<SavedTail | undefined> {
  const { torn } = survey;
  const file = files.segments.at(-1);
  if (torn === undefined || file === undefined) return undefined;
  const start = Buffer.from(survey.firstLine ?? torn.start).toString('latin1', 0, RECORD_START.length);
  if (!RECORD_START.startsWith(start)) throw notALedger(files.path, 'it does not begin with a record');
  return saveTornTail(fileSystem, file, torn.offset);
}

/** The error for a file that is something else. */
export function notALedger(path: string, why: string): NorthrootError {
  return new NorthrootError('NOT_A_LEDGER', `${printable(path)} is not a ledger: ${why}`, {
    hint: 'check the path; nothing was changed',
  });
}

async function saveTornTail(fileSystem: FileSystem, file: OpenFile, offset: number): Promise<SavedTail> {
  const length = (await file.size()) - offset;
  const tail = new Uint8Array(length);
  for (let done = 0; done < length;) {
    const count = await file.read(tail.subarray(done, Math.min(length, done + CHUNK_BYTES)), offset + done);
    if (count === 0) throw new NorthrootError('FILE_CHANGED', `${file.path} shrank while its tail was saved`);
    done += count;
  }
  const savedTo = await saveBeside(fileSystem, `${file.path}.torn-${offset}`, tail);
  await file.truncate(offset);
  await file.datasync();
  return { path: file.path, savedTo, offset, length };
}

/** Another tail may have been torn off at the same place before: nothing is overwritten. */
async function saveBeside(fileSystem: FileSystem, path: string, bytes: Uint8Array): Promise<string> {
  for (let attempt = 1; ; attempt += 1) {
    const name = attempt === 1 ? path : `${path}-${attempt}`;
    try {
      await writeNewFile(name, bytes, 0o600, fileSystem);
      return name;
    } catch (error) {
      if (!(error instanceof NorthrootError && error.code === 'FILE_EXISTS') || attempt === MAX_ATTEMPTS)
        throw error;
    }
  }
}
