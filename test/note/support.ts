/** What the tests of notes share: keys, a cosigned checkpoint, and every way to spoil bytes. */

import { createSigner } from '../../src/format/signature/signer.js';
import { formatCheckpoint } from '../../src/format/note/checkpoint.js';
import { cosignNote, makeNoteKey, signNote, type NoteKey } from '../../src/format/note/note-key.js';
import { formatNote } from '../../src/format/note/signed-note.js';
import { ed25519Key } from '../key/key-samples.js';
import { isSampledPart } from '../slow.js';

export const ORIGIN = 'example.com/tests/log';

export const logSigner = createSigner(ed25519Key(Buffer.alloc(32, 1)));
export const witnessSigner = createSigner(ed25519Key(Buffer.alloc(32, 2)));
export const strangerSigner = createSigner(ed25519Key(Buffer.alloc(32, 3)));

export const logKey: NoteKey = makeNoteKey(ORIGIN, logSigner.publicKey, 'ed25519');
export const witnessKey: NoteKey = makeNoteKey('witness.example/w1', witnessSigner.publicKey, 'cosignature');

export const TIME = 1_767_268_800;

export const TEXT = formatCheckpoint({ origin: ORIGIN, size: 7, root: 'r'.repeat(32), extensions: [] });

export const logLine = signNote(TEXT, ORIGIN, logSigner);
export const witnessLine = cosignNote(TEXT, 'witness.example/w1', witnessSigner, TIME);
export const strangerLine = signNote(TEXT, 'stranger.example', strangerSigner);

/** A checkpoint signed by its log, a witness and somebody else. */
export const COSIGNED = Buffer.from(
  formatNote({ text: TEXT, signatures: [logLine, witnessLine, strangerLine] }),
);

/**
 * Each byte string that differs from `bytes` in one byte: by its lowest bit, its highest bit, by one more and by its case; or by
 * only so many of these, another one at each byte.
 */
export function* changedBytes(bytes: Uint8Array, changes = 4): Generator<{ at: number; changed: Buffer }> {
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at];
    const others = [byte ^ 1, byte ^ 0x80, (byte + 1) % 256, byte ^ 0x20];
    for (const other of new Set([...others.slice(at % 4), ...others].slice(0, changes))) {
      const changed = Buffer.from(bytes);
      changed[at] = other;
      yield { at, changed };
    }
  }
}

/** Proper substrings of `bytes`. */
export function* substrings(bytes: Uint8Array): Generator<Buffer> {
  for (let start = 0; start < bytes.length; start += 1) {
    for (let end = start; end <= bytes.length; end += 1) {
      if (end - start < bytes.length && isSampledPart(start, end, bytes.length))
        yield Buffer.from(bytes.subarray(start, end));
    }
  }
}
