/**
 * Makes the line of a scannable record: the event is written with room around it and scanned before its place is known, and the rest of
 * the line is written into the room later. The result is that of `examineLine`.
 */

import { encodeLatin1, writeLatin1 } from '../../base/bytes/text.js';
import { ScannedLine } from '../scan/scanned-line.js';
import {
  LINE_END,
  ROW_WIDTH,
  scanRecord,
  SEQ_BASE,
  SEQ_HIGH,
  SEQ_LOW,
  SIGNATURE_COUNT,
  SIGNATURES,
} from '../scan/scan.js';
import { BEFORE_KEYID } from '../scan/tables.js';
import type { Room } from '../../format/event/identity.js';
import type { SignatureEntry, WellFormedLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import { EVENT_START, formatTail, HEAD } from '../../format/record/record.js';

const NO_TIP = 'A'.repeat(43);
const NO_SIGNATURE = { keyid: NO_TIP, sig: 'A'.repeat(86) };
const UNPLACED = formatTail({ prev: NO_TIP, seq: 0, signatures: [] });
const UNPLACED_SIGNED = formatTail({ prev: NO_TIP, seq: 0, signatures: [NO_SIGNATURE] });
/** The longest tail with one signature of 64 bytes. */
const MAX_TAIL = formatTail({
  prev: NO_TIP,
  seq: Number.MAX_SAFE_INTEGER,
  signatures: [NO_SIGNATURE],
}).length;
const BEFORE_PREV = ',"prev":{"alg":"sha-256","b64":"'.length;
const BEFORE_SEQ = BEFORE_PREV + `${NO_TIP}"},"seq":`.length;
const BEFORE_SIGNATURES = ',"signatures":['.length;
const BEFORE_SIG = BEFORE_KEYID + `${NO_TIP}","sig":"`.length;
const UNPLACED_BYTES = encodeLatin1(UNPLACED);
/** The text after `seq`. */
const AFTER_SEQ = encodeLatin1(UNPLACED.slice(BEFORE_SEQ + 1));
const AFTER_SEQ_SIGNED = encodeLatin1(UNPLACED_SIGNED.slice(BEFORE_SEQ + 1));

/** The room around an event for the rest of its line. */
export const LINE_ROOM: Room = { before: EVENT_START, after: MAX_TAIL };

/** An event in its future line. */
export interface FastEvent {
  /** The examined line, without place and signatures. */
  readonly line: WellFormedLine;
  readonly whole: Uint8Array;
  readonly rows: Int32Array;
  readonly at: number;
}

/** How many rows are allocated at once. A row is not used again. */
const ROWS_AT_ONCE = 64;
let rows = new Int32Array(0);
let used = 0;

/** Scans an event in {@link LINE_ROOM}; undefined unless it is scannable and its ids are right. */
export function scanFastEvent(whole: Uint8Array): FastEvent | undefined {
  whole.set(HEAD);
  whole.set(UNPLACED_BYTES, whole.length - MAX_TAIL);
  if (used * ROW_WIDTH === rows.length) {
    rows = new Int32Array(ROWS_AT_ONCE * ROW_WIDTH);
    used = 0;
  }
  // Without its `\n`.
  const end = whole.length - MAX_TAIL + UNPLACED.length - 1;
  if (!scanRecord(whole, 0, end, rows, used)) return undefined;
  const line = new ScannedLine(whole, rows, used) as object as WellFormedLine;
  used += 1;
  return { line, whole, rows, at: used - 1 };
}

/**
 * Completes the line, with its `\n`; undefined where it is too long. MUST be called once.
 *
 * @param signature - Of 64 bytes, with a key's thumbprint as keyid.
 */
export function placeFastEvent(
  { line, whole, rows: own, at }: FastEvent,
  prev: string,
  seq: number,
  signature: SignatureEntry | undefined,
): { readonly bytes: Uint8Array; readonly examined: WellFormedLine } | undefined {
  const start = whole.length - MAX_TAIL;
  const digits = String(seq);
  const afterSeq = start + BEFORE_SEQ + digits.length;
  const rest = signature === undefined ? AFTER_SEQ : AFTER_SEQ_SIGNED;
  const length = afterSeq + rest.length;
  if (length - 1 > MAX_LINE_BYTES) return undefined;
  const signatures = afterSeq + BEFORE_SIGNATURES;
  // The rest before `seq` was written with the event.
  writeLatin1(whole, prev, start + BEFORE_PREV);
  writeLatin1(whole, digits, start + BEFORE_SEQ);
  whole.set(rest, afterSeq);
  if (signature !== undefined) {
    writeLatin1(whole, signature.keyid, signatures + BEFORE_KEYID);
    writeLatin1(whole, signature.sig, signatures + BEFORE_SIG);
  }
  const base = at * ROW_WIDTH;
  own[base + LINE_END] = length - 1;
  own[base + SEQ_LOW] = seq % SEQ_BASE;
  own[base + SEQ_HIGH] = Math.floor(seq / SEQ_BASE);
  own[base + SIGNATURES] = signatures;
  own[base + SIGNATURE_COUNT] = signature === undefined ? 0 : 1;
  return { bytes: whole.subarray(0, length), examined: line };
}
