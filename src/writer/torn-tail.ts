/**
 * What a crash may leave at a ledger's end: bytes after the last newline, never acknowledged to anybody. They are
 * saved beside the ledger, and only when they are safely there is the ledger cut back to its last whole record.
 */

import { printable } from '../bytes/printable.js';
import { NorthrootError } from '../error.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import { CANONICAL_PROFILE_ID } from '../json/profile.js';
import { examineLine } from '../ledger/examine-line.js';
import type { GenesisEvent } from '../schema/generated/types.js';
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

/** What every genesis record begins with: `event` is first in canonical order, and so is `canonical_profile_id` in it. */
const GENESIS_START = `{"event":{"canonical_profile_id":"${CANONICAL_PROFILE_ID}",`;

/**
 * Saves the torn tail of a ledger, if it has one, as `FILE.torn-OFFSET` and cuts it off. Nothing is cut when it cannot be
 * saved. What does not begin as a ledger does is refused, torn or not.
 *
 * @throws NorthrootError `NOT_A_LEDGER`, or as the file system does.
 */
export async function settleTornTail(
  fileSystem: FileSystem,
  files: LedgerFiles,
  survey: Survey,
): Promise<SavedTail | undefined> {
  const { firstLine, torn } = survey;
  const { last } = files;
  if (firstLine !== undefined) readGenesis(files.path, firstLine);
  if (torn === undefined || last === undefined) return undefined;
  if (firstLine === undefined && !isStartOfGenesis(torn.start)) {
    throw notALedger(files.path, 'it does not begin with a genesis');
  }
  return saveTornTail(fileSystem, last, torn.offset);
}

/**
 * The genesis event in a ledger's first line.
 *
 * @throws NorthrootError `NOT_A_LEDGER` for any other line.
 */
export function readGenesis(path: string, firstLine: Uint8Array): GenesisEvent {
  const first = examineLine(firstLine, 'records');
  if (first.type === 'genesis') return first.event();
  throw notALedger(path, 'its first record is no genesis');
}

/** Whether a file that begins so, and has no whole line, may be one whose genesis was being written. */
export function isStartOfGenesis(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('latin1', 0, GENESIS_START.length);
  return GENESIS_START.startsWith(text);
}

function notALedger(path: string, why: string): NorthrootError {
  return new NorthrootError('NOT_A_LEDGER', `${printable(path)} is not a ledger: ${why}`, {
    hint: 'check the path; nothing was changed',
  });
}

async function saveTornTail(fileSystem: FileSystem, file: OpenFile, offset: number): Promise<SavedTail> {
  const length = (await file.size()) - offset;
  const savedTo = await saveBeside(fileSystem, file, offset, length);
  await file.truncate(offset);
  await file.datasync();
  return { path: file.path, savedTo, offset, length };
}

/**
 * The copy appears whole or not at all: half of what is still in the ledger would only mislead. Another tail may have been torn
 * off at the same place before: nothing is overwritten.
 */
async function saveBeside(
  fileSystem: FileSystem,
  file: OpenFile,
  offset: number,
  length: number,
): Promise<string> {
  const wanted = `${file.path}.torn-${offset}`;
  // Nobody else uses that name: the ledger is locked. What has it was left by a process that was killed.
  const temporary = `${wanted}.new`;
  if ((await fileSystem.kindOf(temporary)) !== 'missing') await fileSystem.remove(temporary);
  try {
    await copyTail(file, await fileSystem.open(temporary, 'new', 0o600), offset, length);
    for (let attempt = 1; ; attempt += 1) {
      const name = `${wanted}${attempt === 1 ? '' : `-${attempt}`}`;
      try {
        await fileSystem.renameNew(temporary, name);
      } catch (error) {
        const isTaken = error instanceof NorthrootError && error.code === 'FILE_EXISTS';
        if (isTaken && attempt < MAX_ATTEMPTS) continue;
        throw error;
      }
      await fileSystem.syncFolderOf(name);
      return name;
    }
  } catch (error) {
    await fileSystem.remove(temporary).catch(() => undefined);
    throw error;
  }
}

async function copyTail(from: OpenFile, to: OpenFile, offset: number, length: number): Promise<void> {
  try {
    const buffer = new Uint8Array(Math.min(length, CHUNK_BYTES));
    for (let done = 0; done < length;) {
      const count = await from.read(buffer.subarray(0, length - done), offset + done);
      if (count === 0)
        throw new NorthrootError('FILE_CHANGED', `${printable(from.path)} shrank while its tail was saved`);
      for (let put = 0; put < count;) put += await to.write(buffer.subarray(put, count));
      done += count;
    }
    await to.datasync();
  } finally {
    await to.close();
  }
}
