/** Text of an implementation as it may be shown: one line, no control characters, cut. */
export function printable(value, length = 400) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? 'nothing');
  const shown = [...text.slice(0, length + 1)].map((character) =>
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u.test(character)
      ? `\\u{${character.codePointAt(0).toString(16)}}`
      : character,
  );
  return text.length > length ? `${shown.slice(0, length).join('')}…` : shown.join('');
}
