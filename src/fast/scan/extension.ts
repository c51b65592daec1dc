/**
 * The grammar of scannable records of extension types (SPEC §3), which may hold any JSON, as a walk over their bytes. Compiled twice, as
 * `walk.ts` is. It accepts only plain JSON: names of ASCII without escapes, whole numbers, no deep nesting. `scan.ts` has a slower way
 * for other events of unknown types.
 */

import { after, endOfText, isText } from './primitives.js';
import type { Bytes, Int, Rows } from './primitives.js';
import { EVENT_TYPE, TOOL } from './row.js';
import {
  ACTION_MEMBER,
  AUTHORIZATION_MEMBER,
  CLOSE,
  CLOSE_BRACKET,
  COMMA,
  ENVELOPE,
  FALSE,
  FIRST,
  MAX_SAFE_DIGITS,
  MINUS,
  NO_LIMIT,
  NULL,
  OPEN,
  OPEN_BRACKET,
  QUOTE,
  REQUIRED,
  TEXTS,
  TEXT_AT,
  TOOL_MEMBER,
  TRUE,
  X_DOT,
  ZERO,
} from './tables.js';
import { endOfInteger, endOfName, endOfValue } from './walk.js';

/** The maximum nesting of a member: less than canonical JSON allows. */
const MAX_NESTED = 32;

/** The offset after the event that begins at `from`; negative where it is declined. */
export function endOfExtension(bytes: Bytes, from: Int, rows: Rows, base: Int): Int {
  if (bytes[from] !== OPEN) return -1;
  const last = FIRST[ENVELOPE + 1]!;
  let m = FIRST[ENVELOPE]!;
  let at = from + 1;
  let before = -1;
  let next = COMMA;
  while (next === COMMA) {
    const value = endOfName(bytes, at, before);
    if (value < 0) return -1;
    before = at;
    let known = m;
    while (known < last && !isText(TEXTS, TEXT_AT[known]!, TEXT_AT[known + 1]!, bytes, at)) known += 1;
    if (known < last) {
      for (; m < known; m += 1) if (REQUIRED[m] === 1) return -1;
      at = endOfValue(m, bytes, at + TEXT_AT[m + 1]! - TEXT_AT[m]!, rows, base);
      m += 1;
    } else if (isName(TOOL_MEMBER, bytes, at, value)) {
      at = endOfTool(bytes, value, rows, base);
    } else if (isName(AUTHORIZATION_MEMBER, bytes, at, value)) {
      at = endOfMembers(bytes, value, MAX_NESTED, IN_AUTHORIZATION, rows, base);
    } else {
      at = endOfAny(bytes, value, MAX_NESTED, rows, base);
    }
    if (at < 0) return -1;
    next = bytes[at]!;
    at += 1;
  }
  if (next !== CLOSE) return -1;
  for (; m < last; m += 1) if (REQUIRED[m] === 1) return -1;
  // No type with a schema begins so.
  return after(X_DOT, bytes, rows[base + EVENT_TYPE]!) < 0 ? -1 : at;
}

/** Whether the name before the value at `value` is this one. */
function isName(name: Bytes, bytes: Bytes, at: Int, value: Int): boolean {
  return after(name, bytes, at) === value - 1;
}

function endOfTool(bytes: Bytes, at: Int, rows: Rows, base: Int): Int {
  const end = endOfText(bytes, at, NO_LIMIT);
  rows[base + TOOL] = at + 1;
  rows[base + TOOL + 1] = end - 1;
  return end;
}

/* Where an object is: an event names the tool itself, or as an authorization does, in `authorization.action`. */
const ANYWHERE = 0;
const IN_AUTHORIZATION = 1;
const IN_ACTION = 2;

/** In `authorization` only an object is accepted. */
function endOfMembers(bytes: Bytes, from: Int, nested: Int, place: Int, rows: Rows, base: Int): Int {
  if (nested === 0 || bytes[from] !== OPEN) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE) return at + 1;
  let before = -1;
  let next = COMMA;
  while (next === COMMA) {
    const value = endOfName(bytes, at, before);
    if (value < 0) return -1;
    before = at;
    if (place === IN_AUTHORIZATION && isName(ACTION_MEMBER, bytes, at, value))
      at = endOfMembers(bytes, value, nested - 1, IN_ACTION, rows, base);
    else if (place === IN_ACTION && isName(TOOL_MEMBER, bytes, at, value))
      at = endOfTool(bytes, value, rows, base);
    else at = endOfAny(bytes, value, nested - 1, rows, base);
    if (at < 0) return -1;
    next = bytes[at]!;
    at += 1;
  }
  return next === CLOSE ? at : -1;
}

function endOfElements(bytes: Bytes, from: Int, nested: Int, rows: Rows, base: Int): Int {
  if (nested === 0) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE_BRACKET) return at + 1;
  let next = COMMA;
  while (next === COMMA) {
    at = endOfAny(bytes, at, nested - 1, rows, base);
    if (at < 0) return -1;
    next = bytes[at]!;
    at += 1;
  }
  return next === CLOSE_BRACKET ? at : -1;
}

function endOfAny(bytes: Bytes, at: Int, nested: Int, rows: Rows, base: Int): Int {
  switch (bytes[at]) {
    case QUOTE:
      return endOfText(bytes, at, NO_LIMIT);
    case OPEN:
      return endOfMembers(bytes, at, nested, ANYWHERE, rows, base);
    case OPEN_BRACKET:
      return endOfElements(bytes, at, nested, rows, base);
    case 0x74:
      return after(TRUE, bytes, at);
    case 0x66:
      return after(FALSE, bytes, at);
    case 0x6e:
      return after(NULL, bytes, at);
    default:
      return endOfWhole(bytes, at);
  }
}

/** A whole number. Any other form is refused by what follows its digits. */
function endOfWhole(bytes: Bytes, from: Int): Int {
  const at = bytes[from] === MINUS ? from + 1 : from;
  // There is no `-0`.
  if (bytes[from] === MINUS && bytes[at] === ZERO) return -1;
  return endOfInteger(bytes, at, MAX_SAFE_DIGITS);
}
