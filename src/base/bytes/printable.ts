/**
 * Makes outside text safe for terminals, logs and reports: what could move a cursor, reorder or hide characters, or act as a log
 * command is escaped, and long text is cut.
 */

/**
 * Controls (C0, C1, DEL), line and paragraph separators, bidi and other invisible format characters, unassigned, private use
 * and ignorable ones, lone surrogates, spaces other than U+0020; and the start of a `##[…]` log command, valid anywhere in a
 * line. (`::…::` is valid only at the start of a line, where outside text never is.)
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|#(?=#\[)/gu;

/** `text` with every unsafe character as `\u{…}` and cut to `limit` characters (an ellipsis marks the cut). */
export function printable(text: string, limit = 200): string {
  const cut = text.length > limit ? `${text.slice(0, limit - 1)}…` : text;
  return cut.replace(UNSAFE, (character) => `\\u{${(character.codePointAt(0) as number).toString(16)}}`);
}

/** Passwords of URLs, well-formed or not: from the colon after a name to the last `@` before white space. */
const PASSWORD = /(:\/\/[^\s:@/]*):\S*@/g;

/** `text` without the passwords of URLs in it. What is malformed MAY lose more. */
export function withoutPasswords(text: string): string {
  return text.replace(PASSWORD, '$1@');
}
