/** The lines of a ledger in PostgreSQL, read in pages of about 1 MiB. What comes is held to what it claims to be. */

import { conflict, type StoredEnd } from '../store/ledger-store.js';
import { countOf, type Head, tipOf } from './head.js';
import { malformed } from './postgres-error.js';
import type { Session } from './session.js';

const PAGE_BYTES = 1024 * 1024;
const PAGE_LINES = 4_096;
const NEWLINE = 0x0a;

const PAGE = `select count(*)::int as lines, max(seq) as last, max(end_offset) as ends, string_agg(bytes, ''::bytea order by seq) as bytes
from (
  select seq, end_offset, bytes from northroot.line where ledger = $1 and seq >= $2 and seq < $3 order by seq limit ${PAGE_LINES}
) as page
where end_offset <= $4 or seq = $2`;
const LINE = 'select end_offset, bytes from northroot.line where ledger = $1 and seq = $2';

/** Where reading begins: after so many lines, and so many bytes. */
export interface LinesFrom {
  readonly size: number;
  readonly byteOffset: number;
}

export interface StoredLine {
  /** With its `\n`. */
  readonly bytes: Uint8Array;
  /** After it, in bytes. */
  readonly endOffset: number;
}

/**
 * Whole lines up to the head, concatenated, in order.
 * @throws NorthrootError `STORE_MALFORMED`
 */
export async function* readPages(
  session: Session,
  head: Head,
  from: LinesFrom,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array, void, void> {
  const { name } = session;
  let { size, byteOffset } = from;
  let last: Uint8Array | undefined;
  while (size < head.size) {
    signal?.throwIfAborted();
    const values = [head.id, size, head.size, byteOffset + PAGE_BYTES];
    const { rows } = await session.ask(PAGE, values, 'northroot-page');
    const [row = {}] = rows;
    const [lines, ends, end] = [countOf(row, 'lines'), countOf(row, 'ends'), countOf(row, 'last')];
    const { bytes } = row;
    if (lines === undefined || ends === undefined || end === undefined || !(bytes instanceof Uint8Array))
      throw malformed(name, `there is no line ${size + 1}`);
    const isWhole =
      end === size + lines - 1 && ends - byteOffset === bytes.length && bytes.at(-1) === NEWLINE;
    if (!isWhole || countLines(bytes) !== lines)
      throw malformed(name, `its lines after ${size} are not whole`);
    last = bytes;
    [size, byteOffset] = [size + lines, ends];
    yield bytes;
  }
  if (last === undefined) return;
  const line = last.subarray(last.lastIndexOf(NEWLINE, last.length - 2) + 1);
  if (byteOffset !== head.endOffset || tipOf(line) !== head.tip)
    throw malformed(name, 'its last line is not the one that its head names');
}

/** Undefined if there is no such line. */
export async function readStoredLine(
  session: Session,
  { id }: Head,
  ordinal: number,
): Promise<StoredLine | undefined> {
  if (id === undefined) return undefined;
  const { rows } = await session.ask(LINE, [id, ordinal], 'northroot-line');
  const [row] = rows;
  if (row === undefined) return undefined;
  const [bytes, endOffset] = [row['bytes'], countOf(row, 'end_offset')];
  const isLine =
    bytes instanceof Uint8Array && bytes.length > 0 && bytes.indexOf(NEWLINE) === bytes.length - 1;
  if (!isLine || endOffset === undefined || endOffset < bytes.length)
    throw malformed(session.name, `line ${ordinal + 1} is none`);
  return { bytes, endOffset };
}

/** Whether a ledger has a position: so many lines, of which the last is the one. */
export async function stands(session: Session, head: Head, { size, tip }: StoredEnd): Promise<boolean> {
  if (size === 0) return true;
  if (head.size < size) return false;
  if (head.size === size) return head.tip === tip;
  const line = await readStoredLine(session, head, size - 1);
  return line !== undefined && tipOf(line.bytes) === tip;
}

/** @throws NorthrootError `LEDGER_CONFLICT` unless the ledger has the position */
export async function assertReadable(
  session: Session,
  head: Head,
  from: StoredEnd & { readonly byteOffset: number },
): Promise<void> {
  if (from.size === 0) return;
  if (head.size < from.size) throw conflict(session.name);
  const line = await readStoredLine(session, head, from.size - 1);
  if (line === undefined || tipOf(line.bytes) !== from.tip || line.endOffset !== from.byteOffset)
    throw conflict(session.name);
}

function countLines(bytes: Uint8Array): number {
  let count = 0;
  for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}
