/**
 * `scanRecord` of `src/fast/scan/scan.ts` in WebAssembly, for the lines of a block in its memory; `relate` of `src/fast/scan/relate.ts`;
 * and the nodes of the Merkle tree over the lines (`tree-nodes.ts`). `src/fast/blocks/line-scanner.ts` is the only caller.
 */

import { endOfExtension } from './extension';
import { Bytes, Rows, after } from './primitives';
import {
  ADJUSTMENT,
  AUTHORIZATION,
  EVENT_END,
  EVENT_ID,
  EVENT_START,
  EXECUTION,
  LINE_END,
  LINE_START,
  OTHER,
  PAYLOAD_DIGEST,
  ROW_WIDTH,
  START,
  TYPE,
} from './row';
import { B64_TO_END, BEFORE_EVENT_ID, BEFORE_PAYLOAD_DIGEST, EVENT_MEMBER, MAX_LINE_BYTES } from './tables';
import { relate } from './relate';
import { endOfEvent, endOfRecord, typeOf } from './walk';

export { hashNodes } from './tree-nodes';

/**
 * @param block - The address of the bytes into which row and line are offsets.
 * @param to - The address of the row to fill.
 * @returns Whether it is a scannable record; if not, the row is undefined.
 */
export function scan(block: usize, start: i32, end: i32, to: usize): bool {
  const bytes = changetype<Bytes>(block);
  const rows = changetype<Rows>(to);
  if (end - start > MAX_LINE_BYTES) return false;
  begin(to, start, end, 0);
  const event = after(EVENT_MEMBER, bytes, start);
  if (event < 0) return false;
  rows[EVENT_START] = event;
  let type = typeOf(bytes, event);
  let next = type === OTHER ? -1 : endOfEvent(type, bytes, event, rows, 0);
  // A start begins like an execution.
  if (next < 0 && type === EXECUTION) {
    begin(to, start, end, event);
    type = START;
    next = endOfEvent(type, bytes, event, rows, 0);
  }
  // A line that begins like one of these may be an extension, whose members have any names.
  if (next < 0) {
    begin(to, start, end, event);
    type = OTHER;
    next = endOfExtension(bytes, event, rows, 0);
  }
  if (next < 0 || endOfRecord(bytes, next, rows, 0) !== end) return false;
  rows[EVENT_END] = next;
  rows[TYPE] = type;
  return true;
}

function begin(to: usize, start: i32, end: i32, event: i32): void {
  const rows = changetype<Rows>(to);
  memory.fill(to, 0, 4 * ROW_WIDTH);
  rows[LINE_START] = start;
  rows[LINE_END] = end;
  rows[EVENT_START] = event;
}

/** Copies the event of a row without its two digests to `to`; returns the number of bytes. */
export function copyPayload(block: usize, row: usize, to: usize): i32 {
  const rows = changetype<Rows>(row);
  const start = rows[EVENT_START];
  const idStart = rows[EVENT_ID] - BEFORE_EVENT_ID;
  const idEnd = rows[EVENT_ID] + B64_TO_END;
  const digestStart = rows[PAYLOAD_DIGEST] - BEFORE_PAYLOAD_DIGEST;
  const digestEnd = rows[PAYLOAD_DIGEST] + B64_TO_END;
  const first = idStart - start;
  const second = digestStart - idEnd;
  const third = rows[EVENT_END] - digestEnd;
  memory.copy(to, block + start, first);
  memory.copy(to + first, block + idEnd, second);
  memory.copy(to + first + second, block + digestEnd, third);
  return first + second + third;
}

export function copyLine(block: usize, start: i32, end: i32, to: usize): void {
  memory.copy(to, block + start, end - start);
}

/** `relate` of `src/fast/scan/relate.ts`. */
export function relateRows(block: usize, rows: usize, rowAt: usize, leaves: usize, lines: i32): void {
  relate(
    changetype<Bytes>(block),
    changetype<Rows>(rows),
    changetype<Bytes>(rows),
    changetype<Rows>(rowAt),
    changetype<Bytes>(leaves),
    lines,
  );
}

/**
 * Finds the ends of lines: at `\n`, or at the end of the bytes.
 *
 * @param to - The address for the offsets, at most `most`.
 * @returns The number of lines; -1 if there are more.
 */
export function findEnds(block: usize, length: i32, to: usize, most: i32): i32 {
  const newline = i8x16.splat(0x0a);
  let count = 0;
  let start = 0;
  for (let base = 0; base < length; base += 16) {
    let found = i8x16.bitmask(i8x16.eq(v128.load(block + base), newline));
    while (found !== 0) {
      const end = base + ctz(found);
      // Bytes after the block do not count.
      if (end >= length) break;
      if (count === most) return -1;
      store<i32>(to + (count << 2), end);
      count += 1;
      start = end + 1;
      found &= found - 1;
    }
  }
  if (start === length) return count;
  if (count === most) return -1;
  store<i32>(to + (count << 2), length);
  return count + 1;
}

export function heapBase(): usize {
  return (__heap_base + 63) & ~63;
}
