/** The file that the note of a ledger's last checkpoint is published in. */

import { type Checkpoint, decodeCheckpoint } from '../../format/note/checkpoint.js';
import { MAX_NOTE_BYTES } from '../../format/note/signed-note.js';
import { type FileSystem, readSmallFile, replaceFile } from '../fs/file-system.js';
import type { GroupCommit } from './group-commit.js';

/** Publishes notes of one ledger, in the order of the calls, each in a turn of the writer. */
export class NotePublisher {
  readonly #commits: GroupCommit;
  readonly #fileSystem: FileSystem;
  #publications: Promise<unknown> = Promise.resolve();
  #isClosed = false;

  constructor(commits: GroupCommit, fileSystem: FileSystem) {
    this.#commits = commits;
    this.#fileSystem = fileSystem;
  }

  /** @throws as {@link replaceNote}, and as for any turn of the writer; TypeError when it is closed. */
  async publish(path: string, note: string): Promise<void> {
    if (this.#isClosed) throw new TypeError('the ledger is closed');
    const published = this.#commits.act(() => replaceNote(path, note, this.#fileSystem));
    this.#publications = Promise.allSettled([this.#publications, published]);
    await published;
  }

  /** Waits for all that were asked for, whether they succeed or not, and takes no more. */
  async close(): Promise<void> {
    await this.#publications;
    this.#isClosed = true;
  }
}

/**
 * Writes a note to a file, replacing it in one step, unless a later checkpoint of the same log is published there: of several
 * processes that seal a ledger none takes back what another has published.
 *
 * @throws as the file system does.
 */
export async function replaceNote(path: string, note: string, fileSystem: FileSystem): Promise<void> {
  const published = await readSmallFile(path, MAX_NOTE_BYTES).catch(() => undefined);
  if (published !== undefined && isLater(published, Buffer.from(note))) return;
  await replaceFile(path, Buffer.from(note), { fileSystem });
}

function isLater(published: Uint8Array, note: Uint8Array): boolean {
  const [theirs, ours] = [stateOf(published), stateOf(note)];
  return theirs !== undefined && theirs.origin === ours?.origin && theirs.size > ours.size;
}

function stateOf(note: Uint8Array): Checkpoint | undefined {
  const decoded = decodeCheckpoint(note);
  return decoded.ok ? decoded.value.checkpoint : undefined;
}
