/** Text of an implementation as it may be shown: one line, no control characters, cut. */
export function printable(value, length = 400) {
  const text = typeof value === 'string' ? value : (textOf(value) ?? 'nothing');
  const shown = [...text.slice(0, length + 1)].map((character) =>
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\ufffe\uffff]/u.test(character)
      ? `\\u{${character.codePointAt(0).toString(16)}}`
      : character,
  );
  return text.length > length ? `${shown.slice(0, length).join('')}…` : shown.join('');
}

/** JSON text; a value may be nested deeper than that can be made of. */
function textOf(value) {
  try {
    return JSON.stringify(value);
  } catch (error) {
    if (error instanceof RangeError) return '(a value nested too deep to show)';
    throw error;
  }
}
