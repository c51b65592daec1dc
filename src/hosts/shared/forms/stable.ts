/**
 * `clasper-stable-v1`: what `JSON.stringify` writes of a copy whose keys were inserted in the order of `Object.keys().sort()`. It is
 * RFC 8785 but for three things of JavaScript's objects: keys that look like array indices come first, in the order of their numbers;
 * a member `__proto__` sets the copy's prototype and so is gone; lone surrogates are written as `\udxxx`.
 */

import { encodeHex } from '../../../base/bytes/encoding.js';
import { sha256 } from '../../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';

/** The name of the form, as foreign digests have it. */
export const STABLE_FORM = 'clasper-stable-v1';

/** The greatest array index: 2^32 − 2. */
const MAX_INDEX = 4_294_967_294;

/** The value's text in the form. */
export function stableText(value: SourceValue): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof SourceNumber) return numberText(value.text);
  if (value instanceof SourceObject) {
    const members = sortedKeys(value).map((key) => `${JSON.stringify(key)}:${stableText(value.get(key)!)}`);
    return `{${members.join(',')}}`;
  }
  return `[${value.map(stableText).join(',')}]`;
}

/** The same as UTF-8. */
export function stableBytes(value: SourceValue): Uint8Array {
  return encodeUtf8(stableText(value));
}

/** `sha256:` and the SHA-256 of the form in 64 lower-case hexadecimal digits. */
export function stableHash(value: SourceValue): string {
  return hashText(stableBytes(value));
}

/** `sha256:` and the SHA-256 of the bytes in lower-case hexadecimal digits. */
export function hashText(bytes: Uint8Array): string {
  return `sha256:${encodeHex(sha256(bytes))}`;
}

/** As a double is written; what no double holds is read as infinite, which `JSON.stringify` writes as null. */
function numberText(text: string): string {
  const number = Number(text);
  return Number.isFinite(number) ? String(number + 0) : 'null';
}

function sortedKeys(object: SourceObject): string[] {
  const keys = object.keys().filter((key) => key !== '__proto__');
  const indices = keys.filter(isIndex).sort((a, b) => Number(a) - Number(b));
  // By UTF-16 code units, as `sort` without a comparison does.
  return [...indices, ...keys.filter((key) => !isIndex(key)).sort()];
}

function isIndex(key: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) <= MAX_INDEX;
}
