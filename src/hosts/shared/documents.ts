/** Files that are one JSON text, or one on each line. */

import type { HostFile, SourceItem } from './host.js';
import { MAX_DOCUMENT_BYTES, ReadingBuilder, splitLines } from './reading.js';

/**
 * The JSON texts of a file: one for each line where the first line is one by itself, else the file as a whole. What cannot be read is an
 * item that is dropped, with a finding.
 */
export function* documentsOf(reading: ReadingBuilder, file: HostFile): Generator<SourceItem, void, void> {
  if (reading.refuseTable(file)) return;
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
