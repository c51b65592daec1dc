/**
 * Values packed into bytes. Numbers are in groups of 7 bits, the last of them below 128; texts and integers have their lengths before them.
 * So no packed value is the beginning of another one of the same members.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { encodeBase64url, writeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1, decodeUtf8, encodeUtf8, writeLatin1 } from '../../base/bytes/text.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Rational } from '../../base/value/rational.js';
import { isTimestamp, WHOLE_LENGTH } from '../../base/value/timestamp.js';
import type { Amounts, EventPlace } from '../bounds/grant.js';
import type { Names } from './action-rows.js';

const SHA256 = /^sha-256:([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$/;
const DIGEST_SIZE = 32;
/** Where the pairs of digits of `YYYY-MM-DDThh:mm:ss` are. */
const WHOLE = [0, 2, 5, 8, 11, 14, 17];

/** Packs one value after the other. */
export class Writer {
  readonly #names: Names;
  readonly #id = allocateBytes(DIGEST_SIZE);
  #bytes = new Uint8Array(512);
  #length = 0;

  /** @param names - Shared by all that is read again. */
  constructor(names: Names) {
    this.#names = names;
  }

  get length(): number {
    return this.#length;
  }

  /** What was written since {@link Writer.begin}, until the next of it. */
  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  begin(): void {
    this.#length = 0;
  }

  /** What was written, one byte per character. */
  end(): string {
    return decodeLatin1(this.#bytes, 0, this.#length);
  }

  number(value: number): void {
    this.#reserve(8);
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.#bytes[this.#length++] = 0x80 | (rest % 0x80);
    this.#bytes[this.#length++] = rest;
  }

  text(text: string): void {
    const bytes = encodeUtf8(text);
    this.number(bytes.length);
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  /** A text that is shared if it can be. */
  name(text: string): void {
    const number = this.#names.numberOf(text);
    this.number(number + 1);
    if (number === -1) this.text(text);
  }

  /** Exactly 32 bytes as base64url. */
  id(b64: string): void {
    this.#reserve(DIGEST_SIZE);
    writeBase64url(this.#id, b64);
    this.#bytes.set(this.#id, this.#length);
    this.#length += DIGEST_SIZE;
  }

  /** A digest as text, usually SHA-256. */
  digest(text: string | undefined): void {
    const [, b64] = text === undefined ? [] : (SHA256.exec(text) ?? []);
    this.number(text === undefined ? 0 : b64 === undefined ? 1 : 2);
    if (b64 !== undefined) this.id(b64);
    else if (text !== undefined) this.text(text);
  }

  /** A timestamp of SPEC §2, in up to 13 bytes; any other text as it is. */
  time(text: string | undefined): void {
    const isPacked = text !== undefined && isTimestamp(text);
    const fraction = isPacked ? text.slice(WHOLE_LENGTH + 1, -1) : '';
    this.number(text === undefined ? 0 : isPacked ? 2 + fraction.length : 1);
    if (isPacked) {
      this.number(Number(WHOLE.reduce((digits, at) => digits + text.slice(at, at + 2), '')));
      if (fraction !== '') this.number(Number(fraction));
    } else if (text !== undefined) this.text(text);
  }

  /** Of at least 0. */
  integer(value: bigint): void {
    const isSmall = value < 0x8000_0000n;
    this.number(isSmall ? Number(value) * 2 : 1);
    if (!isSmall) this.text(value.toString(36));
  }

  amounts(amounts: Amounts): void {
    this.number(amounts.size);
    for (const [unit, { n, d }] of amounts) {
      this.name(unit);
      this.integer(n);
      this.integer(d);
    }
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = new Uint8Array((this.#length + count) * 2);
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

/** Reads what a {@link Writer} with the same names has written. */
export class Reader {
  readonly #names: Names;
  #bytes: Uint8Array;
  #at: number;

  constructor(names: Names, bytes: Uint8Array = new Uint8Array(), at = 0) {
    this.#names = names;
    this.#bytes = bytes;
    this.#at = at;
  }

  /** One of {@link Writer.end}. */
  static of(names: Names, packed: string): Reader {
    const bytes = new Uint8Array(packed.length);
    writeLatin1(bytes, packed, 0);
    return new Reader(names, bytes);
  }

  number(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 0x80) {
      const byte = this.#bytes[this.#at++] as number;
      value += (byte % 0x80) * factor;
      if (byte < 0x80) return value;
    }
  }

  text(): string {
    return decodeUtf8(this.#take(this.number()));
  }

  name(): string {
    const number = this.number();
    return number === 0 ? this.text() : this.#names.at(number - 1);
  }

  id(): string {
    return encodeBase64url(this.#take(DIGEST_SIZE));
  }

  digest(): string | undefined {
    const kind = this.number();
    if (kind === 0) return undefined;
    return kind === 1 ? this.text() : toDigestText(this.id());
  }

  time(): string | undefined {
    const kind = this.number();
    if (kind === 0) return undefined;
    if (kind === 1) return this.text();
    const digits = String(this.number()).padStart(2 * WHOLE.length, '0');
    const part = (at: number): string => digits.slice(at, at + 2);
    const whole = `${digits.slice(0, 4)}-${part(4)}-${part(6)}T${part(8)}:${part(10)}:${part(12)}`;
    return kind === 2 ? `${whole}Z` : `${whole}.${String(this.number()).padStart(kind - 2, '0')}Z`;
  }

  integer(): bigint {
    const value = this.number();
    return value % 2 === 0 ? BigInt(value / 2) : parseDigits(this.text());
  }

  amounts(): Map<string, Rational> {
    const amounts = new Map<string, Rational>();
    for (let rest = this.number(); rest > 0; rest -= 1)
      amounts.set(this.name(), { n: this.integer(), d: this.integer() });
    return amounts;
  }

  #take(length: number): Uint8Array {
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }
}

function parseDigits(text: string): bigint {
  let value = 0n;
  for (const digit of text) value = value * 36n + BigInt(Number.parseInt(digit, 36));
  return value;
}

/** A place without its id. */
export function writePlace(writer: Writer, { file, line, seq }: EventPlace): void {
  writer.name(file);
  writer.number(line);
  writer.number(seq);
}

/** @param eventId - `sha-256:…` */
export function readPlace(reader: Reader, eventId: string): EventPlace {
  return { file: reader.name(), line: reader.number(), seq: reader.number(), eventId };
}
