/** Short, printable excerpts of JSON values, for the `actual` of a fault. */

import { printable } from '../../base/bytes/printable.js';

/** In UTF-16 code units. */
const MAX_LENGTH = 60;

/**
 * At most 60 characters of a value's JSON text, ending in `…` if cut; invisible characters are escaped. Takes any value, and does only
 * the work that these characters need.
 */
export function excerptJson(value: unknown): string {
  const text = printable(append('', value), Infinity);
  if (text.length <= MAX_LENGTH) return text;
  // Never cut a surrogate pair.
  return `${text.slice(0, MAX_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** `text` and the JSON text of `value`, abandoned once it is too long: each level of nesting costs a character. */
function append(text: string, value: unknown): string {
  if (typeof value === 'string') return text + JSON.stringify(value.slice(0, MAX_LENGTH + 1));
  if (typeof value === 'number') return text + (Object.is(value, -0) ? '-0' : String(value));
  if (typeof value === 'boolean' || value === null) return text + String(value);
  // No JSON value: it comes from a caller of the API.
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
