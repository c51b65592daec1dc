/** Where the records of an index are kept: some in each entry, a line for each. */

import { decodeValue } from './codec.js';
import { type Entries, keyNumber } from './tables.js';

/** Few, since an entry that is begun is written again with each group. */
export const RECORDS_PER_ENTRY = 16;
/** Stands in no JSON that is written without room. */
const LINE_END = '\n';

/** The key under which a record is kept. */
export function recordsKey(ordinal: number): string {
  return `r:${keyNumber(Math.floor(ordinal / RECORDS_PER_ENTRY))}`;
}

/** An entry, of the texts of its records in their order. */
export function joinRecords(texts: readonly string[]): string {
  return texts.join(LINE_END);
}

/** The records of an entry as they are kept, up to the one with this number; undefined where they are not as many. */
export function readRecords(entries: Entries, ordinal: number): string[] | undefined {
  const texts = entries.getText(recordsKey(ordinal))?.split(LINE_END) ?? [];
  const count = (ordinal % RECORDS_PER_ENTRY) + 1;
  return texts.length < count ? undefined : texts.slice(0, count);
}

/** What is kept of a record; of its form nothing is known. Undefined where there is nothing. @throws IndexFault when it is malformed */
export function readRecordForm(entries: Entries, ordinal: number): unknown {
  const text = readRecords(entries, ordinal)?.at(-1);
  return text === undefined ? undefined : decodeValue(text, entries.names);
}
