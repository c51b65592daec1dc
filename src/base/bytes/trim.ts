/** Texts without what ends them. */

/** `text` without the repetitions of one character at its end. A pattern such as `/x+$/` would take the square of a run's length. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
