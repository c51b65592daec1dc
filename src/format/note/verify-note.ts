/**
 * Verification of a note's signatures (https://c2sp.org/signed-note), with three outcomes: valid, invalid, and by an unknown key. A note
 * with an invalid signature by a known key MUST be refused, whatever other signatures it has.
 */

import { isSignedBy, type NoteKey, verifyNoteSignature } from './note-key.js';
import type { NoteSignature, SignedNote } from './signed-note.js';

export interface NoteSigner<K extends NoteKey = NoteKey> {
  readonly key: K;
  /** Of a cosignature, in seconds since 1970. */
  readonly timestamp: number | null;
}

/** The outcome for a set of known keys. */
export interface NoteVerification<K extends NoteKey = NoteKey> {
  readonly valid: readonly NoteSigner<K>[];
  /** By a known key, and invalid. */
  readonly invalid: readonly { readonly key: K; readonly signature: NoteSignature }[];
  readonly unknown: readonly NoteSignature[];
}

/**
 * Verifies every signature of a note, also several by one key.
 *
 * @param keys - The known keys; the first of two with the same name and key ID counts.
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
