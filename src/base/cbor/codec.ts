/**
 * Deterministic CBOR (RFC 8949 §4.2.1) over cbor-x, which is lax: it writes integers beyond 32 bits as floats and keys unsorted, and
 * reads duplicate keys, indefinite lengths, NaN and invalid UTF-8. So values are normalised before encoding, and outside bytes pass
 * `scan.ts`, are decoded, and must encode to the same bytes. The build without `eval` serves pages with a strict content security policy.
 */

import { equalBytes } from '../bytes/compare.js';
import { NorthrootError } from '../error.js';
import { fail, type Result, succeed } from '../fault.js';
import { Decoder, Encoder, Tag } from './cbor-x.js';
import { scanCbor } from './scan.js';
import { type CborFault, type CborKey, type CborMap, type CborValue, TaggedCbor } from './value.js';

const OPTIONS = {
  useRecords: false,
  mapsAsObjects: false,
  variableMapSize: true,
  tagUint8Array: false,
  structuredClone: false,
} as const;

// Made on first use: few programs need them.
let encoder: Encoder | undefined;
let decoder: Decoder | undefined;

/** cbor-x writes larger numbers as floats unless they are bigints. */
const MAX_UINT32 = 0xffff_ffff;

const NO_TAGS: ReadonlySet<number> = new Set();

/**
 * Encodes a value.
 *
 * @throws TypeError for what the profile lacks: floats, lone surrogates, `undefined`, objects of other classes
 */
export function encodeCbor(value: CborValue): Uint8Array {
  return new Uint8Array(encode(toPlain(value)));
}

/** In the encoder's own memory, which the next call overwrites. */
function encode(plain: unknown): Uint8Array {
  return (encoder ??= new Encoder(OPTIONS)).encode(plain);
}

/**
 * Decodes exactly one item. Byte strings are views of `bytes`.
 *
 * @param tags - The tags allowed in it. Default: none.
 */
export function decodeCbor(
  bytes: Uint8Array,
  tags: ReadonlySet<number> = NO_TAGS,
): Result<CborValue, CborFault> {
  const fault = scanCbor(bytes, tags);
  if (fault !== undefined) return fail(fault);
  const value = fromPlain((decoder ??= new Decoder(OPTIONS)).decode(bytes));
  if (equalBytes(encode(toPlain(value)), bytes)) return succeed(value);
  return fail({
    code: 'CBOR_MALFORMED',
    expected: 'deterministic CBOR',
    actual: 'bytes that would be encoded otherwise',
    offset: 0,
  });
}

/** @throws NorthrootError `CBOR_MALFORMED` */
export function parseCbor(bytes: Uint8Array, tags?: ReadonlySet<number>): CborValue {
  const decoded = decodeCbor(bytes, tags);
  if (decoded.ok) return decoded.value;
  const { code, expected, actual, offset } = decoded.fault;
  throw new NorthrootError(code, `expected ${expected}, found ${actual} at byte ${offset} of the CBOR`);
}

/** The form of a value that cbor-x encodes correctly. */
function toPlain(value: CborValue): unknown {
  switch (typeof value) {
    case 'number':
      if (!Number.isSafeInteger(value)) throw new TypeError('expected a safe integer in CBOR');
      return value > MAX_UINT32 || value < -MAX_UINT32 - 1 ? BigInt(value) : value;
    case 'string':
      if (/\p{Cs}/u.test(value)) throw new TypeError('expected text without lone surrogates in CBOR');
      return value;
    case 'boolean':
      return value;
    default:
      if (value === null || value instanceof Uint8Array) return value;
      if (value instanceof TaggedCbor) return new Tag(toPlain(value.value), value.tag);
      if (value instanceof Map) return toSortedMap(value as CborMap);
      if (Array.isArray(value)) return (value as readonly CborValue[]).map(toPlain);
      throw new TypeError('expected a value of CBOR without floats and undefined');
  }
}

function toSortedMap(map: CborMap): Map<unknown, unknown> {
  const entries = [...map].map(([key, value]) => {
    if (typeof key !== 'number' && typeof key !== 'string')
      throw new TypeError('expected integers and texts as keys in CBOR');
    const plain = toPlain(key);
    return { key: plain, bytes: new Uint8Array(encode(plain)), value: toPlain(value) };
  });
  entries.sort((a, b) => compareBytes(a.bytes, b.bytes));
  return new Map(entries.map(({ key, value }) => [key, value]));
}

/** What cbor-x decoded, as northroot's types. */
function fromPlain(plain: unknown): CborValue {
  if (typeof plain === 'bigint') return Number(plain);
  if (plain instanceof Uint8Array) return new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength);
  if (plain instanceof Tag) return new TaggedCbor(plain.tag, fromPlain(plain.value));
  if (plain instanceof Map) {
    const entries = [...(plain as ReadonlyMap<unknown, unknown>)];
    return new Map(entries.map(([key, value]) => [fromPlain(key) as CborKey, fromPlain(value)]));
  }
  if (!Array.isArray(plain)) return plain as string | number | boolean | null;
  // In place, so that items are freed on the way: there may be millions.
  const items: unknown[] = plain;
  for (let i = 0; i < items.length; i += 1) items[i] = fromPlain(items[i]);
  return items as CborValue[];
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
