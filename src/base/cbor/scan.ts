/**
 * Checks that bytes are one item of deterministic CBOR (RFC 8949 §4.2.1) in northroot's profile, from the heads of its items: nothing
 * is decoded, and allocation is bounded by the input. What passes is safe for a lax decoder.
 *
 * The profile: definite lengths, shortest heads, integers within ±(2^53 − 1), no floats, simple values only false, true and null,
 * texts in UTF-8, map keys that are integers or texts, unique and sorted by their bytes, and only the tags that the caller allows.
 */

import { findInvalidUtf8 } from '../json/utf8.js';
import type { CborFault } from './value.js';

/** Nesting of arrays, maps and tags. */
export const MAX_CBOR_DEPTH = 16;
/** All items, nested ones included. */
export const MAX_CBOR_ITEMS = 4_194_304;
/** All maps and their entries: decoded they cost most, and no format has many. */
export const MAX_CBOR_MAP_ENTRIES = 65_536;

const UNSIGNED = 0;
const NEGATIVE = 1;
const BYTES = 2;
const TEXT = 3;
const ARRAY = 4;
const MAP = 5;
const TAG = 6;

const FALSE = 20;
const NULL = 22;

/** The largest argument in the head's own byte. */
const MAX_IMMEDIATE = 23;
const INDEFINITE = 31;
/** The limit of the upper four bytes of an eight-byte argument: 2^53 − 1. */
const MAX_UPPER = 0x1f_ffff;

/** An open array, map or tag. */
interface Frame {
  left: number;
  readonly isMap: boolean;
  /** Maps only: whether the next item is a key, and the span of the last one. */
  isKey: boolean;
  keyStart: number;
  keyEnd: number;
}

interface Head {
  readonly major: number;
  readonly argument: number;
  readonly end: number;
}

/** The first fault of the bytes; `undefined` if there is none. @param tags - The allowed tags. */
export function scanCbor(bytes: Uint8Array, tags: ReadonlySet<number>): CborFault | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const frames: Frame[] = [];
  let at = 0;
  let items = 0;
  let entries = 0;
  do {
    const frame = frames.at(-1);
    const start = at;
    const head = readHead(view, at);
    if ('expected' in head) return head;
    const { major, argument } = head;
    items += 1;
    if (items > MAX_CBOR_ITEMS) return fault(at, `at most ${MAX_CBOR_ITEMS} items`, 'more');
    at = head.end;
    const inFrame = (expected: string, actual: string): CborFault => fault(start, expected, actual);
    if (frame?.isMap === true && frame.isKey && (major > TEXT || major === BYTES))
      return inFrame('an integer or a text as a key', 'another item');
    if (major === BYTES || major === TEXT) {
      if (argument > bytes.length - at) return tooLong(start, argument, bytes.length - at, 'bytes');
      const invalid = major === TEXT ? findInvalidUtf8(bytes, at, at + argument) : -1;
      if (invalid !== -1) return fault(invalid, 'a text in UTF-8', 'other bytes');
      at += argument;
    }
    if (major === TAG && !tags.has(argument)) return inFrame('a tag that is allowed here', `tag ${argument}`);
    if (frame !== undefined) {
      const problem = countInto(bytes, frame, start, at);
      if (problem !== undefined) return problem;
    }
    if (major === MAP) {
      entries += 1 + argument;
      if (entries > MAX_CBOR_MAP_ENTRIES)
        return inFrame(`at most ${MAX_CBOR_MAP_ENTRIES} maps and entries of maps`, 'more');
    }
    if (major === ARRAY || major === MAP || major === TAG) {
      const left = major === TAG ? 1 : major === MAP ? argument * 2 : argument;
      // Each item takes at least one byte.
      if (left > bytes.length - at) return tooLong(start, left, bytes.length - at, 'items');
      if (frames.length === MAX_CBOR_DEPTH)
        return inFrame(`nesting of at most ${MAX_CBOR_DEPTH}`, 'deeper nesting');
      frames.push({ left, isMap: major === MAP, isKey: major === MAP, keyStart: -1, keyEnd: -1 });
    }
    while (frames.at(-1)?.left === 0) frames.pop();
  } while (frames.length > 0);
  return at === bytes.length ? undefined : fault(at, 'nothing after the item', `${bytes.length - at} bytes`);
}

/** Counts the item at `start`; `end` is the end of its bytes, or of its head if it holds items. */
function countInto(bytes: Uint8Array, frame: Frame, start: number, end: number): CborFault | undefined {
  frame.left -= 1;
  if (!frame.isMap) return undefined;
  const { isKey, keyStart, keyEnd } = frame;
  frame.isKey = !isKey;
  if (!isKey) return undefined;
  frame.keyStart = start;
  frame.keyEnd = end;
  if (keyStart === -1) return undefined;
  const order = compareSpans(bytes, keyStart, keyEnd, start, end);
  if (order < 0) return undefined;
  return order === 0
    ? fault(start, 'each key of a map once', 'a key again')
    : fault(start, 'the keys of a map in the order of their bytes', 'another order');
}

function compareSpans(bytes: Uint8Array, a: number, aEnd: number, b: number, bEnd: number): number {
  const length = Math.min(aEnd - a, bEnd - b);
  for (let i = 0; i < length; i += 1) {
    const difference = (bytes[a + i] as number) - (bytes[b + i] as number);
    if (difference !== 0) return difference;
  }
  return aEnd - a - (bEnd - b);
}

function readHead(view: DataView, at: number): Head | CborFault {
  if (at >= view.byteLength) return fault(at, 'an item', 'the end of the bytes');
  const initial = view.getUint8(at);
  const major = initial >> 5;
  const info = initial & 0x1f;
  if (major > TAG) {
    const isKnown = info >= FALSE && info <= NULL;
    return isKnown
      ? { major, argument: info, end: at + 1 }
      : fault(at, 'false, true or null', nameSimple(info));
  }
  if (info <= MAX_IMMEDIATE) return { major, argument: info, end: at + 1 };
  if (info === INDEFINITE) return fault(at, 'a definite length', 'an indefinite one');
  const width = 1 << (info - MAX_IMMEDIATE - 1);
  if (width > 8) return fault(at, 'a head of RFC 8949', 'a reserved one');
  if (at + 1 + width > view.byteLength) return fault(at, 'an item', 'the end of the bytes');
  const argument = readArgument(view, at + 1, width);
  if (argument === undefined) {
    const isNumber = major === UNSIGNED || major === NEGATIVE;
    return fault(at, `${isNumber ? 'an integer' : 'a length'} of at most 2^53 - 1`, 'a larger one');
  }
  const shortest = width === 1 ? MAX_IMMEDIATE + 1 : 2 ** (4 * width);
  if (argument < shortest) return fault(at, 'a head as short as it can be', 'a longer one');
  if (major === NEGATIVE && argument >= Number.MAX_SAFE_INTEGER)
    return fault(at, 'an integer of at least -(2^53 - 1)', 'a smaller one');
  return { major, argument, end: at + 1 + width };
}

function readArgument(view: DataView, at: number, width: number): number | undefined {
  if (width === 1) return view.getUint8(at);
  if (width === 2) return view.getUint16(at);
  if (width === 4) return view.getUint32(at);
  const upper = view.getUint32(at);
  return upper > MAX_UPPER ? undefined : upper * 0x1_0000_0000 + view.getUint32(at + 4);
}

function nameSimple(info: number): string {
  if (info >= 25 && info <= 27) return 'a float';
  if (info === 23) return 'undefined';
  return info === INDEFINITE ? 'a break' : 'another simple value';
}

function tooLong(offset: number, length: number, left: number, what: string): CborFault {
  return fault(offset, 'a length that the bytes have', `${length} ${what}, with ${left} bytes left`);
}

function fault(offset: number, expected: string, actual: string): CborFault {
  return { code: 'CBOR_MALFORMED', expected, actual, offset };
}
