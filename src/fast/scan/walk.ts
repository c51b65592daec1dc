/**
 * The grammar of scannable records, as a walk over their bytes. This file is compiled twice: as TypeScript, and to WebAssembly by
 * `assembly/build.js` with its imports replaced (`assembly/primitives.ts`). It uses what TypeScript and AssemblyScript share: integers of
 * 32 bits, and no objects but bytes and rows.
 */

import {
  UNIT_AT,
  UNIT_END,
  after,
  bytesAscend,
  daysInMonth,
  endOfText,
  isBase64url43,
  isPlain,
  isText,
  writeSeq,
} from './primitives.js';
import type { Bytes, Int, Rows } from './primitives.js';
import {
  ADJUSTMENT,
  AUTHORIZATION,
  EXECUTION,
  OTHER,
  START,
  FLAGS,
  PREV,
  SIGNATURES,
  SIGNATURE_COUNT,
  LINK,
  METERS,
  METER_COUNT,
  BASES,
  BASIS_COUNT,
  AMOUNTS,
  ROW_AMOUNTS,
  AMOUNT_WIDTH,
  AMOUNT_HIGH,
  AMOUNT_LOW,
  AMOUNT_SCALE,
  UNIT,
  IS_DENY,
  IS_FAILURE,
  IS_ABANDONED,
  IS_ESTIMATED,
  HAS_ERROR_CODE,
  HAS_OTHER_DIGEST,
  HAS_UNIT_BASES,
  FIRST_ESTIMATED,
  FLAGGED_AMOUNTS,
} from './row.js';
import {
  MAX_META_BYTES,
  QUOTE,
  COMMA,
  MINUS,
  DOT,
  ZERO,
  COLON,
  OPEN_BRACKET,
  CLOSE_BRACKET,
  OPEN,
  CLOSE,
  BASE64URL,
  ENDS_43,
  ENDS_2,
  IN_TOOL,
  IN_PRINCIPAL,
  ALPHANUMERIC,
  IN_UNIT,
  IN_CODE,
  IN_ALG,
  IN_TYPE,
  LOWER,
  IN_REQUEST_KEY,
  CLASS,
  NOTHING,
  SHA256,
  DIGEST,
  TIMESTAMP,
  PRINCIPAL_ID,
  TOOL_NAME,
  CODE,
  ERROR_CODE,
  TEXT,
  CHOICE,
  METER_VECTOR,
  SAFE_INTEGER,
  OBJECT,
  TYPE_NAME,
  PROFILE_ID,
  REQUEST_KEY_TEXT,
  RECORDER_NAME,
  START_NAME,
  UNIT_BASES,
  BASIS,
  NO_LIMIT,
  AUTHORIZATION_EVENT,
  EXECUTION_EVENT,
  ADJUSTMENT_EVENT,
  START_EVENT,
  FIRST,
  TEXT_AT,
  TEXTS,
  KINDS,
  REQUIRED,
  SLOTS,
  FLAG_OF,
  LIMITS,
  FIRST_OPTION,
  OPTION_AT,
  OPTION_TEXTS,
  OPTION_FLAGS,
  META_MEMBER,
  PREV_MEMBER,
  SEQ_MEMBER,
  SIGNATURES_MEMBER,
  DIGEST_BEFORE_B64,
  ALG_MEMBER,
  B64_MEMBER,
  AMOUNT_MEMBER,
  INT_BEFORE_V,
  DEC_BEFORE_M,
  DEC_BEFORE_S,
  DEC_AFTER_S,
  INT_AFTER_V,
  KEYID_MEMBER,
  SIG_MEMBER,
  AGENT,
  HUMAN,
  ORG,
  SERVICE,
  ABANDONED,
  START_TYPE_TEXT,
  B64_LENGTH,
  B64_IN_DIGEST,
  MAX_SIG_LENGTH,
  MAX_DIGITS,
  MAX_SCALE,
  MAX_SAFE_DIGITS,
  LOW_DIGITS,
  MAX_METERS,
  MAX_SIGNATURES,
} from './tables.js';

/** By the name of the event's first member. */
export function typeOf(bytes: Bytes, event: Int): Int {
  // `{"auth_event_id":`, `{"authorization":`, `{"canonical_profile_id":`
  const third = bytes[event + 2];
  if (third === 0x61 && bytes[event + 6] === 0x6f) return AUTHORIZATION;
  if (third === 0x61 && bytes[event + 6] === 0x5f) return EXECUTION;
  return third === 0x63 ? ADJUSTMENT : OTHER;
}

/*
 * Each function below takes the offset where something is expected and returns the offset after it, or a negative number where it is
 * absent. It may read past the line's end: the record then ends elsewhere than the line, and is declined.
 */

export function endOfEvent(type: Int, bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  let event = ADJUSTMENT_EVENT;
  if (type === AUTHORIZATION) event = AUTHORIZATION_EVENT;
  else if (type === EXECUTION) event = EXECUTION_EVENT;
  else if (type === START) event = START_EVENT;
  const end = endOfObject(event, bytes, from, rows, base);
  const flags = rows[base + FLAGS]!;
  if (type === EXECUTION && (flags & IS_FAILURE) !== 0 && (flags & HAS_ERROR_CODE) === 0) return -1;
  if (type !== AUTHORIZATION || (flags & IS_DENY) !== 0 || rows[base + LINK] !== 0) return end;
  // An allow has explicit bounds.
  return rows[base + METER_COUNT] === 0 ? -1 : end;
}

function endOfObject(object: Int, bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  if (bytes[from] !== OPEN) return -1;
  let at = from + 1;
  let m = FIRST[object]!;
  const last = FIRST[object + 1]!;
  for (;;) {
    for (;;) {
      if (m === last) return -1;
      const textAt = TEXT_AT[m]!;
      const textEnd = TEXT_AT[m + 1]!;
      if (isText(TEXTS, textAt, textEnd, bytes, at)) {
        at += textEnd - textAt;
        break;
      }
      if (REQUIRED[m] === 1) return -1;
      m += 1;
    }
    at = endOfValue(m, bytes, at, rows, base);
    if (at < 0) return -1;
    m += 1;
    const next = bytes[at];
    at += 1;
    if (next === COMMA) continue;
    if (next !== CLOSE) return -1;
    for (; m < last; m += 1) if (REQUIRED[m] === 1) return -1;
    return at;
  }
}

/** The value of member `m`. */
export function endOfValue(m: Int, bytes: Bytes, at: Int, rows: Rows, base: Int): Int {
  const slot = base + SLOTS[m]!;
  rows[base + FLAGS] = rows[base + FLAGS]! | FLAG_OF[m]!;
  switch (KINDS[m]) {
    case NOTHING:
      return at;
    case SHA256:
      rows[slot] = at + B64_IN_DIGEST;
      return endOfSha256(bytes, at);
    case DIGEST:
      if (slot !== base) {
        rows[slot] = at;
        if (after(DIGEST_BEFORE_B64, bytes, at) < 0)
          rows[base + FLAGS] = rows[base + FLAGS]! | HAS_OTHER_DIGEST;
      }
      return endOfDigest(bytes, at);
    case TIMESTAMP:
      return keep(endOfTimestamp(bytes, at), at, rows, slot);
    case PRINCIPAL_ID:
      return keep(endOfPrincipal(bytes, at), at, rows, slot);
    case TOOL_NAME:
      return keep(endOfClass(bytes, at, IN_TOOL, 1, 128), at, rows, slot);
    case TYPE_NAME:
      return keep(endOfTypeName(bytes, at), at, rows, slot);
    case CODE:
      return endOfClass(bytes, at, IN_CODE, 1, 64);
    case ERROR_CODE:
      if (after(ABANDONED, bytes, at) >= 0) rows[base + FLAGS] = rows[base + FLAGS]! | IS_ABANDONED;
      return endOfClass(bytes, at, IN_CODE, 1, 64);
    case PROFILE_ID:
      return endOfClass(bytes, at, BASE64URL, 16, 128);
    case RECORDER_NAME:
      return keep(endOfClass(bytes, at, BASE64URL, 16, 128), at, rows, slot);
    case REQUEST_KEY_TEXT:
      return keep(endOfClass(bytes, at, IN_REQUEST_KEY, 1, 128), at, rows, slot);
    case START_NAME:
      return keep(after(START_TYPE_TEXT, bytes, at), at, rows, slot);
    case TEXT:
      return endOfText(bytes, at, LIMITS[m]!);
    case CHOICE:
      return endOfChoice(LIMITS[m]!, bytes, at, rows, base);
    case METER_VECTOR:
      return endOfMeters(bytes, at, LIMITS[m]!, rows, base);
    case UNIT_BASES:
      rows[slot] = at + 1;
      return endOfBases(bytes, at, rows, base);
    case SAFE_INTEGER:
      return endOfInteger(bytes, at, MAX_SAFE_DIGITS);
    case OBJECT:
      return endOfObject(LIMITS[m]!, bytes, at, rows, base);
    default:
      return endOfList(m, bytes, at, rows, base);
  }
}

/** Keeps the offsets of a text without its quotes. */
function keep(end: Int, at: Int, rows: Rows, slot: Int): Int {
  rows[slot] = at + 1;
  rows[slot + 1] = end - 1;
  return end;
}

function endOfSha256(bytes: Bytes, at: Int): Int {
  const b64 = after(DIGEST_BEFORE_B64, bytes, at);
  if (b64 < 0 || !isBase64url43(bytes, b64)) return -1;
  const close = b64 + B64_LENGTH;
  return bytes[close] === QUOTE && bytes[close + 1] === CLOSE ? close + 2 : -1;
}

/** One of any algorithm; of SHA-256 in its own form. */
function endOfDigest(bytes: Bytes, at: Int): Int {
  if (after(DIGEST_BEFORE_B64, bytes, at) >= 0) return endOfSha256(bytes, at);
  const alg = after(ALG_MEMBER, bytes, at);
  if (alg < 0) return -1;
  let i = alg;
  while ((CLASS[bytes[i]!]! & IN_ALG) !== 0) i += 1;
  if (i === alg || i - alg > 32 || bytes[alg] === MINUS) return -1;
  const b64 = after(B64_MEMBER, bytes, i);
  if (b64 < 0) return -1;
  for (i = b64; (CLASS[bytes[i]!]! & BASE64URL) !== 0;) i += 1;
  const length = i - b64;
  if (length === 0 || length > 128 || length % 4 === 1) return -1;
  if (length % 4 === 2 && (CLASS[bytes[i - 1]!]! & ENDS_2) === 0) return -1;
  if (length % 4 === 3 && (CLASS[bytes[i - 1]!]! & ENDS_43) === 0) return -1;
  return bytes[i] === QUOTE && bytes[i + 1] === CLOSE ? i + 2 : -1;
}

/** A text of characters of one class. */
function endOfClass(bytes: Bytes, at: Int, bit: Int, least: Int, most: Int): Int {
  if (bytes[at] !== QUOTE) return -1;
  let i = at + 1;
  while ((CLASS[bytes[i]!]! & bit) !== 0) i += 1;
  const length = i - at - 1;
  return length >= least && length <= most && bytes[i] === QUOTE ? i + 1 : -1;
}

function endOfTypeName(bytes: Bytes, at: Int): Int {
  const first = bytes[at + 1]!;
  if ((CLASS[first]! & ALPHANUMERIC) === 0 && first !== 0x5f) return -1;
  return endOfClass(bytes, at, IN_TYPE, 1, 128);
}

/** `human:`, `service:`, `agent:` or `org:`, and 1 to 255 characters. */
function endOfPrincipal(bytes: Bytes, at: Int): Int {
  if (bytes[at] !== QUOTE) return -1;
  let i: Int;
  switch (bytes[at + 1]) {
    case 0x61:
      i = after(AGENT, bytes, at + 1);
      break;
    case 0x68:
      i = after(HUMAN, bytes, at + 1);
      break;
    case 0x6f:
      i = after(ORG, bytes, at + 1);
      break;
    case 0x73:
      i = after(SERVICE, bytes, at + 1);
      break;
    default:
      return -1;
  }
  if (i < 0 || (CLASS[bytes[i]!]! & ALPHANUMERIC) === 0) return -1;
  const name = i;
  while ((CLASS[bytes[i]!]! & IN_PRINCIPAL) !== 0) i += 1;
  return i - name <= 255 && bytes[i] === QUOTE ? i + 1 : -1;
}

function endOfChoice(choice: Int, bytes: Bytes, at: Int, rows: Rows, base: Int): Int {
  const option = findOption(choice, bytes, at);
  if (option < 0) return -1;
  rows[base + FLAGS] = rows[base + FLAGS]! | OPTION_FLAGS[option]!;
  return at + OPTION_AT[option + 1]! - OPTION_AT[option]!;
}

/** The option of a choice that is at `at`; negative for none. */
function findOption(choice: Int, bytes: Bytes, at: Int): Int {
  for (let option = FIRST_OPTION[choice]!; option < FIRST_OPTION[choice + 1]!; option += 1)
    if (isText(OPTION_TEXTS, OPTION_AT[option]!, OPTION_AT[option + 1]!, bytes, at)) return option;
  return -1;
}

/** Bases by unit. That each is of a meter is seen when these are read: they come later. */
function endOfBases(bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  if (bytes[from] !== OPEN) return -1;
  let at = from + 1;
  let before = -1;
  let count = 0;
  let next = COMMA;
  while (next === COMMA) {
    const value = endOfName(bytes, at, before);
    if (value < 0 || endOfUnit(bytes, at + 1) !== value - 2) return -1;
    const option = findOption(BASIS, bytes, value);
    if (option < 0) return -1;
    before = at;
    at = value + OPTION_AT[option + 1]! - OPTION_AT[option]!;
    count += 1;
    next = bytes[at]!;
    at += 1;
  }
  rows[base + BASIS_COUNT] = count;
  return next === CLOSE ? at : -1;
}

/** The basis of the unit at `[unit, end)`, as an option, among those that begin at `from`, whose names are units; negative for none. */
function findBasis(bytes: Bytes, from: Int, unit: Int, end: Int): Int {
  const length = end - unit;
  let at = from;
  let next = COMMA;
  while (next === COMMA) {
    const isIts = sameBytes(bytes, at + 1, unit, length) && bytes[at + 1 + length] === QUOTE;
    while (bytes[at] !== COLON) at += 1;
    if (isIts) return findOption(BASIS, bytes, at + 1);
    while (bytes[at] !== COMMA && bytes[at] !== CLOSE) at += 1;
    next = bytes[at]!;
    at += 1;
  }
  return -1;
}

function endOfList(m: Int, bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  if (bytes[from] !== OPEN_BRACKET) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE_BRACKET) {
    rows[base + FLAGS] = rows[base + FLAGS]! & ~FLAG_OF[m]!;
    return at + 1;
  }
  let next = COMMA;
  while (next === COMMA) {
    at = endOfObject(LIMITS[m]!, bytes, at, rows, base);
    if (at < 0) return -1;
    next = bytes[at]!;
    at += 1;
  }
  return next === CLOSE_BRACKET ? at : -1;
}

/** A whole number that is not negative, of limited digits. Other forms are not scannable. */
export function endOfInteger(bytes: Bytes, at: Int, most: Int): Int {
  if (bytes[at] === ZERO) return at + 1;
  let i = at;
  while (isDigit(bytes[i]!)) i += 1;
  return i > at && i - at <= most ? i : -1;
}

function isDigit(byte: Int): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Whole numbers and decimals that are not negative, each of another unit. */
function endOfMeters(bytes: Bytes, from: Int, least: Int, rows: Rows, base: Int): Int {
  if (bytes[from] !== OPEN_BRACKET) return -1;
  let at = from + 1;
  rows[base + METERS] = at;
  let bases = rows[base + BASIS_COUNT]!;
  if (bytes[at] === CLOSE_BRACKET) return least === 0 && bases === 0 ? at + 1 : -1;
  for (let count = 0; count < MAX_METERS; count += 1) {
    const slot = count < ROW_AMOUNTS ? base + AMOUNTS + count * AMOUNT_WIDTH : -1;
    at = endOfAmount(bytes, at, rows, slot);
    if (at < 0) return -1;
    const unit = at;
    at = endOfUnit(bytes, unit);
    if (at < 0 || bytes[at] !== QUOTE || bytes[at + 1] !== CLOSE) return -1;
    if (!isNewUnit(bytes, unit, at, count)) return -1;
    if (slot >= 0) {
      rows[slot + UNIT] = unit;
      rows[slot + UNIT + 1] = at;
    }
    if ((rows[base + FLAGS]! & HAS_UNIT_BASES) !== 0) {
      const basis = findBasis(bytes, rows[base + BASES]!, unit, at);
      if (basis >= 0) bases -= 1;
      const flags = basis < 0 ? rows[base + FLAGS]! : OPTION_FLAGS[basis]!;
      if (count < FLAGGED_AMOUNTS && (flags & IS_ESTIMATED) !== 0)
        rows[base + FLAGS] = rows[base + FLAGS]! | (1 << (FIRST_ESTIMATED + count));
    }
    at += 2;
    const next = bytes[at];
    at += 1;
    if (next === CLOSE_BRACKET) {
      if (bases !== 0) return -1;
      rows[base + METER_COUNT] = count + 1;
      return at;
    }
    if (next !== COMMA) return -1;
  }
  return -1;
}

/** The offset after a unit without its quotes. */
function endOfUnit(bytes: Bytes, unit: Int): Int {
  if ((CLASS[bytes[unit]!]! & LOWER) === 0) return -1;
  let at = unit + 1;
  while ((CLASS[bytes[at]!]! & IN_UNIT) !== 0) at += 1;
  return at - unit <= 64 ? at : -1;
}

/** From a meter's `{` to its unit. Writes the amount to `slot` unless that is negative. */
function endOfAmount(bytes: Bytes, from: Int, rows: Rows, slot: Int): Int {
  const amount = after(AMOUNT_MEMBER, bytes, from);
  if (amount < 0) return -1;
  if (bytes[amount + 1] === 0x74) {
    const v = after(INT_BEFORE_V, bytes, amount);
    const end = v < 0 ? -1 : endOfInteger(bytes, v, MAX_DIGITS);
    if (end >= 0 && slot >= 0) writeDigits(bytes, v, end, rows, slot);
    return end < 0 ? -1 : after(INT_AFTER_V, bytes, end);
  }
  const m = after(DEC_BEFORE_M, bytes, amount);
  const end = m < 0 ? -1 : endOfInteger(bytes, m, MAX_DIGITS);
  const s = end < 0 ? -1 : after(DEC_BEFORE_S, bytes, end);
  const scaleEnd = s < 0 ? -1 : endOfInteger(bytes, s, 2);
  if (scaleEnd < 0) return -1;
  const scale = scaleEnd - s === 2 ? twoDigits(bytes, s) : bytes[s]! - ZERO;
  if (scale > MAX_SCALE) return -1;
  if (slot >= 0) {
    writeDigits(bytes, m, end, rows, slot);
    rows[slot + AMOUNT_SCALE] = scale;
  }
  return after(DEC_AFTER_S, bytes, scaleEnd);
}

function writeDigits(bytes: Bytes, from: Int, end: Int, rows: Rows, slot: Int): void {
  if (end - from > MAX_SAFE_DIGITS) {
    rows[slot + AMOUNT_HIGH] = -1;
    return;
  }
  let high = 0;
  let low = 0;
  let i = from;
  for (; i < end - LOW_DIGITS; i += 1) high = high * 10 + bytes[i]! - ZERO;
  for (; i < end; i += 1) low = low * 10 + bytes[i]! - ZERO;
  rows[slot + AMOUNT_HIGH] = high;
  rows[slot + AMOUNT_LOW] = low;
}

function isNewUnit(bytes: Bytes, from: Int, end: Int, count: Int): boolean {
  UNIT_AT[count] = from;
  UNIT_END[count] = end;
  // One in order is new. Most are in order.
  for (let i = 0; i < count; i += 1)
    if (UNIT_END[i]! - UNIT_AT[i]! === end - from && sameBytes(bytes, UNIT_AT[i]!, from, end - from))
      return false;
  return true;
}

function sameBytes(bytes: Bytes, a: Int, b: Int, length: Int): boolean {
  for (let i = 0; i < length; i += 1) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}

/** Negative where they are not digits. */
function twoDigits(bytes: Bytes, at: Int): Int {
  const tens = bytes[at]!;
  const ones = bytes[at + 1]!;
  return isDigit(tens) && isDigit(ones) ? (tens - ZERO) * 10 + ones - ZERO : -1;
}

/** A timestamp (`isTimestamp`) with its quotes. */
function endOfTimestamp(bytes: Bytes, at: Int): Int {
  if (
    bytes[at] !== QUOTE ||
    bytes[at + 5] !== MINUS ||
    bytes[at + 8] !== MINUS ||
    bytes[at + 11] !== 0x54 ||
    bytes[at + 14] !== COLON ||
    bytes[at + 17] !== COLON
  )
    return -1;
  const century = twoDigits(bytes, at + 1);
  const year = twoDigits(bytes, at + 3);
  const month = twoDigits(bytes, at + 6);
  const day = twoDigits(bytes, at + 9);
  if (century < 0 || year < 0 || month < 1 || month > 12 || day < 1) return -1;
  if (day > 28 && day > daysInMonth(century * 100 + year, month)) return -1;
  const hour = twoDigits(bytes, at + 12);
  const minute = twoDigits(bytes, at + 15);
  const second = twoDigits(bytes, at + 18);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
  let i = at + 20;
  if (bytes[i] === DOT) {
    i += 1;
    const fraction = i;
    while (isDigit(bytes[i]!)) i += 1;
    if (i === fraction || i - fraction > 9) return -1;
  }
  return bytes[i] === 0x5a && bytes[i + 1] === QUOTE ? i + 2 : -1;
}

/** The rest of a record after the event. */
export function endOfRecord(bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  let at = from;
  const meta = after(META_MEMBER, bytes, at);
  if (meta >= 0) {
    at = endOfMeta(bytes, meta);
    if (at < 0 || at - meta > MAX_META_BYTES) return -1;
  }
  at = after(PREV_MEMBER, bytes, at);
  if (at < 0) return -1;
  rows[base + PREV] = at + B64_IN_DIGEST;
  at = endOfSha256(bytes, at);
  const seq = at < 0 ? -1 : after(SEQ_MEMBER, bytes, at);
  at = seq < 0 ? -1 : endOfInteger(bytes, seq, MAX_SAFE_DIGITS);
  if (at < 0) return -1;
  writeSeq(bytes, seq, at, rows, base);
  at = after(SIGNATURES_MEMBER, bytes, at);
  if (at < 0) return -1;
  rows[base + SIGNATURES] = at;
  let count = 0;
  if (bytes[at] === CLOSE_BRACKET) {
    at += 1;
  } else {
    for (;;) {
      at = endOfSignature(bytes, at);
      count += 1;
      if (at < 0 || count > MAX_SIGNATURES) return -1;
      const next = bytes[at];
      at += 1;
      if (next === CLOSE_BRACKET) break;
      if (next !== COMMA) return -1;
    }
  }
  rows[base + SIGNATURE_COUNT] = count;
  return bytes[at] === CLOSE ? at + 1 : -1;
}

function endOfSignature(bytes: Bytes, from: Int): Int {
  const keyid = after(KEYID_MEMBER, bytes, from);
  if (keyid < 0 || !isBase64url43(bytes, keyid)) return -1;
  const sig = after(SIG_MEMBER, bytes, keyid + B64_LENGTH);
  if (sig < 0) return -1;
  const end = endOfClass(bytes, sig - 1, BASE64URL, 1, MAX_SIG_LENGTH);
  return end >= 0 && bytes[end] === CLOSE ? end + 1 : -1;
}

/** An object of texts, names in order. */
function endOfMeta(bytes: Bytes, from: Int): Int {
  if (bytes[from] !== OPEN) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE) return at + 1;
  let before = -1;
  let next = COMMA;
  while (next === COMMA) {
    const value = endOfName(bytes, at, before);
    if (value < 0) return -1;
    before = at;
    at = endOfText(bytes, value, NO_LIMIT);
    if (at < 0) return -1;
    next = bytes[at]!;
    at += 1;
  }
  return next === CLOSE ? at : -1;
}

/**
 * The offset after the `:` of a name, which is ordered after the one at `before` unless that is negative. Names with escapes or beyond
 * ASCII are not ordered by their bytes, so they are not scannable.
 */
export function endOfName(bytes: Bytes, at: Int, before: Int): Int {
  if (bytes[at] !== QUOTE) return -1;
  let i = at + 1;
  while (isPlain(bytes[i]!)) i += 1;
  if (bytes[i] !== QUOTE || bytes[i + 1] !== COLON) return -1;
  return before >= 0 && !bytesAscend(bytes, before, at) ? -1 : i + 2;
}
