/**
 * serde-struct-order, what Rust's serde_json writes of a struct: compact, the fields in the order of their declaration, arrays of bytes as
 * arrays of numbers, maps in the order of their keys' bytes. Not sorted, so it depends on the declaration.
 */

import { encodeUtf8 } from '../../../base/bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../../base/json/source-json.js';
import { compareCodePoints } from './cac.js';

/** A struct's fields in the order of their declaration; those that are structs themselves with their own. */
export type SerdeStruct = readonly (string | readonly [name: string, struct: SerdeStruct])[];

/**
 * The bytes that serde_json writes of `value`: of members that the struct does not have, nothing; of those that are absent, nothing.
 * Numbers are written as their source text, which is serde's own for whole numbers without sign.
 */
export function serdeBytes(value: SourceObject, struct: SerdeStruct): Uint8Array {
  const parts: string[] = [];
  writeStruct(value, struct, parts);
  return encodeUtf8(parts.join(''));
}

function writeStruct(value: SourceObject, struct: SerdeStruct, parts: string[]): void {
  parts.push('{');
  let isFirst = true;
  for (const field of struct) {
    const [name, inner] = typeof field === 'string' ? [field, undefined] : field;
    const member = value.get(name);
    if (member === undefined) continue;
    parts.push(isFirst ? '' : ',', JSON.stringify(name), ':');
    isFirst = false;
    if (inner !== undefined && member instanceof SourceObject) writeStruct(member, inner, parts);
    else writeValue(member, parts);
  }
  parts.push('}');
}

/** At most as deep as the parser went. */
function writeValue(value: SourceValue, parts: string[]): void {
  if (value === null || typeof value !== 'object') parts.push(JSON.stringify(value));
  else if (value instanceof SourceNumber) parts.push(value.text);
  else if (value instanceof SourceObject) {
    const members = value.entries().sort(([a], [b]) => compareCodePoints(a, b));
    parts.push('{');
    for (const [i, [name, member]] of members.entries()) {
      parts.push(i > 0 ? ',' : '', JSON.stringify(name), ':');
      writeValue(member, parts);
    }
    parts.push('}');
  } else {
    parts.push('[');
    for (const [i, element] of value.entries()) {
      if (i > 0) parts.push(',');
      writeValue(element, parts);
    }
    parts.push(']');
  }
}
