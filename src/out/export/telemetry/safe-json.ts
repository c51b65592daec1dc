/** JSON for logs: the same values, in characters that end no line and show nothing else than they are. */

/** Characters that JSON does not escape, and that line readers, terminals or viewers interpret. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{DI}]/gu;

/** Printable ASCII. */
const PLAIN = /^[ -~]*$/;

/** `value` as one line of JSON; controls, and characters that reorder or hide text, as escapes. */
export function safeJson(value: unknown): string {
  const text = JSON.stringify(value);
  if (PLAIN.test(text)) return text;
  return text.replace(UNSAFE, jsonEscape);
}

/** A character as escapes in a JSON string, one for each code unit. */
export function jsonEscape(character: string): string {
  const escapes = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i));
  return escapes.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('');
}
