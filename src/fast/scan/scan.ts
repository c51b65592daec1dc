/**
 * Scans a record over its bytes: canonical form (SPEC §1), shape and values (§2–§4) in one pass that makes no objects.
 *
 * It accepts a line only where `examineFully` finds no fault, except perhaps a wrong id or payload digest. It declines grants, genesis,
 * keys, checkpoints, amounts other than whole numbers and decimals, rare forms, and everything wrong. Declining means nothing: the line
 * is then examined fully. Canonical JSON orders its keys, so the members of a record are expected in that order.
 *
 * The offsets of the members that verification needs go to a row of numbers, which can be sent to another thread. `ScannedLine` reads it.
 */

import { decodeLatin1 } from '../../base/bytes/text.js';
import { MemberMarks, scanCanonical } from '../../base/json/scan.js';
import { isKnownEventType } from '../../format/schema/check.js';
import { endOfExtension } from './extension.js';
import { after, isText } from './primitives.js';
import {
  EVENT_END,
  EVENT_START,
  EVENT_TYPE,
  EXECUTION,
  LINE_END,
  LINE_START,
  OTHER,
  ROW_WIDTH,
  START,
  TOOL,
  TYPE,
} from './row.js';
import {
  AUTHORIZATION_MEMBER,
  BACKSLASH,
  ENVELOPE,
  EVENT_MEMBER,
  FIRST,
  MAX_LINE_BYTES,
  QUOTE,
  REQUIRED,
  TEXT_AT,
  TEXTS,
  TOOL_MEMBER,
} from './tables.js';
import { endOfEvent, endOfRecord, endOfValue, typeOf } from './walk.js';

export * from './row.js';
export { SEQ_BASE } from './tables.js';

/** Used again for each line. */
const marks = new MemberMarks();

/**
 * Scans one line. It computes no hash: `hasTrueIdentity` checks the ids.
 *
 * @param bytes - `[start, end)` is the line, without `\n`.
 * @param rows - Row `at`, {@link ROW_WIDTH} numbers, is written; it is undefined where the line is declined.
 * @returns Whether it is a scannable record.
 */
export function scanRecord(
  bytes: Uint8Array,
  start: number,
  end: number,
  rows: Int32Array,
  at: number,
): boolean {
  const base = at * ROW_WIDTH;
  if (end - start > MAX_LINE_BYTES || base + ROW_WIDTH > rows.length || end > bytes.length) return false;
  rows.fill(0, base, base + ROW_WIDTH);
  rows[base + LINE_START] = start;
  rows[base + LINE_END] = end;
  const event = after(EVENT_MEMBER, bytes, start);
  if (event < 0) return false;
  rows[base + EVENT_START] = event;
  let type = typeOf(bytes, event);
  let next = type === OTHER ? -1 : endOfEvent(type, bytes, event, rows, base);
  // A start begins like an execution.
  if (next < 0 && type === EXECUTION) {
    type = START;
    forgetEvent(rows, base);
    next = endOfEvent(type, bytes, event, rows, base);
  }
  // An extension may begin like one of these.
  if (next < 0) {
    type = OTHER;
    forgetEvent(rows, base);
    next = endOfExtension(bytes, event, rows, base);
  }
  if (next < 0) {
    // It would be parsed as a whole, only to be declined.
    if (hasKnownType(bytes, rows, base)) return false;
    forgetEvent(rows, base);
    next = endOfOther(bytes, start, end, rows, base);
  }
  if (next < 0 || endOfRecord(bytes, next, rows, base) !== end) return false;
  rows[base + EVENT_END] = next;
  rows[base + TYPE] = type;
  return true;
}

function forgetEvent(rows: Int32Array, base: number): void {
  rows.fill(0, base + TYPE, base + LINE_START);
  rows.fill(0, base + EVENT_END, base + ROW_WIDTH);
}

/** An event of any type without a schema, which may hold any JSON: the whole line is parsed. */
function endOfOther(bytes: Uint8Array, start: number, end: number, rows: Int32Array, base: number): number {
  if (scanCanonical(bytes, start, end, marks) !== -1) return -1;
  const { rows: marked, count } = marks;
  // The first member of the record is the event. Its members show that it is an object.
  const eventEnd = marked[4]!;
  const last = FIRST[ENVELOPE + 1]!;
  let m = FIRST[ENVELOPE]!;
  for (let row = 5; row < 5 * count; row += 5) {
    const from = marked[row + 1]!;
    if (from >= eventEnd) break;
    const valueEnd = marked[row + 4]!;
    const valueStart = marked[row + 3]!;
    if (isMember(TOOL_MEMBER, bytes, from, valueStart)) {
      if (bytes[valueStart] !== QUOTE) return -1;
      rows[base + TOOL] = valueStart + 1;
      rows[base + TOOL + 1] = valueEnd - 1;
      continue;
    }
    // Of a known type, or malformed: the slow path reads its tool.
    if (isMember(AUTHORIZATION_MEMBER, bytes, from, valueStart)) return -1;
    let known = m;
    while (known < last && !isText(TEXTS, TEXT_AT[known]!, TEXT_AT[known + 1]!, bytes, from)) known += 1;
    if (known === last) continue;
    for (; m < known; m += 1) if (REQUIRED[m] === 1) return -1;
    const behind = endOfValue(m, bytes, from + TEXT_AT[m + 1]! - TEXT_AT[m]!, rows, base);
    if (behind !== valueEnd) return -1;
    m += 1;
  }
  for (; m < last; m += 1) if (REQUIRED[m] === 1) return -1;
  return hasKnownType(bytes, rows, base) ? -1 : eventEnd;
}

/** Whether a row, of a declined line perhaps, has the type of an event, and it has a schema. */
function hasKnownType(bytes: Uint8Array, rows: Int32Array, base: number): boolean {
  const from = rows[base + EVENT_TYPE]!;
  return from !== 0 && isKnownEventType(decodeLatin1(bytes, from, rows[base + EVENT_TYPE + 1]));
}

/**
 * Whether {@link scanRecord} too would decline the line `[start, end)`, as the walk in WebAssembly did: that one declines besides only texts
 * with escapes or beyond ASCII, and unknown types.
 *
 * @param rows - Row `at` is as that walk left it.
 */
export function isHopeless(
  bytes: Uint8Array,
  start: number,
  end: number,
  rows: Int32Array,
  at: number,
): boolean {
  if (!hasKnownType(bytes, rows, at * ROW_WIDTH)) return false;
  for (let i = start; i < end; i += 1) {
    const byte = bytes[i]!;
    if (byte >= 0x80 || byte === BACKSLASH) return false;
  }
  return true;
}

function isMember(name: Uint8Array, bytes: Uint8Array, from: number, valueStart: number): boolean {
  return valueStart - 1 - from === name.length && after(name, bytes, from) >= 0;
}
