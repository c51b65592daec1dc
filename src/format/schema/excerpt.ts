/** Short, printable excerpts of JSON values, for the `actual` of a fault. */

import { printable } from '../../base/bytes/printable.js';

/** The most characters (UTF-16 code units) in an excerpt. */
const MAX_LENGTH = 60;

/**
 * The beginning of a value's JSON text, at most 60 characters, ended by `…` when cut; what a reader would not see is escaped. Takes
 * any value, of any depth and size, and does no more than those characters need.
 */
export function excerptJson(value: unknown): string {
  const text = printable(append('', value), Infinity);
  if (text.length <= MAX_LENGTH) return text;
  // Not between the halves of a surrogate pair.
  return `${text.slice(0, MAX_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** `text` and the JSON text of `value`, given up once it is too long: so each level of nesting costs a character. */
function append(text: string, value: unknown): string {
  if (typeof value === 'string') return text + JSON.stringify(value.slice(0, MAX_LENGTH + 1));
  if (typeof value === 'number') return text + (Object.is(value, -0) ? '-0' : String(value));
  if (typeof value === 'boolean' || value === null) return text + String(value);
  // No JSON value: only an API's caller can have made it.
  if (typeof value !== 'object') return text + typeof value;
  const isArray = Array.isArray(value);
  let result = text + (isArray ? '[' : '{');
  let separator = '';
  for (const key of Object.keys(value)) {
    if (result.length > MAX_LENGTH) return result;
    result += separator;
    if (!isArray) result = `${append(result, key)}:`;
    result = append(result, (value as Record<string, unknown>)[key]);
    separator = ',';
  }
  return result + (isArray ? ']' : '}');
}
