/**
 * Relates the scannable records of a block: which share a principal, tool, link, keyid or unit with an earlier one, so that each text is
 * decoded once; whether each follows the one before; whether its times are in order; and the bytes of its digests. Compiled twice, as
 * `walk.ts` is.
 */

import {
  SEEN_ENDS,
  SEEN_NUMBERS,
  SEEN_STARTS,
  decodeDigest,
  forgetSeen,
  isDigest,
  isSameText,
} from './primitives.js';
import type { Bytes, Int, Rows } from './primitives.js';
import {
  AMOUNTS,
  AMOUNT_WIDTH,
  ENDED_AT,
  EVENT_ID,
  FLAGS,
  HAS_OTHER_DIGEST,
  HAS_SOUND_TIMES,
  ID_WORDS,
  INTENT,
  INTENT_WORDS,
  IS_CHAINED,
  IS_IN_ORDER,
  LEDGER_ID,
  LINK,
  LINK_WORDS,
  METER_COUNT,
  OCCURRED_AT,
  PARAMS,
  PARAMS_WORDS,
  PREV,
  PRINCIPAL,
  ROW_AMOUNTS,
  ROW_WIDTH,
  SAME_KEYID,
  SAME_LINK,
  SAME_PRINCIPAL,
  SAME_TOOL,
  SAME_UNIT,
  SEQ_HIGH,
  SEQ_LOW,
  SIGNATURES,
  SIGNATURE_COUNT,
  STARTED_AT,
  TOOL,
  UNIT,
  USER_INTENT,
  USER_INTENT_WORDS,
} from './row.js';
import { B64_IN_DIGEST, B64_LENGTH, BEFORE_KEYID, REMEMBERED, SEQ_BASE } from './tables.js';

/* The kinds of texts, which are remembered apart; `SEEN_KINDS` of `tables.ts` is their number. */
const PRINCIPALS = 0;
const TOOLS = 1;
const LINKS = 2;
const KEYIDS = 3;
const UNITS = 4;

const HASH_BYTES = 32;
const WORD_BYTES = 4;

/**
 * Completes the rows of a block.
 *
 * @param rowBytes - The bytes of `rows`.
 * @param rowAt - The row of each line, or -1, in order.
 * @param leaves - The leaf hashes of the lines, 32 bytes each.
 */
export function relate(
  bytes: Bytes,
  rows: Rows,
  rowBytes: Bytes,
  rowAt: Rows,
  leaves: Bytes,
  lines: Int,
): void {
  forgetSeen();
  let isBehindRow = false;
  for (let i = 0; i < lines; i += 1) {
    const at = rowAt[i]!;
    if (at !== -1) {
      const base = at * ROW_WIDTH;
      fillSame(bytes, rows, at, base);
      decodeDigest(bytes, rows[base + EVENT_ID]!, rowBytes, WORD_BYTES * (base + ID_WORDS));
      const link = rows[base + LINK]!;
      if (link !== 0) decodeDigest(bytes, link, rowBytes, WORD_BYTES * (base + LINK_WORDS));
      let flags = rows[base + FLAGS]!;
      if ((flags & HAS_OTHER_DIGEST) === 0) {
        decodeMember(bytes, rows, rowBytes, base, INTENT, INTENT_WORDS);
        decodeMember(bytes, rows, rowBytes, base, PARAMS, PARAMS_WORDS);
        decodeMember(bytes, rows, rowBytes, base, USER_INTENT, USER_INTENT_WORDS);
      }
      if (hasSoundTimes(bytes, rows, base)) flags |= HAS_SOUND_TIMES;
      if (isBehindRow) {
        if (isChained(bytes, rows, base, leaves, (i - 1) * HASH_BYTES)) flags |= IS_CHAINED;
        const before = base - ROW_WIDTH + OCCURRED_AT;
        if (isNotEarlier(bytes, rows, base + OCCURRED_AT, before)) flags |= IS_IN_ORDER;
      }
      rows[base + FLAGS] = flags;
    }
    isBehindRow = at !== -1;
  }
}

/** Decodes a digest, where the row has one. */
function decodeMember(bytes: Bytes, rows: Rows, rowBytes: Bytes, base: Int, member: Int, words: Int): void {
  const at = rows[base + member]!;
  if (at !== 0) decodeDigest(bytes, at + B64_IN_DIGEST, rowBytes, WORD_BYTES * (base + words));
}

function fillSame(bytes: Bytes, rows: Rows, at: Int, base: Int): void {
  const principal = rows[base + PRINCIPAL]!;
  rows[base + SAME_PRINCIPAL] = see(PRINCIPALS, bytes, principal, rows[base + PRINCIPAL + 1]!, at);
  const tool = rows[base + TOOL]!;
  if (tool !== 0) rows[base + SAME_TOOL] = see(TOOLS, bytes, tool, rows[base + TOOL + 1]!, at);
  const link = rows[base + LINK]!;
  if (link !== 0) rows[base + SAME_LINK] = see(LINKS, bytes, link, link + B64_LENGTH, at);
  let amounts = rows[base + METER_COUNT]!;
  if (amounts > ROW_AMOUNTS) amounts = ROW_AMOUNTS;
  for (let i = 0; i < amounts; i += 1) {
    const amount = base + AMOUNTS + i * AMOUNT_WIDTH;
    const number = at * ROW_AMOUNTS + i;
    rows[amount + SAME_UNIT] = see(UNITS, bytes, rows[amount + UNIT]!, rows[amount + UNIT + 1]!, number);
  }
  if (rows[base + SIGNATURE_COUNT] === 0) return;
  const keyid = rows[base + SIGNATURES]! + BEFORE_KEYID;
  rows[base + SAME_KEYID] = see(KEYIDS, bytes, keyid, keyid + B64_LENGTH, at);
}

/** The number of the same text if remembered; else remembers `number`, in the text's only place. */
function see(kind: Int, bytes: Bytes, start: Int, end: Int, number: Int): Int {
  const slot = kind * REMEMBERED + slotOf(bytes, start, end);
  const length = end - start;
  const seen = SEEN_NUMBERS[slot]!;
  const seenStart = SEEN_STARTS[slot]!;
  if (seen !== 0 && SEEN_ENDS[slot]! - seenStart === length && isSameText(bytes, start, seenStart, length))
    return seen - 1;
  // 0 is none.
  SEEN_NUMBERS[slot] = number + 1;
  SEEN_STARTS[slot] = start;
  SEEN_ENDS[slot] = end;
  return number;
}

/** The place of a text, below `REMEMBERED`. The text is not empty. */
export function slotOf(bytes: Bytes, start: Int, end: Int): Int {
  const mixed = bytes[start]! + 31 * bytes[(start + end) >> 1]! + 961 * bytes[end - 1]! + 7 * (end - start);
  return mixed % REMEMBERED;
}

/**
 * Whether a record follows that of the row before: its `prev` is the leaf hash of that line, 32 bytes at `leafAt` of `leaves`; its `seq`
 * is one more; and both have the same `ledger_id`, or none.
 */
function isChained(bytes: Bytes, rows: Rows, base: Int, leaves: Bytes, leafAt: Int): boolean {
  const before = base - ROW_WIDTH;
  let low = rows[before + SEQ_LOW]! + 1;
  let high = rows[before + SEQ_HIGH]!;
  if (low === SEQ_BASE) {
    low = 0;
    high += 1;
  }
  if (rows[base + SEQ_LOW] !== low || rows[base + SEQ_HIGH] !== high) return false;
  const ledger = rows[base + LEDGER_ID]!;
  const ledgerBefore = rows[before + LEDGER_ID]!;
  if (ledger === 0 || ledgerBefore === 0) {
    if (ledger !== ledgerBefore) return false;
  } else if (!isSameText(bytes, ledger, ledgerBefore, B64_LENGTH)) return false;
  return isDigest(bytes, rows[base + PREV]!, leaves, leafAt);
}

function hasSoundTimes(bytes: Bytes, rows: Rows, base: Int): boolean {
  if (rows[base + STARTED_AT] === 0 || rows[base + ENDED_AT] === 0) return false;
  const isEnded = isNotEarlier(bytes, rows, base + ENDED_AT, base + STARTED_AT);
  return isEnded && isNotEarlier(bytes, rows, base + OCCURRED_AT, base + STARTED_AT);
}

/** Whether the timestamp `later` is as long as `former`, and not earlier. */
function isNotEarlier(bytes: Bytes, rows: Rows, later: Int, former: Int): boolean {
  const time = rows[later]!;
  const before = rows[former]!;
  const length = rows[later + 1]! - time;
  if (rows[former + 1]! - before !== length) return false;
  for (let i = 0; i < length; i += 1) {
    const difference = bytes[time + i]! - bytes[before + i]!;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
