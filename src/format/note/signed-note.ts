/**
 * The format of C2SP signed notes (https://c2sp.org/signed-note): a text, a blank line, and signature lines
 *
 *     — example.com/log base64(key ID ‖ signature)
 */

import { concatBytes } from '../../base/bytes/concat.js';
import { encodeBase64, encodeHex, tryDecodeBase64, tryDecodeHex } from '../../base/bytes/encoding.js';
import { NorthrootError } from '../../base/error.js';
import { fail, type Fault, type Result, succeed } from '../../base/fault.js';
import { isKeyName } from '../key/vkey.js';

export interface NoteSignature {
  readonly name: string;
  /** The 4 bytes of the key ID as lower-case hex. */
  readonly keyId: string;
  /** The bytes after the key ID, at least one, in the form of the key's type. */
  readonly signature: Uint8Array;
}

/** A note; its signatures are not verified. */
export interface SignedNote {
  /** The signed text, ending in `\n`. */
  readonly text: string;
  /** At least one, no two equal. */
  readonly signatures: readonly NoteSignature[];
}

export type NoteResult<T> = Result<T, Fault<'NOTE_MALFORMED'>>;

/** The largest note: about a hundred of the largest signatures in use. */
export const MAX_NOTE_BYTES = 512 * 1024;
/** C2SP asks for at least 16; Go's `note` package takes 100. */
export const MAX_NOTE_SIGNATURES = 100;

const EM_DASH = '— ';
const KEY_ID_BYTES = 4;

export interface NoteForm {
  /** Ignores repeated signature lines, as x/mod/sumdb/note does, instead of refusing them. Default true; false for ledger records. */
  readonly mayRepeat?: boolean;
}

export function decodeNote(bytes: Uint8Array, { mayRepeat = true }: NoteForm = {}): NoteResult<SignedNote> {
  if (bytes.length > MAX_NOTE_BYTES)
    return malformed(`a note of at most ${MAX_NOTE_BYTES} bytes`, `${bytes.length} bytes`);
  let whole: string;
  try {
    whole = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return malformed('a note in UTF-8', 'bytes that are not UTF-8');
  }
  const control = /[\u0000-\u0009\u000b-\u001f]/.exec(whole);
  if (control !== null)
    return malformed('no control characters but newlines', `one at character ${control.index}`);
  const split = whole.lastIndexOf('\n\n');
  if (split === -1) return malformed('a blank line before the signatures', 'none');
  if (!whole.endsWith('\n')) return malformed('a newline at the end', 'none');
  const lines = whole
    .slice(split + 2)
    .split('\n')
    .slice(0, -1);
  if (lines.length === 0) return malformed('at least one signature line', 'none');
  if (lines.length > MAX_NOTE_SIGNATURES)
    return malformed(`at most ${MAX_NOTE_SIGNATURES} signature lines`, `${lines.length}`);
  const signatures: NoteSignature[] = [];
  const seen = new Set<string>();
  for (const [index, line] of lines.entries()) {
    if (seen.has(line)) {
      if (!mayRepeat) return malformed('each signature line once', 'one of them twice');
      continue;
    }
    seen.add(line);
    const signature = readSignatureLine(line);
    if (signature === undefined)
      return malformed('"— name base64" in each signature line', `other text in line ${index + 1}`);
    signatures.push(signature);
  }
  return succeed({ text: whole.slice(0, split + 1), signatures });
}

/** Parses a C2SP signed note; no signature is verified. @throws NorthrootError `NOTE_MALFORMED` */
export function parseNote(bytes: Uint8Array): SignedNote {
  return orThrow(decodeNote(bytes));
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

/** The whole note. @throws RangeError if `text` does not end in a newline or there is no signature */
export function formatNote({ text, signatures }: SignedNote): string {
  if (!text.endsWith('\n')) throw new RangeError('the text of a note must end in a newline');
  if (signatures.length === 0) throw new RangeError('a note must have a signature');
  return `${text}\n${signatures.map((signature) => `${formatSignatureLine(signature)}\n`).join('')}`;
}

export function malformed(expected: string, actual: string): NoteResult<never> {
  return fail({ code: 'NOTE_MALFORMED', expected, actual });
}

/** @throws NorthrootError `NOTE_MALFORMED` */
export function orThrow<T>(result: NoteResult<T>): T {
  if (result.ok) return result.value;
  const { expected, actual } = result.fault;
  throw new NorthrootError('NOTE_MALFORMED', `the note is malformed: expected ${expected}, found ${actual}`);
}
