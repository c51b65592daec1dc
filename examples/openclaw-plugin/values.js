/** Values as the gate has them: digests, names, text for people. The forms are those of `northroot import --from openclaw`. */

import { createHash } from 'node:crypto';

/**
 * A value as it goes over a wire: what is no JSON is left out.
 * @param {unknown} value
 * @returns {unknown} Undefined for what has no such form
 */
export function asJson(value) {
  try {
    const text = JSON.stringify(value);
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * The SHA-256 of the canonical form (RFC 8785), `sha-256:…`.
 * @param {unknown} value - As {@link asJson} gives it
 * @returns {string | undefined} Undefined for what has no canonical form: lone surrogates, or too deep
 */
export function digestOf(value) {
  if (value === undefined) return undefined;
  try {
    return `sha-256:${createHash('sha256').update(canonical(value)).digest('base64url')}`;
  } catch {
    return undefined;
  }
}

/**
 * @param {unknown} value
 * @returns {string}
 */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const object = /** @type {Record<string, unknown>} */ (value);
  const members = Object.keys(object)
    .sort()
    .map((name) => `${quote(name)}:${canonical(object[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * JSON.stringify writes a lone surrogate as an escape, which would hide it.
 * @param {string} text
 */
function quote(text) {
  if (/\p{Surrogate}/u.test(text)) throw new RangeError('a lone surrogate');
  return JSON.stringify(text);
}

const MAX_TOOL_NAME = 128;
const KEPT = 62;

/**
 * A tool's name as the ledger has it: other characters than `A-Z a-z 0-9 _ . / : @ + = # -` as `~` and two digits a byte.
 * @param {string} name
 */
export function toolOf(name) {
  if (name === '') return '~';
  const known = name.replace(/\p{Surrogate}/gu, '\uFFFD');
  const escaped = escape(known, /[^A-Za-z0-9_./:@+=#-]/gu);
  if (escaped.length <= MAX_TOOL_NAME) return escaped;
  return `${escaped.slice(0, KEPT)}~~${createHash('sha256').update(known).digest('hex')}`;
}

/**
 * An agent's id as a part of a principal's.
 * @param {string} id
 */
export function agentOf(id) {
  return escape(id.replace(/\p{Surrogate}/gu, '\uFFFD'), /[^A-Za-z0-9._:@+-]/gu);
}

/**
 * @param {string} text
 * @param {RegExp} characters
 */
function escape(text, characters) {
  return text.replace(characters, (each) =>
    Buffer.from(each).toString('hex').toUpperCase().replace(/../g, '~$&'),
  );
}

/**
 * A Code: upper case, every run of other characters as one `_`.
 * @param {string} name
 */
export function codeOf(name) {
  return (
    name
      .toUpperCase()
      .replace(/[^A-Z0-9_]+/g, '_')
      .slice(0, 64) || 'UNNAMED'
  );
}

/**
 * A text of somebody else, for a person: one line without control characters, of bounded length.
 * @param {string} text
 * @param {number} [most]
 */
export function printable(text, most = 600) {
  const line = text.slice(0, most).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, '?');
  return text.length > most ? `${line}…` : line;
}
