/**
 * `src/fast/scan/primitives.ts`, which documents each function, for `walk.ts` compiled to WebAssembly. Bytes and rows are addresses, and
 * 128 bytes after the last line are readable. Lines with texts other than unescaped ASCII, which are rare, are declined and left to
 * JavaScript.
 */

import { SEQ_HIGH, SEQ_LOW } from './row';
import {
  CLASS,
  ENDS_43,
  MAX_METERS,
  NO_LIMIT,
  QUOTE,
  BACKSLASH,
  B64_LENGTH,
  REMEMBERED,
  SEEN_KINDS,
  ZERO,
} from './tables';

export type Int = i32;

@unmanaged
export class Bytes {
  @inline
  @operator('[]')
  get(i: i32): i32 {
    return load<u8>(changetype<usize>(this) + i);
  }
}

@unmanaged
export class Shorts {
  @inline
  @operator('[]')
  get(i: i32): i32 {
    return load<u16>(changetype<usize>(this) + (i << 1));
  }
}

@unmanaged
export class Rows {
  @inline
  @operator('[]')
  get(i: i32): i32 {
    return load<i32>(changetype<usize>(this) + (i << 2));
  }

  @inline
  @operator('[]=')
  set(i: i32, value: i32): void {
    store<i32>(changetype<usize>(this) + (i << 2), value);
  }
}

export const SEEN_NUMBERS = changetype<Rows>(memory.data(4 * SEEN_KINDS * REMEMBERED, 16));
export const SEEN_STARTS = changetype<Rows>(memory.data(4 * SEEN_KINDS * REMEMBERED, 16));
export const SEEN_ENDS = changetype<Rows>(memory.data(4 * SEEN_KINDS * REMEMBERED, 16));

export function forgetSeen(): void {
  memory.fill(changetype<usize>(SEEN_NUMBERS), 0, 4 * SEEN_KINDS * REMEMBERED);
}

export const UNIT_AT = changetype<Rows>(memory.data(4 * MAX_METERS, 16));
export const UNIT_END = changetype<Rows>(memory.data(4 * MAX_METERS, 16));

/** Eight bytes at a time; eight more after each text are readable. */
function isSame(a: usize, b: usize, length: i32): bool {
  let left = length;
  while (left >= 8) {
    if (load<u64>(a) !== load<u64>(b)) return false;
    a += 8;
    b += 8;
    left -= 8;
  }
  return ((load<u64>(a) ^ load<u64>(b)) & (((<u64>1) << (left << 3)) - 1)) === 0;
}

export function isText(texts: Bytes, textAt: i32, textEnd: i32, bytes: Bytes, at: i32): bool {
  return isSame(changetype<usize>(texts) + textAt, changetype<usize>(bytes) + at, textEnd - textAt);
}

export function isSameText(bytes: Bytes, a: i32, b: i32, length: i32): bool {
  return isSame(changetype<usize>(bytes) + a, changetype<usize>(bytes) + b, length);
}

/** The length of a text is stored before it. */
export function after(text: Bytes, bytes: Bytes, at: i32): i32 {
  const length = load<i32>(changetype<usize>(text) - 4);
  return isSame(changetype<usize>(text), changetype<usize>(bytes) + at, length) ? at + length : -1;
}

/** A bit for each of sixteen bytes: whether it is base64url. */
function base64urlAt(at: usize): i32 {
  const v = v128.load(at);
  const letter = i8x16.lt_u(i8x16.sub(v128.or(v, i8x16.splat(0x20)), i8x16.splat(0x61)), i8x16.splat(26));
  const digit = i8x16.lt_u(i8x16.sub(v, i8x16.splat(0x30)), i8x16.splat(10));
  const others = v128.or(i8x16.eq(v, i8x16.splat(0x2d)), i8x16.eq(v, i8x16.splat(0x5f)));
  return i8x16.bitmask(v128.or(v128.or(letter, digit), others));
}

export function isBase64url43(bytes: Bytes, at: i32): bool {
  const from = changetype<usize>(bytes) + at;
  if (base64urlAt(from) !== 0xffff || base64urlAt(from + 16) !== 0xffff) return false;
  return base64urlAt(from + 26) >>> 0 === 0xffff && (CLASS[bytes[at + B64_LENGTH - 1]] & ENDS_43) !== 0;
}

/** Decodes sixteen characters of base64url to twelve bytes; undefined for other characters. */
function decode16(at: usize): v128 {
  const v = v128.load(at);
  // Offsets from character to value: -65 for A to Z, -71 for a to z, +4 for 0 to 9, +17 for -, -32 for _.
  let offset = i8x16.splat(-65);
  offset = v128.bitselect(i8x16.splat(-71), offset, i8x16.gt_u(v, i8x16.splat(0x60)));
  offset = v128.bitselect(i8x16.splat(4), offset, i8x16.lt_u(v, i8x16.splat(0x3a)));
  offset = v128.bitselect(i8x16.splat(17), offset, i8x16.eq(v, i8x16.splat(0x2d)));
  offset = v128.bitselect(i8x16.splat(-32), offset, i8x16.eq(v, i8x16.splat(0x5f)));
  const six = i8x16.add(v, offset);
  const first = i32x4.shl(v128.and(six, i32x4.splat(0xff)), 18);
  const second = i32x4.shl(v128.and(six, i32x4.splat(0xff00)), 4);
  const third = i32x4.shr_u(v128.and(six, i32x4.splat(0xff0000)), 10);
  const fourth = i32x4.shr_u(six, 24);
  const groups = v128.or(v128.or(first, second), v128.or(third, fourth));
  return i8x16.swizzle(groups, i8x16(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
}

export function decodeDigest(bytes: Bytes, at: i32, target: Bytes, targetAt: i32): void {
  const from = changetype<usize>(bytes) + at;
  const to = changetype<usize>(target) + targetAt;
  v128.store(to, decode16(from));
  v128.store(to + 12, decode16(from + 16));
  // The last eleven characters give eight bytes; the rest of the block is ignored.
  v128.store_lane<u64>(to + 24, decode16(from + 32), 0);
}

const DIGEST = changetype<Bytes>(memory.data(32, 16));

export function isDigest(bytes: Bytes, at: i32, hash: Bytes, hashAt: i32): bool {
  decodeDigest(bytes, at, DIGEST, 0);
  const a = changetype<usize>(DIGEST);
  const b = changetype<usize>(hash) + hashAt;
  const high = v128.xor(v128.load(a), v128.load(b));
  const low = v128.xor(v128.load(a + 16), v128.load(b + 16));
  return !v128.any_true(v128.or(high, low));
}

export function endOfText(bytes: Bytes, at: i32, most: i32): i32 {
  if (bytes[at] !== QUOTE) return -1;
  const from = at + 1;
  let i = from;
  while (isPlain(bytes[i])) i += 1;
  if (bytes[i] !== QUOTE || (i === from && most !== NO_LIMIT)) return -1;
  return i - from <= most ? i + 1 : -1;
}

export function isPlain(byte: i32): bool {
  return byte >= 0x20 && byte < 0x80 && byte !== QUOTE && byte !== BACKSLASH;
}

export function bytesAscend(bytes: Bytes, former: i32, latter: i32): bool {
  let i = 1;
  while (bytes[former + i] === bytes[latter + i]) {
    if (bytes[former + i] === QUOTE) return false;
    i += 1;
  }
  const a = bytes[former + i];
  const b = bytes[latter + i];
  return a === QUOTE || (b !== QUOTE && a < b);
}

export function daysInMonth(year: i32, month: i32): i32 {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

export function writeSeq(bytes: Bytes, from: i32, end: i32, rows: Rows, base: i32): void {
  let number: u64 = 0;
  for (let i = from; i < end; i += 1) number = number * 10 + (bytes[i] - ZERO);
  rows[base + SEQ_LOW] = <i32>(number & 0x3fffffff);
  rows[base + SEQ_HIGH] = <i32>(number >> 30);
}
