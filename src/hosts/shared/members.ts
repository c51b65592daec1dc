/** Members of JSON texts as items of their own. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../../base/json/source-json.js';
import type { HostPlace, SourceItem } from './host.js';

/** Members of a list in a text, each an item of its own whose bytes are its compact form. */
export function* membersOf(
  at: HostPlace,
  pointer: string,
  list: readonly SourceValue[],
): Generator<SourceItem, void, void> {
  for (const [index, value] of list.entries()) {
    yield {
      at: { ...at, pointer: `${pointer}/${index}` },
      bytes: encodeUtf8(compactJson(value)),
      value,
    };
  }
}

/** The value as JSON text without white space, its members in their own order and its numbers as they were written. */
export function compactJson(value: SourceValue): string {
  if (value instanceof SourceNumber) return value.text;
  if (value instanceof SourceObject) {
    const members = value.entries().map(([name, member]) => `${JSON.stringify(name)}:${compactJson(member)}`);
    return `{${members.join(',')}}`;
  }
  if (Array.isArray(value)) return `[${(value as readonly SourceValue[]).map(compactJson).join(',')}]`;
  return JSON.stringify(value);
}
