/**
 * The C2SP signed note (https://c2sp.org/signed-note): a text, a blank line, and signature lines
 *
 *     — example.com/log base64(key ID ‖ signature)
 *
 * This is the format only; whose signatures are right is for `judge-note.ts`.
 */

import { concatBytes } from '../bytes/concat.js';
import { encodeBase64, encodeHex, tryDecodeBase64, tryDecodeHex } from '../bytes/encoding.js';
import { NorthrootError } from '../error.js';
import { isKeyName } from '../key/vkey.js';

/** One signature line. */
export interface NoteSignature {
  readonly name: string;
  /** The 4 bytes of the key ID as lower-case hex. */
  readonly keyId: string;
  /** What follows the key ID: at least one byte, in the form that the key's type has. */
  readonly signature: Uint8Array;
}

/** A note, its signatures not judged. */
export interface SignedNote {
  /** Ends in `\n`; what is signed. */
  readonly text: string;
  /** At least one, no two alike. */
  readonly signatures: readonly NoteSignature[];
}

/** Why something is no note, or no checkpoint. */
export interface NoteFault {
  readonly expected: string;
  readonly actual: string;
}

/** The largest note in bytes: a hundred of the largest signatures in use have about as many. */
export const MAX_NOTE_BYTES = 512 * 1024;
/** C2SP asks for at least 16; Go's `note` package takes 100. */
export const MAX_NOTE_SIGNATURES = 100;

const EM_DASH = '— ';
const KEY_ID_BYTES = 4;

/** Reads a note; what is wrong with it is returned. */
export function readNote(bytes: Uint8Array): SignedNote | NoteFault {
  if (bytes.length > MAX_NOTE_BYTES) {
    return { expected: `a note of at most ${MAX_NOTE_BYTES} bytes`, actual: `${bytes.length} bytes` };
  }
  let whole: string;
  try {
    whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { expected: 'a note in UTF-8', actual: 'bytes that are not UTF-8' };
  }
  const control = /[\u0000-\u0009\u000b-\u001f]/.exec(whole);
  if (control !== null) {
    return { expected: 'no control characters but newlines', actual: `one at character ${control.index}` };
  }
  const split = whole.lastIndexOf('\n\n');
  if (split === -1) return { expected: 'a blank line before the signatures', actual: 'none' };
  if (!whole.endsWith('\n')) return { expected: 'a newline at the end', actual: 'none' };
  const lines = whole
    .slice(split + 2)
    .split('\n')
    .slice(0, -1);
  if (lines.length === 0) return { expected: 'at least one signature line', actual: 'none' };
  if (lines.length > MAX_NOTE_SIGNATURES) {
    return { expected: `at most ${MAX_NOTE_SIGNATURES} signature lines`, actual: `${lines.length}` };
  }
  const signatures: NoteSignature[] = [];
  for (const [index, line] of lines.entries()) {
    const signature = readSignatureLine(line);
    if (signature === undefined) {
      return {
        expected: '"— name base64" in each signature line',
        actual: `other text in line ${index + 1}`,
      };
    }
    signatures.push(signature);
  }
  if (new Set(lines).size < lines.length) {
    return { expected: 'each signature line once', actual: 'one of them twice' };
  }
  return { text: whole.slice(0, split + 1), signatures };
}

/** @throws NorthrootError `NOTE_MALFORMED` */
export function parseNote(bytes: Uint8Array): SignedNote {
  return orThrow(readNote(bytes));
}

/** A signature line, without its newline; `undefined` for other text. */
export function readSignatureLine(line: string): NoteSignature | undefined {
  if (!line.startsWith(EM_DASH)) return undefined;
  const [name = '', base64 = '', ...rest] = line.slice(EM_DASH.length).split(' ');
  if (rest.length > 0 || !isKeyName(name)) return undefined;
  const bytes = tryDecodeBase64(base64);
  if (bytes === undefined || bytes.length <= KEY_ID_BYTES) return undefined;
  return {
    name,
    keyId: encodeHex(bytes.subarray(0, KEY_ID_BYTES)),
    signature: bytes.subarray(KEY_ID_BYTES),
  };
}

/** A signature line, without its newline. */
export function formatSignatureLine({ name, keyId, signature }: NoteSignature): string {
  return `${EM_DASH}${name} ${encodeBase64(concatBytes([tryDecodeHex(keyId) ?? new Uint8Array(), signature]))}`;
}

/**
 * The whole text of a note.
 *
 * @throws RangeError when `text` does not end in a newline or there is no signature
 */
export function formatNote({ text, signatures }: SignedNote): string {
  if (!text.endsWith('\n')) throw new RangeError('the text of a note must end in a newline');
  if (signatures.length === 0) throw new RangeError('a note must have a signature');
  return `${text}\n${signatures.map((signature) => `${formatSignatureLine(signature)}\n`).join('')}`;
}

/** @throws NorthrootError `NOTE_MALFORMED` when `result` is a fault */
export function orThrow<T extends object>(result: T | NoteFault): T {
  if (!('expected' in result)) return result;
  const { expected, actual } = result;
  throw new NorthrootError('NOTE_MALFORMED', `the note is malformed: expected ${expected}, found ${actual}`);
}
