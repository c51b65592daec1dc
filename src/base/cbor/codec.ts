/**
 * Deterministic CBOR (RFC 8949 §4.2.1), written and read by cbor-x. That library is lax and, by itself, not deterministic: it writes
 * integers beyond 32 bits as floats and keys as they come, and reads duplicate keys, indefinite lengths, NaN and texts that are not
 * UTF-8. So what goes in is put in order first, what comes from outside passes `scan.ts` before it is decoded, and is encoded
 * again and must be the same bytes.
 *
 * Its build without `eval` is used everywhere, as a page with a strict content security policy needs it.
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

// Made when they are asked for: few programs do.
let encoder: Encoder | undefined;
let decoder: Decoder | undefined;

/** What larger numbers are written as floats without. */
const MAX_UINT32 = 0xffff_ffff;

const NO_TAGS: ReadonlySet<number> = new Set();

/**
 * The one encoding of a value.
 *
 * @throws TypeError for what the profile does not have: floats, lone surrogates, `undefined`, objects of other classes
 */
export function encodeCbor(value: CborValue): Uint8Array {
  // What the encoder returns is a part of its own memory.
  return new Uint8Array((encoder ??= new Encoder(OPTIONS)).encode(toPlain(value)));
}

/** What decoding CBOR gives. */
export type CborDecoded = Result<CborValue, CborFault>;

/**
 * Decodes one item, and nothing after it. Byte strings are views of `bytes`.
 *
 * @param tags - The tags that may stand in it. Default: none.
 */
export function decodeCbor(bytes: Uint8Array, tags: ReadonlySet<number> = NO_TAGS): CborDecoded {
  const fault = scanCbor(bytes, tags);
  if (fault !== undefined) return fail(fault);
  const value = fromPlain((decoder ??= new Decoder(OPTIONS)).decode(bytes));
  if (equalBytes((encoder ??= new Encoder(OPTIONS)).encode(toPlain(value)), bytes)) return succeed(value);
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

/** A value as cbor-x writes it as it should. */
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
    return {
      key: plain,
      bytes: new Uint8Array((encoder ??= new Encoder(OPTIONS)).encode(plain)),
      value: toPlain(value),
    };
  });
  entries.sort((a, b) => compareBytes(a.bytes, b.bytes));
  return new Map(entries.map(({ key, value }) => [key, value]));
}

/** What cbor-x read, in the types that northroot has for it on every host. */
function fromPlain(plain: unknown): CborValue {
  if (typeof plain === 'bigint') return Number(plain);
  if (plain instanceof Uint8Array) return new Uint8Array(plain.buffer, plain.byteOffset, plain.byteLength);
  if (plain instanceof Tag) return new TaggedCbor(plain.tag, fromPlain(plain.value));
  if (plain instanceof Map) {
    const entries = [...(plain as ReadonlyMap<unknown, unknown>)];
    return new Map(entries.map(([key, value]) => [fromPlain(key) as CborKey, fromPlain(value)]));
  }
  if (!Array.isArray(plain)) return plain as string | number | boolean | null;
  // In place, so that what was read is let go of as it goes: there may be millions.
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
