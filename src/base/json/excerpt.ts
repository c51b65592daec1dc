/** Short, printable excerpts of bytes from outside, for messages: what they show cannot move a terminal's cursor or hide text. */

import { decodeUtf8, encodeUtf8 } from '../bytes/text.js';
import { utf8SequenceLength } from './utf8.js';

/** The most characters (UTF-16 code units) in an excerpt. */
const MAX_EXCERPT_LENGTH = 40;

/** Control, format (bidi controls among them), line separator, private, unassigned: nothing of which a reader sees what it is. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/u;

/**
 * `bytes[from, end)` as text of at most 40 characters, ended by `…` when cut; unprintable
 * characters as `\u{…}`, bytes that are not UTF-8 as `\x…`.
 */
export function excerptBytes(bytes: Uint8Array, from: number, end: number): string {
  let excerpt = '';
  for (let at = from; at < end;) {
    const length = utf8SequenceLength(bytes, at, end);
    const next = length === 0 ? byteEscape(bytes[at]!) : printable(decodeUtf8(bytes, at, at + length));
    at += Math.max(length, 1);
    // One place is kept for the ellipsis until the last character is known to fit.
    if (excerpt.length + next.length > (at < end ? MAX_EXCERPT_LENGTH - 1 : MAX_EXCERPT_LENGTH))
      return `${excerpt}…`;
    excerpt += next;
  }
  return excerpt;
}

/** The same for a text: its beginning, at most 40 characters. */
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
