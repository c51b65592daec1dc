/** The file that the note of a ledger's last checkpoint is published in. */

import { readSmallFile, replaceFile, type FileSystem } from '../fs/file-system.js';
import { decodeCheckpoint, type Checkpoint } from '../note/checkpoint.js';
import { MAX_NOTE_BYTES } from '../note/signed-note.js';

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
