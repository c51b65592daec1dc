/** Comma-separated values (RFC 4180) that no spreadsheet takes for formulas. */

import { printable } from '../../../base/bytes/printable.js';

/** What spreadsheets take for the beginning of a formula, in their own and in full width. */
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]/;
/** The same where a reader that separates by semicolons begins a cell, though the text is one field here. */
const INNER_FORMULA = /;(?=[\s"']*[=+\-@\uff1d\uff0b\uff0d\uff20])/g;
/** Nearly every field, and nothing that needs a closer look. */
const PLAIN = /^[A-Za-z0-9][A-Za-z0-9_.:@/~+-]*$/;
const NUMBER = /^-?\d+(?:\.\d+)?$/;

/**
 * One value as a field. Controls and characters that reorder or hide text are written as escapes (`\u{…}`); what would be taken
 * for a formula begins with `'`, but for plain numbers; so does what follows a semicolon, as many spreadsheets separate by these.
 */
export function csvField(value: string | number): string {
  const given = String(value);
  if (given === '' || PLAIN.test(given)) return given;
  const text = printable(given, Infinity);
  const first = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  const safe = first.replace(INNER_FORMULA, ";'");
  return /[",;]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** A row, ending in CRLF. */
export function csvRow(values: readonly (string | number)[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}
