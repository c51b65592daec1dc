/** A path or another word in a command that a message shows: as it can be given to a shell. */

import { printable } from '../base/bytes/printable.js';

/** A path in a message's command. One that begins with `-` would be an option; one that cannot be shown whole is shown as it is printed. */
export function shellWord(text: string): string {
  const shown = printable(text, Infinity);
  if (shown !== text) return shown;
  const word = text.startsWith('-') ? `./${text}` : text;
  return /^[\w@%+=:,./#-]+$/.test(word) && !word.startsWith('#')
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}
