/**
 * What a writer must know of the ledger that it is about to append to, in one pass: the ids that are in it, its first and
 * its last line, and whether a crash left a torn tail. It is not a verification.
 */

import { asBuffer } from '../bytes/encoding.js';
import type { FileSystem, OpenFile } from '../fs/file-system.js';
import { findMember } from '../ledger/event-bytes.js';
import { examineLine } from '../ledger/examine-line.js';
import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../ledger/line-splitter.js';
import { MemberMarks, scanCanonical } from '../json/scan.js';
import { compareTimestamps } from '../value/timestamp.js';
import { appendLeaf, emptyRange, leafHash, type CompactRange } from '../tree/compact-range.js';
import { EventIndex } from '../verify/event-index.js';
import type { ChainTip } from './chain-tip.js';
import { firstSeqOf, type LedgerFiles } from './ledger-files.js';

/** What {@link surveyLedger} found. */
export interface Survey {
  readonly events: EventIndex;
  readonly firstLine: Uint8Array | undefined;
  /** Empty when the last line is too long to be a record. */
  readonly lastLine: Uint8Array;
  /** Whole lines, in all files. */
  readonly lines: number;
  /** Lines that could not be read as records; the ledger is damaged where they are. */
  readonly unreadable: number;
  /** The latest `occurred_at` of a checkpoint: the clock by which keys are judged, where it is later than genesis. */
  readonly clock: string | undefined;
  /** The last checkpoint. */
  readonly checkpoint: ChainTip['checkpoint'];
  /** The lines of key events, with the number of each. */
  readonly keyLines: readonly { readonly bytes: Uint8Array; readonly number: number }[];
  /** The tree over all lines, if it was asked for. */
  readonly tree: CompactRange | undefined;
  /** The size of the last file, in bytes, without its torn tail. */
  readonly end: number;
  /** The first segment whose name is not the number of the record that comes next, and that number. */
  readonly misplaced: { readonly path: string; readonly expected: number } | undefined;
  /** The tail of the last file, where it does not end in `\n`: the offset where it begins, and its first bytes. */
  readonly torn: { readonly offset: number; readonly start: Uint8Array } | undefined;
}

const CHUNK_BYTES = 1024 * 1024;
/** `"event_id":{"alg":"sha-256","b64":"…43 characters…"}`: where the text stands in the canonical value. */
const ID_START = '{"alg":"sha-256","b64":"'.length;
const ID_LENGTH = 43;

/** Reads the files of a ledger, in order, once. */
export async function surveyLedger(
  fileSystem: FileSystem,
  files: LedgerFiles,
  { keepsTree }: { readonly keepsTree: boolean },
): Promise<Survey> {
  const events = new EventIndex();
  const marks = new MemberMarks();
  const lastLine = Buffer.alloc(MAX_LINE_BYTES);
  let firstLine: Uint8Array | undefined;
  let lastLength = 0;
  let lines = 0;
  let unreadable = 0;
  let clock: string | undefined;
  let checkpoint: Survey['checkpoint'];
  const keyLines: { bytes: Uint8Array; number: number }[] = [];
  const tree = keepsTree ? emptyRange() : undefined;
  let end = 0;
  let torn: Survey['torn'];
  let misplaced: Survey['misplaced'];

  const take = (line: RawLine, file: string): void => {
    const { bytes } = line;
    const isWhole = line.length === bytes.length;
    firstLine ??= Uint8Array.from(bytes);
    lastLength = isWhole ? bytes.length : 0;
    lastLine.set(bytes);
    const id = isWhole ? readEventId(bytes, marks) : undefined;
    if (id === undefined) unreadable += 1;
    else {
      if (events.find(id) === undefined) events.add(id, { file, line: line.number, seq: lines });
      const type = readEventType(bytes, marks);
      if (type === 'key') keyLines.push({ bytes: Uint8Array.from(bytes), number: lines });
      const at = type === 'checkpoint' ? occurredAt(bytes) : undefined;
      if (at !== undefined) {
        clock = later(clock, at);
        checkpoint = { seq: lines, occurredAt: at };
      }
    }
    if (tree !== undefined) appendLeaf(tree, line.longLeafHash ?? leafHash(bytes));
    lines += 1;
  };

  const buffer = Buffer.alloc(CHUNK_BYTES);
  /** By the last record's own number; where that cannot be read, or more was torn off, nothing is known. */
  const checkName = (path: string): void => {
    if (!files.isFolder || misplaced !== undefined || torn !== undefined) return;
    const seq = lines === 0 ? -1 : examineLine(lastLine.subarray(0, lastLength), 'records').seq;
    if (seq !== undefined && firstSeqOf(path) !== seq + 1) misplaced = { path, expected: seq + 1 };
  };
  const read = async (file: OpenFile): Promise<void> => {
    checkName(file.path);
    const splitter = new LineSplitter();
    for (end = 0; ;) {
      const count = await file.read(buffer, end);
      if (count === 0) break;
      for (const line of splitter.push(buffer.subarray(0, count))) take(line, file.path);
      end += count;
    }
    // Only the last file can be torn by a crash: what came after was begun when all before it was on disk.
    if (torn !== undefined) unreadable += 1;
    const rest = splitter.finish();
    torn = rest && { offset: rest.offset, start: Uint8Array.from(rest.bytes.subarray(0, 64)) };
  };

  for (const path of files.earlier) {
    const file = await fileSystem.open(path, 'read');
    try {
      await read(file);
    } finally {
      await file.close();
    }
  }
  if (files.last !== undefined) await read(files.last);
  return {
    events,
    firstLine,
    lastLine: lastLine.subarray(0, lastLength),
    lines,
    unreadable,
    clock,
    checkpoint,
    keyLines,
    tree,
    misplaced,
    end: torn?.offset ?? end,
    torn,
  };
}

/** The id of a record's event, as its line has it; undefined when the line is no canonical record. */
function readEventId(line: Uint8Array, marks: MemberMarks): string | undefined {
  if (line.length === 0 || scanCanonical(line, 0, line.length, marks) !== -1) return undefined;
  const id = findMember(line, marks, 'event') && findMember(line, marks, 'event_id', 2);
  if (id === undefined || id.end - id.start !== ID_START + ID_LENGTH + 2) return undefined;
  return asBuffer(line).toString('latin1', id.start + ID_START, id.end - 2);
}

const TYPES = ['checkpoint', 'key'] as const;
const TYPE_TEXTS = TYPES.map((type) => ({ type, text: Buffer.from(JSON.stringify(type)) }));

/** Which of the types that matter the event has in the line whose members are in `marks`. */
function readEventType(line: Uint8Array, marks: MemberMarks): (typeof TYPES)[number] | undefined {
  const member = findMember(line, marks, 'event_type', 2);
  if (member === undefined) return undefined;
  const value = line.subarray(member.start, member.end);
  return TYPE_TEXTS.find(({ text }) => text.equals(value))?.type;
}

function occurredAt(line: Uint8Array): string | undefined {
  const { event, wellFormed } = examineLine(line, 'records');
  return wellFormed ? (event?.['occurred_at'] as string) : undefined;
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return compareTimestamps(a, b) >= 0 ? a : b;
}
