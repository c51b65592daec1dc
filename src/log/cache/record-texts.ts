/** How an index groups records: several per entry, one per line. */

import { decodeValue } from './codec.js';
import { type Entries, keyNumber } from './tables.js';

/** Few, since an incomplete entry is rewritten with each group. */
export const RECORDS_PER_ENTRY = 16;
/** Canonical JSON never contains it. */
const LINE_END = '\n';

export function recordsKey(ordinal: number): string {
  return `r:${keyNumber(Math.floor(ordinal / RECORDS_PER_ENTRY))}`;
}

export function joinRecords(texts: readonly string[]): string {
  return texts.join(LINE_END);
}

/** An entry's records up to `ordinal`; undefined if there are fewer. */
export function readRecords(entries: Entries, ordinal: number): string[] | undefined {
  const texts = entries.getText(recordsKey(ordinal))?.split(LINE_END) ?? [];
  const count = (ordinal % RECORDS_PER_ENTRY) + 1;
  return texts.length < count ? undefined : texts.slice(0, count);
}

/** A record's form, unchecked; undefined if there is none. @throws IndexFault when malformed */
export function readRecordForm(entries: Entries, ordinal: number): unknown {
  const text = readRecords(entries, ordinal)?.at(-1);
  return text === undefined ? undefined : decodeValue(text, entries.names);
}
