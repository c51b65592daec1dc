/**
 * Whose signatures on a note are right (https://c2sp.org/signed-note). Three outcomes are kept apart: right, wrong, and by
 * nobody known. A note with a wrong signature by a known key is to be refused, whatever else signed it.
 */

import { isSignedBy, verifyNoteSignature, type NoteKey } from './note-key.js';
import type { NoteSignature, SignedNote } from './signed-note.js';

/** A right signature. */
export interface NoteSigner<K extends NoteKey = NoteKey> {
  readonly key: K;
  /** Of a cosignature, in seconds since 1970. */
  readonly timestamp: number | null;
}

/** What the signatures of a note are worth to somebody who knows certain keys. */
export interface NoteJudgement<K extends NoteKey = NoteKey> {
  readonly right: readonly NoteSigner<K>[];
  /** By a known key, and wrong. */
  readonly wrong: readonly { readonly key: K; readonly signature: NoteSignature }[];
  readonly unknown: readonly NoteSignature[];
}

/**
 * Judges every signature of a note by a known key, also several by one key.
 *
 * @param keys - Of two with the same name and key ID the first one counts.
 */
export function judgeNote<K extends NoteKey>(note: SignedNote, keys: Iterable<K>): NoteJudgement<K> {
  const known = [...keys];
  const right: NoteSigner<K>[] = [];
  const wrong: { key: K; signature: NoteSignature }[] = [];
  const unknown: NoteSignature[] = [];
  for (const signature of note.signatures) {
    const key = known.find((each) => isSignedBy(signature, each));
    if (key === undefined) {
      unknown.push(signature);
      continue;
    }
    const verified = verifyNoteSignature(note.text, signature, key);
    if (verified === undefined) wrong.push({ key, signature });
    else right.push({ key, timestamp: verified.timestamp });
  }
  return { right, wrong, unknown };
}
