/**
 * The line of a usual record that is made here: the event is written with room around it, looked at once, before its place is known, and
 * the rest of the line is put into the room when it is. What is said of it then is what `examineLine` says of the line.
 */

import { encodeLatin1, writeLatin1 } from '../bytes/text.js';
import type { Room } from '../event/identity.js';
import type { SignatureEntry, WellFormedLine } from './examine-line.js';
import { MAX_LINE_BYTES } from './line-splitter.js';
import { QuickLine } from './quick-line.js';
import {
  LINE_END,
  ROW_WIDTH,
  SEQ_BASE,
  SEQ_HIGH,
  SEQ_LOW,
  SIGNATURES,
  SIGNATURE_COUNT,
  scanRecord,
} from './quick-scan.js';
import { EVENT_START, HEAD, formatTail } from './record.js';

const NO_TIP = 'A'.repeat(43);
const UNPLACED = encodeLatin1(formatTail({ prev: NO_TIP, seq: 0, signatures: [] }));
/** The longest tail with one signature of 64 bytes. */
const MAX_TAIL = formatTail({
  prev: NO_TIP,
  seq: Number.MAX_SAFE_INTEGER,
  signatures: [{ keyid: NO_TIP, sig: 'A'.repeat(86) }],
}).length;
const BEFORE_SEQ = `,"prev":{"alg":"sha-256","b64":"${NO_TIP}"},"seq":`.length;
const BEFORE_SIGNATURES = ',"signatures":['.length;

/** What an event is to be written with, so that its line can be made around it. */
export const LINE_ROOM: Room = { before: EVENT_START, after: MAX_TAIL };

/** An event, and the line that it will be in. */
export interface UsualEvent {
  /** What the line says, but for its place and its signatures. */
  readonly line: WellFormedLine;
  readonly whole: Uint8Array;
  readonly rows: Int32Array;
  readonly at: number;
}

/** Rows are made so many at once. */
const ROWS_AT_ONCE = 64;
let rows = new Int32Array(0);
let used = 0;

/** An event in {@link LINE_ROOM} whose ids are true, where it is a usual one. */
export function readMade(whole: Uint8Array): UsualEvent | undefined {
  whole.set(HEAD);
  whole.set(UNPLACED, whole.length - MAX_TAIL);
  if (used * ROW_WIDTH === rows.length) {
    rows = new Int32Array(ROWS_AT_ONCE * ROW_WIDTH);
    used = 0;
  }
  // Without its `\n`.
  const end = whole.length - MAX_TAIL + UNPLACED.length - 1;
  if (!scanRecord(whole, 0, end, rows, used)) return undefined;
  const line = new QuickLine(whole, rows, used) as object as WellFormedLine;
  used += 1;
  return { line, whole, rows, at: used - 1 };
}

/**
 * The line in its place, with its `\n`; undefined where that is too long. To be asked once.
 *
 * @param signature - By a key's thumbprint, and of 64 bytes.
 */
export function placeMade(
  { line, whole, rows: own, at }: UsualEvent,
  prev: string,
  seq: number,
  signature: SignatureEntry | undefined,
): { readonly bytes: Uint8Array; readonly examined: WellFormedLine } | undefined {
  const signatures = signature === undefined ? [] : [signature];
  const tail = formatTail({ prev, seq, signatures });
  const start = whole.length - MAX_TAIL;
  const length = start + tail.length;
  if (length - 1 > MAX_LINE_BYTES) return undefined;
  writeLatin1(whole, tail, start);
  const base = at * ROW_WIDTH;
  own[base + LINE_END] = length - 1;
  own[base + SEQ_LOW] = seq % SEQ_BASE;
  own[base + SEQ_HIGH] = Math.floor(seq / SEQ_BASE);
  own[base + SIGNATURES] = start + BEFORE_SEQ + String(seq).length + BEFORE_SIGNATURES;
  own[base + SIGNATURE_COUNT] = signatures.length;
  return { bytes: whole.subarray(0, length), examined: line };
}
