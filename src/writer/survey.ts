/**
 * What a writer must know of the ledger that it is about to append to, in one pass: the ids that are in it, its first and
 * its last line, and whether a crash left a torn tail. It is not a verification.
 */

import type { OpenFile } from '../fs/file-system.js';
import { findMember } from '../ledger/event-bytes.js';
import { LineSplitter, type RawLine } from '../ledger/line-splitter.js';
import { MemberMarks, scanCanonical } from '../json/scan.js';
import { EventIndex } from '../verify/event-index.js';

/** What {@link surveyLedger} found. */
export interface Survey {
  readonly events: EventIndex;
  readonly firstLine: Uint8Array | undefined;
  readonly lastLine: Uint8Array | undefined;
  /** Whole lines, in all files. */
  readonly lines: number;
  /** Lines that could not be read as records; the ledger is damaged where they are. */
  readonly unreadable: number;
  /** The tail of the last file, where it does not end in `\n`: the offset where it begins, and its first bytes. */
  readonly torn: { readonly offset: number; readonly start: Uint8Array } | undefined;
}

const CHUNK_BYTES = 1024 * 1024;
/** `"event_id":{"alg":"sha-256","b64":"…43 characters…"}`: where the text stands in the canonical value. */
const ID_START = '{"alg":"sha-256","b64":"'.length;
const ID_LENGTH = 43;

/** Reads the files of a ledger, in order, once. */
export async function surveyLedger(files: readonly OpenFile[]): Promise<Survey> {
  const events = new EventIndex();
  const marks = new MemberMarks();
  let firstLine: Uint8Array | undefined;
  let lastLine = new Uint8Array(0);
  let lines = 0;
  let unreadable = 0;
  let torn: Survey['torn'];

  const take = (line: RawLine, file: string): void => {
    const { bytes } = line;
    firstLine ??= bytes.slice();
    lastLine = bytes.slice();
    const id = line.length === bytes.length ? readEventId(bytes, marks) : undefined;
    if (id === undefined) unreadable += 1;
    else if (events.find(id) === undefined) events.add(id, { file, line: line.number, seq: lines });
    lines += 1;
  };

  const buffer = Buffer.alloc(CHUNK_BYTES);
  for (const file of files) {
    const splitter = new LineSplitter();
    for (let position = 0; ;) {
      const count = await file.read(buffer, position);
      if (count === 0) break;
      for (const line of splitter.push(buffer.subarray(0, count))) take(line, file.path);
      position += count;
    }
    const rest = splitter.finish();
    torn = rest && { offset: rest.offset, start: rest.bytes.slice(0, 64) };
  }
  return { events, firstLine, lastLine: lines === 0 ? undefined : lastLine, lines, unreadable, torn };
}

/** The id of a record's event, as its line has it; undefined when the line is no canonical record. */
function readEventId(line: Uint8Array, marks: MemberMarks): string | undefined {
  if (line.length === 0 || scanCanonical(line, 0, line.length, marks) !== -1) return undefined;
  const id = findMember(line, marks, 'event') && findMember(line, marks, 'event_id', 2);
  if (id === undefined || id.end - id.start !== ID_START + ID_LENGTH + 2) return undefined;
  return Buffer.from(line.buffer, line.byteOffset, line.length).toString(
    'latin1',
    id.start + ID_START,
    id.end - 2,
  );
}
