/** `text` without trailing repetitions of one character. A pattern such as `/x+$/` would be quadratic in a run's length. */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}
