/**
 * Finds pieces of a streamed answer that are like those before, by the templates of `src/gate/llm/piece-template.ts`, which says what they
 * are and writes them into the memory. `src/gate/llm/piece-scanner.ts` is the only caller.
 */

// As `piece-template.ts` has them.
const NUMBER: i32 = 1;
const TEXT: i32 = 2;

const QUOTE: i32 = 0x22;
const BACKSLASH: i32 = 0x5c;
const ZERO: i32 = 0x30;
const NINE: i32 = 0x39;
/** A longer number may not be exact. */
const MAX_DIGITS: i32 = 15;

/** How many bytes of text the pieces of the last scan add. */
export let output: i32 = 0;

/** Of the text that was skipped last. Each is one byte. */
let escapes: i32 = 0;
/** The text bytes of the piece that was matched last. */
let added: i32 = 0;

/**
 * Returns the address after the last of the pieces that follow one another from `at` on; `at` itself where there is none. Up to 32 bytes
 * after `to` are loaded, and mean nothing.
 */
export function scan(templates: usize, count: i32, at: usize, to: usize): usize {
  output = 0;
  let last = templates;
  while (at < to) {
    let end = count > 0 ? match(last, at, to) : 0;
    let other = templates;
    for (let index = 0; end === 0 && index < count; index += 1) {
      if (other !== last) {
        end = match(other, at, to);
        if (end !== 0) last = other;
      }
      other += load<i32>(other);
    }
    if (end === 0) break;
    output += added;
    at = end;
  }
  return at;
}

/**
 * A template: its size, the bytes of text in all pieces, its number of parts; each part has the kind of what comes before it, the length of
 * its literal, the vector that masks the last 16 bytes of that, and the literal, filled up to 16. Returns 0 where it is no such piece.
 */
function match(template: usize, at: usize, to: usize): usize {
  let sum = load<i32>(template, 4);
  let left = load<i32>(template, 8);
  let part = template + 16;
  for (; left > 0; left -= 1) {
    const kind = load<i32>(part);
    if (kind !== 0) {
      const end = kind === NUMBER ? skipNumber(at, to) : skipText(at, to);
      if (end === 0) return 0;
      if (kind === TEXT) sum += <i32>(end - at) - escapes;
      at = end;
    }
    const length = load<i32>(part, 4);
    const mask = v128.load(part, 16);
    part += 32;
    if (at + length > to) return 0;
    let offset = 0;
    for (; offset + 16 < length; offset += 16)
      if (v128.any_true(v128.xor(v128.load(part + offset), v128.load(at + offset)))) return 0;
    if (v128.any_true(v128.and(v128.xor(v128.load(part + offset), v128.load(at + offset)), mask))) return 0;
    at += length;
    part += offset + 16;
  }
  added = sum;
  return at;
}

/** The address of the quote that ends a text; 0 where it is no text that is plain. */
function skipText(from: usize, to: usize): usize {
  const quotes = i8x16.splat(<i8>QUOTE);
  const backslashes = i8x16.splat(<i8>BACKSLASH);
  const spaces = i8x16.splat(0x20);
  escapes = 0;
  let at = from;
  let high: i32 = 0;
  while (at < to) {
    const bytes = v128.load(at);
    const ends = v128.or(
      v128.or(i8x16.eq(bytes, quotes), i8x16.eq(bytes, backslashes)),
      i8x16.lt_u(bytes, spaces),
    );
    const found = i8x16.bitmask(ends);
    if (found === 0) {
      high |= i8x16.bitmask(bytes);
      at += 16;
      continue;
    }
    const count = ctz(found);
    high |= i8x16.bitmask(bytes) & ((1 << count) - 1);
    at += count;
    if (at >= to) return 0;
    const byte: i32 = load<u8>(at);
    if (byte === QUOTE) return high === 0 || isUtf8(from, at) ? at : 0;
    // Of other escapes, only their digits say how many bytes they are.
    if (byte !== BACKSLASH || !isShortEscape(load<u8>(at, 1))) return 0;
    escapes += 1;
    at += 2;
  }
  return 0;
}

/** `"`, `\`, `/`, `b`, `f`, `n`, `r`, `t`. */
function isShortEscape(byte: i32): bool {
  switch (byte) {
    case QUOTE:
    case BACKSLASH:
    case 0x2f:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return true;
    default:
      return false;
  }
}

/** The address after a whole number as JSON has them, or 0. */
function skipNumber(from: usize, to: usize): usize {
  let at = from;
  while (at < to && isDigit(load<u8>(at))) at += 1;
  const length = <i32>(at - from);
  const isPlain = length === 1 || (length > 1 && length <= MAX_DIGITS && load<u8>(from) !== <u8>ZERO);
  return isPlain ? at : 0;
}

function isDigit(byte: i32): bool {
  return byte >= ZERO && byte <= NINE;
}

/** By the table of the Unicode Standard, 3-7. A character is followed by ASCII: what is loaded past `to` is refused by that. */
function isUtf8(from: usize, to: usize): bool {
  let at = from;
  while (at < to) {
    const first: i32 = load<u8>(at);
    if (first < 0x80) {
      at += 1;
      continue;
    }
    if (first < 0xc2 || first > 0xf4) return false;
    const second: i32 = load<u8>(at, 1);
    let least: i32 = 0x80;
    let most: i32 = 0xbf;
    if (first === 0xe0) least = 0xa0;
    else if (first === 0xed) most = 0x9f;
    else if (first === 0xf0) least = 0x90;
    else if (first === 0xf4) most = 0x8f;
    if (second < least || second > most) return false;
    if (first >= 0xe0 && !isTrail(load<u8>(at, 2))) return false;
    if (first >= 0xf0 && !isTrail(load<u8>(at, 3))) return false;
    at += first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  }
  return at === to;
}

function isTrail(byte: i32): bool {
  return (byte & 0xc0) === 0x80;
}

export function heapBase(): usize {
  return (__heap_base + 63) & ~63;
}
