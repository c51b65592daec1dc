/**
 * Outside text made safe to show on a terminal, in a log or in a report: whatever could move a cursor, reorder or hide
 * characters, or be taken for a command by the system that keeps the log, is written as an escape, and long text is cut.
 */

/**
 * Controls (C0, C1, DEL), line and paragraph separators, bidi and other invisible format characters, unassigned, private use
 * and ignorable ones, lone surrogates, spaces that are not the space; and the start of a `##[…]` log command, which counts
 * anywhere in a line. (`::…::` counts only at the start of one, where outside text never stands.)
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|#(?=#\[)/gu;

/** `text` with every unsafe character as `\u{…}` and cut to `limit` characters (an ellipsis marks the cut). */
export function printable(text: string, limit = 200): string {
  const cut = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  return cut.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
}
