/**
 * Whose signatures on a note are valid (https://c2sp.org/signed-note). Three outcomes are kept apart: valid, invalid, and by
 * nobody known. A note with an invalid signature by a known key is to be refused, whatever else signed it.
 */

import { isSignedBy, type NoteKey, verifyNoteSignature } from './note-key.js';
import type { NoteSignature, SignedNote } from './signed-note.js';

/** A valid signature. */
export interface NoteSigner<K extends NoteKey = NoteKey> {
  readonly key: K;
  /** Of a cosignature, in seconds since 1970. */
  readonly timestamp: number | null;
}

/** What the signatures of a note are worth to somebody who knows certain keys. */
export interface NoteVerification<K extends NoteKey = NoteKey> {
  readonly valid: readonly NoteSigner<K>[];
  /** By a known key, and invalid. */
  readonly invalid: readonly { readonly key: K; readonly signature: NoteSignature }[];
  readonly unknown: readonly NoteSignature[];
}

/**
 * Judges every signature of a note by a known key, also several by one key.
 *
 * @param keys - Of two with the same name and key ID the first one counts.
 */
export function verifyNoteSignatures<K extends NoteKey>(
  note: SignedNote,
  keys: Iterable<K>,
): NoteVerification<K> {
  const known = [...keys];
  const valid: NoteSigner<K>[] = [];
  const invalid: { key: K; signature: NoteSignature }[] = [];
  const unknown: NoteSignature[] = [];
  for (const signature of note.signatures) {
    const key = known.find((each) => isSignedBy(signature, each));
    if (key === undefined) {
      unknown.push(signature);
      continue;
    }
    const verified = verifyNoteSignature(note.text, signature, key);
    if (verified === undefined) invalid.push({ key, signature });
    else valid.push({ key, timestamp: verified.timestamp });
  }
  return { valid, invalid, unknown };
}
