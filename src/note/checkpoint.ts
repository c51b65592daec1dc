/**
 * The C2SP checkpoint (https://c2sp.org/tlog-checkpoint, SPEC §6): the text of a signed note that states a log's tree.
 *
 *     example.com/agents/prod
 *     20852163
 *     CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
 */

import { excerptText } from '../json/excerpt.js';
import { hashToBase64, tryHashFromBase64 } from '../tree/compact-range.js';
import { orThrow, readNote, type NoteFault, type SignedNote } from './signed-note.js';

/** The tree that a checkpoint states. */
export interface Checkpoint {
  readonly origin: string;
  /** At most 2^53 − 1. */
  readonly size: number;
  /** The root as a binary string of 32 characters. */
  readonly root: string;
  /** Opaque further lines, none of them empty. */
  readonly extensions: readonly string[];
}

/** A checkpoint in its note, the signatures not judged. */
export interface SignedCheckpoint extends SignedNote {
  readonly checkpoint: Checkpoint;
}

/** The text of a checkpoint: what is signed. */
export function formatCheckpoint({ origin, size, root, extensions }: Checkpoint): string {
  return [origin, String(size), hashToBase64(root), ...extensions].map((line) => `${line}\n`).join('');
}

/** Reads the text of a note as a checkpoint; what is wrong with it is returned. */
export function readCheckpointText(text: string): Checkpoint | NoteFault {
  const lines = text.split('\n');
  if (lines.pop() !== '') return { expected: 'a newline at the end of the text', actual: 'none' };
  const [origin = '', sizeText = '', rootText = '', ...extensions] = lines;
  if (lines.length < 3)
    return { expected: 'the lines origin, size and root', actual: `${lines.length} lines` };
  if (origin === '') return { expected: 'an origin', actual: 'an empty line' };
  const size = Number(sizeText);
  if (!/^(?:0|[1-9]\d*)$/.test(sizeText) || !Number.isSafeInteger(size)) {
    return { expected: 'a tree size, in decimal, of at most 2^53 - 1', actual: excerptText(sizeText) };
  }
  const root = tryHashFromBase64(rootText);
  if (root === undefined) return { expected: 'a root of 32 bytes in base64', actual: excerptText(rootText) };
  if (extensions.includes('')) return { expected: 'no empty extension line', actual: 'one' };
  return { origin, size, root, extensions };
}

/** Reads a note that holds a checkpoint; what is wrong with it is returned. */
export function readCheckpoint(bytes: Uint8Array): SignedCheckpoint | NoteFault {
  const note = readNote(bytes);
  if ('expected' in note) return note;
  const checkpoint = readCheckpointText(note.text);
  return 'expected' in checkpoint ? checkpoint : { ...note, checkpoint };
}

/** @throws NorthrootError `NOTE_MALFORMED` */
export function parseCheckpoint(bytes: Uint8Array): SignedCheckpoint {
  return orThrow(readCheckpoint(bytes));
}
