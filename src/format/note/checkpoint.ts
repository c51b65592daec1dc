/**
 * The C2SP checkpoint (https://c2sp.org/tlog-checkpoint, SPEC §6): the text of a signed note that commits to a log's tree.
 *
 *     example.com/agents/prod
 *     20852163
 *     CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
 */

import { succeed } from '../../base/fault.js';
import { excerptText } from '../../base/json/excerpt.js';
import { hashToBase64, tryHashFromBase64 } from '../tree/compact-range.js';
import {
  decodeNote,
  malformed,
  type NoteForm,
  type NoteResult,
  orThrow,
  type SignedNote,
} from './signed-note.js';

export interface Checkpoint {
  readonly origin: string;
  /** At most 2^53 − 1. */
  readonly size: number;
  /** The root as a binary string of 32 characters. */
  readonly root: string;
  /** Opaque further lines, none of them empty. */
  readonly extensions: readonly string[];
}

/** A checkpoint in its note; the signatures are not verified. */
export interface SignedCheckpoint extends SignedNote {
  readonly checkpoint: Checkpoint;
}

/** The signed text of a checkpoint. */
export function formatCheckpoint({ origin, size, root, extensions }: Checkpoint): string {
  return [origin, String(size), hashToBase64(root), ...extensions].map((line) => `${line}\n`).join('');
}

/** Decodes the text of a note as a checkpoint. */
export function decodeCheckpointText(text: string): NoteResult<Checkpoint> {
  const lines = text.split('\n');
  if (lines.pop() !== '') return malformed('a newline at the end of the text', 'none');
  const [origin = '', sizeText = '', rootText = '', ...extensions] = lines;
  if (lines.length < 3) return malformed('the lines origin, size and root', `${lines.length} lines`);
  if (origin === '') return malformed('an origin', 'an empty line');
  const size = Number(sizeText);
  if (!/^(?:0|[1-9]\d*)$/.test(sizeText) || !Number.isSafeInteger(size))
    return malformed('a tree size, in decimal, of at most 2^53 - 1', excerptText(sizeText));
  const root = tryHashFromBase64(rootText);
  if (root === undefined) return malformed('a root of 32 bytes in base64', excerptText(rootText));
  if (extensions.includes('')) return malformed('no empty extension line', 'one');
  return succeed({ origin, size, root, extensions });
}

/** Decodes a note that holds a checkpoint. */
export function decodeCheckpoint(bytes: Uint8Array, form?: NoteForm): NoteResult<SignedCheckpoint> {
  const note = decodeNote(bytes, form);
  if (!note.ok) return note;
  const checkpoint = decodeCheckpointText(note.value.text);
  return checkpoint.ok ? succeed({ ...note.value, checkpoint: checkpoint.value }) : checkpoint;
}

/** Parses a checkpoint: a signed note whose text is a C2SP tlog-checkpoint. @throws NorthrootError `NOTE_MALFORMED` */
export function parseCheckpoint(bytes: Uint8Array): SignedCheckpoint {
  return orThrow(decodeCheckpoint(bytes));
}
