/**
 * The digests of usual records, over the rows that `scanRecord` filled: whether the two of an event are those of its content, and
 * whether `prev` is the hash of the line before. Digests are compared as bytes with the base64url that stands in the record, so that
 * no text of them is made.
 */

import { allocateBytes } from '../bytes/concat.js';
import { sha256Latin1 } from '../bytes/sha256.js';
import { encodeLatin1 } from '../bytes/text.js';
import { EVENT_ID_PREFIX } from '../event/identity.js';
import * as row from './quick-scan.js';

const { ROW_WIDTH } = row;

const PREFIX = encodeLatin1(EVENT_ID_PREFIX);
const B64_LENGTH = 43;
const HASH_BYTES = 32;
/** `,"event_id":{"alg":"sha-256","b64":"` and `,"payload_digest":{"alg":"sha-256","b64":"`. */
const BEFORE_EVENT_ID = 36;
const BEFORE_PAYLOAD_DIGEST = 42;
/** 43 characters, `"` and `}`. */
const B64_TO_END = B64_LENGTH + 2;
/** What each character of base64url stands for. */
const ALPHABET = encodeLatin1('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_');
const SEQ_BASE = 2 ** 30;

let scratch = allocateBytes(PREFIX.length + 64 * 1024);
scratch.set(PREFIX);
const digest = new Uint8Array(HASH_BYTES);

/**
 * Whether `payload_digest` and `event_id` are those of the content: the payload is the event without the two, copied once and hashed
 * twice.
 *
 * @param bytes - Those that row `at` was filled from.
 * @param ids - The event's id is written to it, 32 bytes from `idAt` on; what stands there after *no* means nothing.
 */
export function hasTrueIdentity(
  bytes: Uint8Array,
  rows: Int32Array,
  at: number,
  ids: Uint8Array = digest,
  idAt = 0,
): boolean {
  const base = at * ROW_WIDTH;
  const start = rows[base + row.EVENT_START]!;
  const end = rows[base + row.EVENT_END]!;
  const id = rows[base + row.EVENT_ID]!;
  const payload = rows[base + row.PAYLOAD_DIGEST]!;
  const room = PREFIX.length + end - start;
  if (scratch.length < room) {
    scratch = allocateBytes(room);
    scratch.set(PREFIX);
  }
  // Both have members before them, and `event_id` comes first.
  let to = PREFIX.length;
  scratch.set(bytes.subarray(start, id - BEFORE_EVENT_ID), to);
  to += id - BEFORE_EVENT_ID - start;
  const between = id + B64_TO_END;
  scratch.set(bytes.subarray(between, payload - BEFORE_PAYLOAD_DIGEST), to);
  to += payload - BEFORE_PAYLOAD_DIGEST - between;
  scratch.set(bytes.subarray(payload + B64_TO_END, end), to);
  to += end - payload - B64_TO_END;
  writeHash(digest, 0, sha256Latin1(scratch.subarray(PREFIX.length, to)));
  if (!isBase64urlAt(bytes, payload, digest, 0)) return false;
  writeHash(ids, idAt, sha256Latin1(scratch.subarray(0, to)));
  return isBase64urlAt(bytes, id, ids, idAt);
}

/**
 * Whether the record of row `at` follows upon that of the row before it: its `prev` is `leaf`, 32 bytes at `leafAt` of `leaves` and the
 * leaf hash of that record's line; its `seq` is one more; and both have the same `ledger_id`, and have one.
 */
export function isChained(
  bytes: Uint8Array,
  rows: Int32Array,
  at: number,
  leaves: Uint8Array,
  leafAt: number,
): boolean {
  const base = at * ROW_WIDTH;
  const before = base - ROW_WIDTH;
  const next = rows[before + row.SEQ_LOW]! + 1;
  const carry = next === SEQ_BASE ? 1 : 0;
  if (rows[base + row.SEQ_LOW] !== (carry === 1 ? 0 : next)) return false;
  if (rows[base + row.SEQ_HIGH] !== rows[before + row.SEQ_HIGH]! + carry) return false;
  const ledger = rows[base + row.LEDGER_ID]!;
  const ledgerBefore = rows[before + row.LEDGER_ID]!;
  if (ledger === 0 || ledgerBefore === 0) return false;
  for (let i = 0; i < B64_LENGTH; i += 1) if (bytes[ledger + i] !== bytes[ledgerBefore + i]) return false;
  return isBase64urlAt(bytes, rows[base + row.PREV]!, leaves, leafAt);
}

/** Writes a hash, a binary string of 32 characters. */
export function writeHash(target: Uint8Array, at: number, hash: string): void {
  for (let i = 0; i < HASH_BYTES; i += 1) target[at + i] = hash.charCodeAt(i);
}

/** Whether the 43 characters at `at` are the base64url of the 32 bytes at `hashAt`. */
function isBase64urlAt(bytes: Uint8Array, at: number, hash: Uint8Array, hashAt: number): boolean {
  let i = at;
  let h = hashAt;
  for (const last = hashAt + 30; h < last; h += 3, i += 4) {
    const three = (hash[h]! << 16) | (hash[h + 1]! << 8) | hash[h + 2]!;
    if (
      bytes[i] !== ALPHABET[three >> 18] ||
      bytes[i + 1] !== ALPHABET[(three >> 12) & 63] ||
      bytes[i + 2] !== ALPHABET[(three >> 6) & 63] ||
      bytes[i + 3] !== ALPHABET[three & 63]
    ) {
      return false;
    }
  }
  const two = (hash[h]! << 10) | (hash[h + 1]! << 2);
  return (
    bytes[i] === ALPHABET[two >> 12] &&
    bytes[i + 1] === ALPHABET[(two >> 6) & 63] &&
    bytes[i + 2] === ALPHABET[two & 63]
  );
}
