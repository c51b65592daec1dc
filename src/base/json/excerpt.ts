/** Short, printable excerpts of outside bytes, safe in messages on a terminal. */

import { decodeUtf8, encodeUtf8 } from '../bytes/text.js';
import { utf8SequenceLength } from './utf8.js';

/** In UTF-16 code units. */
const MAX_EXCERPT_LENGTH = 40;

/** Control, format (bidi controls included), separator, private-use and unassigned characters. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/** `bytes[from, end)` as at most 40 characters, ending in `…` if cut; unprintable characters as `\u{…}`, invalid UTF-8 as `\x…`. */
export function excerptBytes(bytes: Uint8Array, from: number, end: number): string {
  let excerpt = '';
  for (let at = from; at < end;) {
    const length = utf8SequenceLength(bytes, at, end);
    const next = length === 0 ? byteEscape(bytes[at]!) : printable(decodeUtf8(bytes, at, at + length));
    at += Math.max(length, 1);
    // One character is reserved for the ellipsis unless this is the last.
    if (excerpt.length + next.length > (at < end ? MAX_EXCERPT_LENGTH - 1 : MAX_EXCERPT_LENGTH))
      return `${excerpt}…`;
    excerpt += next;
  }
  return excerpt;
}

/** {@link excerptBytes} of a text. */
export function excerptText(text: string): string {
  const bytes = encodeUtf8(text.slice(0, MAX_EXCERPT_LENGTH + 1));
  return excerptBytes(bytes, 0, bytes.length);
}

function printable(character: string): string {
  return UNPRINTABLE.test(character) ? `\\u{${character.codePointAt(0)!.toString(16)}}` : character;
}

function byteEscape(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`;
}
