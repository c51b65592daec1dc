/** Checks the two digests of a scannable record over the row that `scanRecord` filled. */

import { isTextAt } from '../../base/bytes/compare.js';
import { PrefixViews } from '../../base/bytes/prefix-views.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeLatin1 } from '../../base/bytes/text.js';
import { EVENT_ID_PREFIX } from '../../format/event/identity.js';
import * as row from './row.js';
import { B64_TO_END, BEFORE_EVENT_ID, BEFORE_PAYLOAD_DIGEST, MAX_LINE_BYTES } from './tables.js';

const { ROW_WIDTH } = row;

/** The prefix of the payload in the hash of an event id. */
export const PREFIX = encodeLatin1(EVENT_ID_PREFIX);

/** A payload as it is hashed: with and without {@link PREFIX}. */
export class PayloadViews {
  readonly payload: PrefixViews;
  readonly prefixed: PrefixViews;

  /** @param offset - Of the prefix in `buffer`. */
  constructor(buffer: ArrayBufferLike, offset: number) {
    this.payload = new PrefixViews(buffer, offset + PREFIX.length);
    this.prefixed = new PrefixViews(buffer, offset);
  }
}

/** Made at the first use, and used again by each call of {@link hasTrueIdentity}. */
let scratch: { readonly bytes: Uint8Array; readonly views: PayloadViews } | undefined;

/** Room for any payload: a longer line is not scannable. */
function makeScratch(): NonNullable<typeof scratch> {
  const bytes = new Uint8Array(PREFIX.length + MAX_LINE_BYTES);
  bytes.set(PREFIX);
  return { bytes, views: new PayloadViews(bytes.buffer, 0) };
}

/**
 * Whether `payload_digest` and `event_id` are right. The payload, the event without the two, is copied once and hashed twice.
 *
 * @param bytes - The bytes of row `at`.
 */
export function hasTrueIdentity(bytes: Uint8Array, rows: Int32Array, at: number): boolean {
  const base = at * ROW_WIDTH;
  scratch ??= makeScratch();
  const length = copyPayload(bytes, rows, base, scratch.bytes, PREFIX.length);
  return isIdentity(bytes, rows, base, scratch.views, length);
}

/** Copies the payload, the event without its two digests. @returns Its length. */
function copyPayload(
  bytes: Uint8Array,
  rows: Int32Array,
  base: number,
  target: Uint8Array,
  from: number,
): number {
  const start = rows[base + row.EVENT_START]!;
  const end = rows[base + row.EVENT_END]!;
  // Both have members before them, and `event_id` comes first.
  const idStart = rows[base + row.EVENT_ID]! - BEFORE_EVENT_ID;
  const idEnd = idStart + BEFORE_EVENT_ID + B64_TO_END;
  const digestStart = rows[base + row.PAYLOAD_DIGEST]! - BEFORE_PAYLOAD_DIGEST;
  const digestEnd = digestStart + BEFORE_PAYLOAD_DIGEST + B64_TO_END;
  let to = from;
  target.set(bytes.subarray(start, idStart), to);
  to += idStart - start;
  target.set(bytes.subarray(idEnd, digestStart), to);
  to += digestStart - idEnd;
  target.set(bytes.subarray(digestEnd, end), to);
  return to + end - digestEnd - from;
}

/** Whether the two digests of the row at `base` are those of the payload, `length` bytes of `views`. */
export function isIdentity(
  bytes: Uint8Array,
  rows: Int32Array,
  base: number,
  { payload, prefixed }: PayloadViews,
  length: number,
): boolean {
  const digest = sha256Base64url(payload.of(length));
  if (!isTextAt(bytes, rows[base + row.PAYLOAD_DIGEST]!, digest)) return false;
  return isTextAt(bytes, rows[base + row.EVENT_ID]!, sha256Base64url(prefixed.of(PREFIX.length + length)));
}
