/** JSON for logs: the same values, in characters that end no line and show nothing else than they are. */

/** Characters that JSON does not escape, and that line readers, terminals or viewers interpret. */
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
