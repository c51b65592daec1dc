/** JSON for logs: the same values, in characters that end no line and show nothing else than they are. */

/** What JSON leaves as it is, though readers of lines, terminals and viewers take it for more than text. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}]/gu;

/** Printable ASCII. */
const PLAIN = /^[ -~]*$/;

/** `value` as one line of JSON; controls, and characters that reorder or hide text, as escapes. */
export function safeJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (PLAIN.test(text)) return text;
  return text.replace(UNSAFE, (character) =>
    Array.from(
      { length: character.length },
      (_, i) => `\\u${character.charCodeAt(i).toString(16).padStart(4, '0')}`,
    ).join(''),
  );
}
