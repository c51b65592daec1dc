/**
 * Canonical JSON of values (SPEC §1: RFC 8785 over RFC 7493). `plain-writer.ts` is the fast path; the rules are here. The `canonicalize`
 * package serialises. What it would let pass (undefined members, methods, sparse arrays, `toJSON`, unsafe integers) a guard refuses,
 * with its place, by copying plain JSON only. Nothing is dropped or converted: parsing the bytes gives the same value.
 */

import canonicalize from 'canonicalize';
import { decodeUtf8 } from '../bytes/text.js';
import { NorthrootError } from '../error.js';
import { PlainWriter, NOT_PLAIN } from './plain-writer.js';
import { jsonPointer } from './pointer.js';
import { MAX_DEPTH } from './scan.js';
import type { JsonObject, JsonValue } from './value.js';

/**
 * The canonical text of a plain JSON value: null, booleans, strings, numbers, arrays, objects whose prototype is
 * Object.prototype or null. Reads each member once and calls no code of the value.
 *
 * @throws NorthrootError LONE_SURROGATE, NON_FINITE_NUMBER, NEGATIVE_ZERO, UNSAFE_INTEGER, NESTING_TOO_DEEP (more than
 *   64 levels), with the JSON Pointer in the message
 * @throws TypeError for undefined, functions, symbols, bigints, class instances, accessors, non-enumerable members, sparse
 *   arrays, arrays with other members, cycles
 */
export function canonicalText(value: unknown): string {
  const written = writer.use(() => (writer.value(value, 0) ? decodeUtf8(writer.bytes) : NOT_PLAIN));
  return written === NOT_PLAIN ? canonicalTextOfAny(value) : written;
}

/** {@link canonicalText} as UTF-8, with the same errors. */
export function canonicalBytes(value: unknown): Uint8Array {
  const written = writer.use(() => (writer.value(value, 0) ? new Uint8Array(writer.bytes) : NOT_PLAIN));
  return written === NOT_PLAIN ? new TextEncoder().encode(canonicalTextOfAny(value)) : written;
}

const writer = new PlainWriter();

/** The definition of {@link canonicalText}, without the fast path. */
export function canonicalTextOfAny(value: unknown): string {
  return canonicalize(copyPlain(value, [], []))!;
}

type Path = (string | number)[];

/** Recursion is bounded by {@link MAX_DEPTH}. `open` are the containers on `path`. */
function copyPlain(value: unknown, path: Path, open: object[]): JsonValue {
  switch (typeof value) {
    case 'boolean':
      return value;
    case 'string':
      return checkString(value, path);
    case 'number':
      return checkNumber(value, path);
    case 'object':
      break;
    default:
      throw notJson(path, `found ${value === undefined ? 'undefined' : `a ${typeof value}`}`);
  }
  if (value === null) return null;
  if (open.includes(value)) throw notJson(path, 'found a cycle');
  if (open.length === MAX_DEPTH)
    throw refusal('NESTING_TOO_DEEP', path, `at most ${MAX_DEPTH} levels of nesting`, 'more');
  open.push(value);
  const copy = Array.isArray(value) ? copyArray(value, path, open) : copyObject(value, path, open);
  open.pop();
  return copy;
}

function copyArray(array: unknown[], path: Path, open: object[]): JsonValue[] {
  if (Object.getPrototypeOf(array) !== Array.prototype) throw notJson(path, 'found an array of a class');
  const { length } = array;
  const copy: JsonValue[] = [];
  if ('toJSON' in copy) throw notJson(path, 'found that Array.prototype has a member toJSON');
  for (let index = 0; index < length; index++) {
    path.push(index);
    copy.push(copyPlain(readMember(array, index, path), path, open));
    path.pop();
  }
  // The own keys of an array are its elements and `length`.
  if (Reflect.ownKeys(array).length !== length + 1)
    throw notJson(path, 'found an array with further members');
  return copy;
}

function copyObject(object: object, path: Path, open: object[]): JsonObject {
  const prototype: unknown = Object.getPrototypeOf(object);
  if (prototype !== Object.prototype && prototype !== null)
    throw notJson(path, 'found an instance of a class');
  // Without a prototype `__proto__` is a plain member, and no `toJSON` is inherited.
  const copy = Object.create(null) as JsonObject;
  for (const key of Reflect.ownKeys(object)) {
    if (typeof key === 'symbol') throw notJson(path, 'found a symbol as a key');
    path.push(key);
    copy[checkString(key, path)] = copyPlain(readMember(object, key, path), path, open);
    path.pop();
  }
  return copy;
}

function readMember(container: object, key: string | number, path: Path): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(container, key);
  if (descriptor === undefined) throw notJson(path, 'found a hole in an array');
  if (descriptor.get !== undefined || descriptor.set !== undefined) throw notJson(path, 'found an accessor');
  if (descriptor.enumerable !== true) throw notJson(path, 'found a member that is not enumerable');
  return descriptor.value;
}

function checkString(text: string, path: Path): string {
  const at = text.search(/\p{Surrogate}/u);
  if (at >= 0) {
    const unit = text.charCodeAt(at).toString(16);
    throw refusal('LONE_SURROGATE', path, 'surrogates in pairs only', `\\u${unit} at index ${at}`);
  }
  return text;
}

function checkNumber(value: number, path: Path): number {
  if (!Number.isFinite(value)) throw refusal('NON_FINITE_NUMBER', path, 'a finite number', String(value));
  if (Object.is(value, -0)) throw refusal('NEGATIVE_ZERO', path, '0 without a sign', '-0');
  if (Number.isInteger(value) && !Number.isSafeInteger(value) && !String(value).includes('e'))
    throw refusal('UNSAFE_INTEGER', path, 'an integer within ±(2^53−1)', String(value));
  return value;
}

function notJson(path: Path, found: string): TypeError {
  return new TypeError(`expected plain JSON at ${placeOf(path)}, ${found}`);
}

function refusal(code: string, path: Path, expected: string, found: string): NorthrootError {
  return new NorthrootError(code, `expected ${expected} at ${placeOf(path)}, found ${found}`);
}

function placeOf(path: Path): string {
  return path.length === 0 ? 'the top' : JSON.stringify(jsonPointer(path));
}
