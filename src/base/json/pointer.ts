/** JSON Pointer (RFC 6901). */

/** The longest name: a hostile text must not be repeated whole in a hundred pointers. */
const MAX_NAME_LENGTH = 256;

/**
 * The pointer through these member names and array indexes, outermost first. For reports, a name of more than 256 characters is cut
 * and ends in `…`, and lone surrogates become U+FFFD.
 */
export function jsonPointer(path: readonly (string | number)[]): string {
  return path.map((step) => `/${escapeName(String(step))}`).join('');
}

/** Most names need no escapes. */
const PLAIN = /^[A-Za-z0-9_]*$/;

function escapeName(name: string): string {
  if (name.length <= MAX_NAME_LENGTH && PLAIN.test(name)) return name;
  const shown = name.length > MAX_NAME_LENGTH ? `${name.slice(0, MAX_NAME_LENGTH)}…` : name;
  return escapePointer(shown.replace(/\p{Surrogate}/gu, '\ufffd'));
}

/** A whole name, however long, as a step of a pointer. */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}
