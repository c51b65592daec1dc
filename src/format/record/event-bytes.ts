/**
 * Finds an event in the canonical bytes of a line and hashes it in place (SPEC §3 "Identity"): the given bytes are the checked bytes, and
 * nothing is serialised again.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeLatin1 } from '../../base/bytes/text.js';
import type { MemberMarks } from '../../base/json/scan.js';
import { EVENT_ID_PREFIX, type EventIdentity } from '../event/identity.js';

const PREFIX = encodeLatin1(EVENT_ID_PREFIX);
const ROW = 5;
const COMMA = 0x2c;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Offsets of a value into the scanned array. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** In use only during {@link hashEvent}. */
let scratch = allocateBytes(PREFIX.length + 64 * 1024);
scratch.set(PREFIX);

/** The span of the first member `name` (ASCII) at `depth`: 1 is the top object, 2 the objects in it, a record's first being its event. */
export function findMember(
  bytes: Uint8Array,
  marks: MemberMarks,
  name: string,
  depth: 1 | 2 = 1,
): Span | undefined {
  for (let row = 0; row < marks.count * ROW; row += ROW)
    if (marks.rows[row] === depth && isKey(bytes, marks, row, name))
      return { start: marks.rows[row + 3] as number, end: marks.rows[row + 4] as number };
  return undefined;
}

/**
 * The identity of the event at `event`, whose members are marked at `depth` (1 for a bare event, 2 inside a record). The payload, the
 * event without `event_id` and `payload_digest`, is copied once and hashed twice.
 */
export function hashEvent(bytes: Uint8Array, marks: MemberMarks, event: Span, depth: 1 | 2): EventIdentity {
  const room = PREFIX.length + event.end - event.start + 1;
  if (scratch.length < room) {
    scratch = allocateBytes(room);
    scratch.set(PREFIX);
  }
  let at = PREFIX.length;
  scratch[at++] = OPEN;
  for (let row = 0; row < marks.count * ROW; row += ROW) {
    const keyStart = marks.rows[row + 1] as number;
    if (marks.rows[row] !== depth || keyStart < event.start || keyStart >= event.end) continue;
    if (isKey(bytes, marks, row, 'event_id') || isKey(bytes, marks, row, 'payload_digest')) continue;
    if (at > PREFIX.length + 1) scratch[at++] = COMMA;
    const valueEnd = marks.rows[row + 4] as number;
    scratch.set(bytes.subarray(keyStart, valueEnd), at);
    at += valueEnd - keyStart;
  }
  scratch[at++] = CLOSE;
  return {
    payloadDigest: sha256Base64url(scratch.subarray(PREFIX.length, at)),
    eventId: sha256Base64url(scratch.subarray(0, at)),
  };
}

function isKey(bytes: Uint8Array, marks: MemberMarks, row: number, name: string): boolean {
  const start = (marks.rows[row + 1] as number) + 1;
  if ((marks.rows[row + 2] as number) - 1 - start !== name.length) return false;
  for (let i = 0; i < name.length; i += 1) if (bytes[start + i] !== name.charCodeAt(i)) return false;
  return true;
}
