/**
 * RFC 8785 of foreign JSON, as its writers have it: numbers pass through doubles. What a double does not hold exactly is another number
 * than was written, and no signature over the form tells the two apart: {@link roundedAt} finds it.
 */

import { encodeUtf8 } from '../../../base/bytes/text.js';
import { parseDecimal } from '../../../base/json/decimal.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { escapePointer } from '../../../base/json/pointer.js';

/** The name of the form, as foreign digests have it. */
export const JCS_FORM = 'rfc8785';

/** The value's text in the form; undefined where it has none: a number beyond all doubles. Lone surrogates are to be refused before. */
export function jcsText(value: SourceValue): string | undefined {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof SourceNumber) {
    const number = Number(value.text);
    return Number.isFinite(number) ? String(number + 0) : undefined;
  }
  if (value instanceof SourceObject) {
    const members: string[] = [];
    // By UTF-16 code units, as `sort` without a comparison does.
    for (const name of value.keys().sort()) {
      const text = jcsText(value.get(name)!);
      if (text === undefined) return undefined;
      members.push(`${JSON.stringify(name)}:${text}`);
    }
    return `{${members.join(',')}}`;
  }
  const elements: string[] = [];
  for (const element of value) {
    const text = jcsText(element);
    if (text === undefined) return undefined;
    elements.push(text);
  }
  return `[${elements.join(',')}]`;
}

/** The same as UTF-8. */
export function jcsBytes(value: SourceValue): Uint8Array | undefined {
  const text = jcsText(value);
  return text === undefined ? undefined : encodeUtf8(text);
}

/** The RFC 6901 pointer of the first number that the form writes as another one; undefined where there is none. */
export function roundedAt(value: SourceValue): string | undefined {
  return findNumber(value, (text) => !isExact(text));
}

/** The RFC 6901 pointer of the first number whose text is wanted; undefined where there is none. */
export function findNumber(
  value: SourceValue,
  isWanted: (text: string) => boolean,
  pointer = '',
): string | undefined {
  if (value instanceof SourceNumber) return isWanted(value.text) ? pointer : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  const entries: readonly (readonly [string | number, SourceValue])[] =
    value instanceof SourceObject ? value.entries() : [...value.entries()];
  for (const [name, member] of entries) {
    const found = findNumber(member, isWanted, `${pointer}/${escapePointer(String(name))}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isExact(text: string): boolean {
  const number = Number(text);
  if (!Number.isFinite(number)) return false;
  const [said, held] = [parseDecimal(text), parseDecimal(String(number + 0))];
  return said.digits === held.digits && said.exponent === held.exponent;
}
