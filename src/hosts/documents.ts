/** Files that are one JSON text or one on each line, and the members of such texts as items of their own. */

import { encodeUtf8 } from '../bytes/text.js';
import { SourceNumber, SourceObject, type SourceValue } from '../json/source-json.js';
import type { HostFile, HostPlace } from './host.js';
import { ReadingBuilder, splitLines, type SourceItem } from './reading.js';

/** The longest text that holds many items: a response with a list of rows is one line, whatever it holds. In bytes. */
export const MAX_DOCUMENT_BYTES = 64 * 1024 * 1024;

/**
 * The JSON texts of a file: one for each line where the first line is one by itself, else the file as a whole. What cannot be read is an
 * item that is dropped, with a finding.
 */
export function* documentsOf(reading: ReadingBuilder, file: HostFile): Generator<SourceItem, void, void> {
  if (isOneDocument(file)) {
    const item = reading.json(
      { at: { file: file.name }, bytes: file.bytes },
      undefined,
      false,
      MAX_DOCUMENT_BYTES,
    );
    if (item !== undefined) yield item;
  } else {
    yield* reading.lines(file, undefined, MAX_DOCUMENT_BYTES);
  }
}

/** The JSON texts of a file that can be read, for looking at what it is. */
export function peekDocuments(file: HostFile): Generator<SourceItem, void, void> {
  return documentsOf(new ReadingBuilder(), file);
}

/** A line of its own ends as it began. A first line that is torn, at its end or at its beginning, leaves the second as it was. */
function isOneDocument(file: HostFile): boolean {
  const [first, second] = [...take(splitLines(file), 2)];
  if (first === undefined || second === undefined) return false;
  return !isClosed(first.bytes) && !(first.bytes[0] !== OPEN_ARRAY && isClosed(second.bytes));
}

const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

function isClosed(line: Uint8Array): boolean {
  const last = line.findLast((byte) => byte !== 0x20 && byte !== 0x09);
  return (
    (line[0] === OPEN_OBJECT && last === CLOSE_OBJECT) || (line[0] === OPEN_ARRAY && last === CLOSE_ARRAY)
  );
}

function* take<T>(values: Iterable<T>, count: number): Generator<T, void, void> {
  let left = count;
  for (const value of values) {
    if (left-- <= 0) return;
    yield value;
  }
}

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
