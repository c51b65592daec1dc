/** The published file of a ledger's last checkpoint note. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { type Checkpoint, decodeCheckpoint } from '../../format/note/checkpoint.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { type FileSystem, readSmallFile, replaceFile } from '../fs/file-system.js';
import type { GroupCommit } from './group-commit.js';

/** Publishes notes in call order, under the write lock. */
export class NotePublisher {
  readonly #commits: GroupCommit;
  readonly #fileSystem: FileSystem;
  #publications: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(commits: GroupCommit, fileSystem: FileSystem) {
    this.#commits = commits;
    this.#fileSystem = fileSystem;
  }

  /** @throws as {@link replaceNote} and `act`; TypeError when closed */
  async publish(path: string, note: string): Promise<void> {
    if (this.#isClosed) throw new TypeError('the ledger is closed');
    const published = this.#commits.act(() => replaceNote(path, note, this.#fileSystem));
    this.#publications = Promise.allSettled([this.#publications, published]);
    await published;
  }

  /** Waits for pending publications. */
  async close(): Promise<void> {
    await this.#publications;
    this.#isClosed = true;
  }
}

/**
 * Replaces the file atomically, unless it has a later checkpoint of the same log, by another process.
 * @throws NorthrootError `FILE_EXISTS` for what is no note, such as a ledger or its key; as the file system does
 */
async function replaceNote(path: string, note: string, fileSystem: FileSystem): Promise<void> {
  const published = await readSmallFile(path, MAX_NOTE_BYTES).catch((error: unknown) => {
    if (error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND') return undefined;
    throw error instanceof NorthrootError && error.code === 'FILE_TOO_BIG' ? notANote(path) : error;
  });
  if (published !== undefined && published.length > 0 && !decodeCheckpoint(published).ok)
    throw notANote(path);
  if (published !== undefined && isLater(published, Buffer.from(note))) return;
  await replaceFile(path, Buffer.from(note), { fileSystem });
}

function notANote(path: string): NorthrootError {
  return new NorthrootError(
    'FILE_EXISTS',
    `${printable(path)} is not replaced: it is no note of a checkpoint`,
    {
      hint: 'name another file for the note',
    },
  );
}

function isLater(published: Uint8Array, note: Uint8Array): boolean {
  const [theirs, ours] = [stateOf(published), stateOf(note)];
  return theirs !== undefined && theirs.origin === ours?.origin && theirs.size > ours.size;
}

function stateOf(note: Uint8Array): Checkpoint | undefined {
  const decoded = decodeCheckpoint(note);
  return decoded.ok ? decoded.value.checkpoint : undefined;
}
