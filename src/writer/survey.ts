/**
 * The files of a ledger that is about to be appended to, read once and in order: line by line, with what a crash may have left at
 * the end. What the lines say is for whoever visits them.
 */

import type { FileSystem, OpenFile } from '../fs/file-system.js';
import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../ledger/line-splitter.js';
import { examineLine } from '../ledger/examine-line.js';
import { firstSeqOf, type LedgerFiles } from './ledger-files.js';

/** What {@link surveyLedger} found. */
export interface Survey {
  readonly firstLine: Uint8Array | undefined;
  /** Empty when the last line is too long to be a record. */
  readonly lastLine: Uint8Array;
  /** Whole lines, in all files. */
  readonly lines: number;
  /** Files that end within a line, though others come after them: the ledger is damaged there. */
  readonly damaged: number;
  /** The size of the last file, in bytes, without its torn tail. */
  readonly end: number;
  /** The first segment whose name is not the number of the record that comes next, and that number. */
  readonly misplaced: { readonly path: string; readonly expected: number } | undefined;
  /** The tail of the last file, where it does not end in `\n`: the offset where it begins, and its first bytes. */
  readonly torn: { readonly offset: number; readonly start: Uint8Array } | undefined;
}

const CHUNK_BYTES = 1024 * 1024;

/**
 * Reads the files of a ledger.
 *
 * @param visit - Called with each whole line, and the path of its file.
 */
export async function surveyLedger(
  fileSystem: FileSystem,
  files: LedgerFiles,
  visit: (line: RawLine, file: string) => void = () => undefined,
): Promise<Survey> {
  const lastLine = Buffer.alloc(MAX_LINE_BYTES);
  let firstLine: Uint8Array | undefined;
  let lastLength = 0;
  let lines = 0;
  let damaged = 0;
  let end = 0;
  let torn: Survey['torn'];
  let misplaced: Survey['misplaced'];

  const buffer = Buffer.alloc(CHUNK_BYTES);
  /** By the last record's own number; where that cannot be read, or more was torn off, nothing is known. */
  const checkName = (path: string): void => {
    if (!files.isFolder || misplaced !== undefined || torn !== undefined) return;
    const seq = lines === 0 ? -1 : examineLine(lastLine.subarray(0, lastLength), 'records').seq;
    if (seq !== undefined && firstSeqOf(path) !== seq + 1) misplaced = { path, expected: seq + 1 };
  };
  const read = async (file: OpenFile): Promise<void> => {
    // Only the last file can be torn by a crash: what came after was begun when all before it was on disk.
    if (torn !== undefined) damaged += 1;
    checkName(file.path);
    const splitter = new LineSplitter();
    for (end = 0; ;) {
      const count = await file.read(buffer, end);
      if (count === 0) break;
      for (const line of splitter.push(buffer.subarray(0, count))) {
        const { bytes, length } = line;
        firstLine ??= Uint8Array.from(bytes);
        lastLength = length === bytes.length ? bytes.length : 0;
        lastLine.set(bytes);
        lines += 1;
        visit(line, file.path);
      }
      end += count;
    }
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
    firstLine,
    lastLine: lastLine.subarray(0, lastLength),
    lines,
    damaged,
    misplaced,
    end: torn?.offset ?? end,
    torn,
  };
}
