/**
 * The actions of a verification in memory: each packed into some 220 bytes with its id and its place in the table. Names that recur are kept once; digests are their bytes. What is unpacked is equal to what was put in, and not the same object.
 */

import type { Action } from '../bounds/grant.js';
import { encodeBase64url, writeBase64url } from '../bytes/encoding.js';
import { decodeUtf8, encodeUtf8 } from '../bytes/text.js';
import { toDigestText } from '../value/digest.js';
import type { Rational } from '../value/rational.js';
import type { GrantTable } from './grant-table.js';
import { PackedTable } from './packed-table.js';
import type { Table } from './table.js';

/** How many names are kept once; further ones stand in each action. */
const MAX_NAMES = 4_096;
/** The longest text that may be one of them. */
const MAX_NAME_LENGTH = 256;
const SHA256 = /^sha-256:([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$/;
const DIGEST_SIZE = 32;

/** See the head of this file. */
export class ActionTable implements Table<string, Action> {
  readonly #packed = new PackedTable();
  readonly #names = new Names();
  readonly #grants: Pick<GrantTable, 'at'>;
  readonly #writer = new Writer();

  /** @param grants - Where the grants stand that actions name by number. */
  constructor(grants: Pick<GrantTable, 'at'>) {
    this.#grants = grants;
  }

  get size(): number {
    return this.#packed.size;
  }

  get(id: string): Action | undefined {
    const packed = this.#packed.get(id);
    return packed === undefined ? undefined : this.#unpack(id, packed);
  }

  has(id: string): boolean {
    return this.#packed.get(id) !== undefined;
  }

  set(id: string, action: Action): void {
    this.#packed.set(id, this.#pack(id, action));
  }

  delete(id: string): boolean {
    return this.#packed.delete(id);
  }

  *values(): Generator<Action, void, void> {
    for (const [id, packed] of this.#packed.entries()) yield this.#unpack(encodeBase64url(id), packed);
  }

  #pack(id: string, action: Action): Uint8Array {
    const { place, decision, principalId, occurredAt, intent, userIntent, grant, toolName, params } = action;
    const writer = this.#writer;
    const name = (text: string): void => {
      const number = this.#names.numberOf(text);
      writer.number(number + 1);
      if (number === -1) writer.text(text);
    };
    const digest = (text: string | undefined): void => {
      const [, b64] = text === undefined ? [] : (SHA256.exec(text) ?? []);
      writer.number(text === undefined ? 0 : b64 === undefined ? 1 : 2);
      if (b64 !== undefined) writer.digest(b64);
      else if (text !== undefined) writer.text(text);
    };
    writer.begin();
    name(place.file);
    writer.number(place.line);
    writer.number(place.seq);
    const isOwn = place.eventId === toDigestText(id);
    writer.number((decision === 'allow' ? 1 : 0) + (isOwn ? 0 : 2));
    if (!isOwn) writer.text(place.eventId);
    name(principalId);
    name(toolName);
    writer.text(occurredAt);
    digest(intent);
    digest(userIntent);
    digest(params);
    writer.number(grant === undefined ? 0 : grant.index + 1);
    for (const [unit, { n, d }] of action.reservation) {
      name(unit);
      writer.integer(n);
      writer.integer(d);
    }
    return writer.end();
  }

  #unpack(id: string, packed: Uint8Array): Action {
    const reader = new Reader(packed);
    const name = (): string => {
      const number = reader.number();
      return number === 0 ? reader.text() : this.#names.at(number - 1);
    };
    const digest = (): string | undefined => {
      const kind = reader.number();
      if (kind === 0) return undefined;
      return kind === 1 ? reader.text() : toDigestText(reader.digest());
    };
    const [file, line, seq, flags] = [name(), reader.number(), reader.number(), reader.number()];
    const place = { file, line, seq, eventId: flags < 2 ? toDigestText(id) : reader.text() };
    const decision = flags % 2 === 1 ? 'allow' : 'deny';
    const [principalId, toolName, occurredAt] = [name(), name(), reader.text()];
    const [intent, userIntent, params] = [digest() as string, digest(), digest() as string];
    const grant = reader.number();
    const reservation = new Map<string, Rational>();
    while (!reader.isAtEnd) reservation.set(name(), { n: reader.integer(), d: reader.integer() });
    return {
      place,
      decision,
      principalId,
      occurredAt,
      intent,
      userIntent,
      grant: grant === 0 ? undefined : this.#grants.at(grant - 1),
      toolName,
      params,
      reservation,
    };
  }
}

/** The first names that are met, by number. */
class Names {
  readonly #numbers = new Map<string, number>();
  readonly #list: string[] = [];

  /** -1 for one that is not kept. */
  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#list.length === MAX_NAMES || text.length > MAX_NAME_LENGTH) return -1;
    this.#numbers.set(text, this.#list.length);
    return this.#list.push(text) - 1;
  }

  at(number: number): string {
    return this.#list[number] as string;
  }
}

/** Numbers in groups of 7 bits, the last of them below 128; texts and integers with their lengths before them. */
class Writer {
  #bytes = new Uint8Array(512);
  #length = 0;

  begin(): void {
    this.#length = 0;
  }

  /** They stand there until the next begins. */
  end(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
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

  digest(b64: string): void {
    this.#reserve(DIGEST_SIZE);
    writeBase64url(this.#bytes.subarray(this.#length, this.#length + DIGEST_SIZE), b64);
    this.#length += DIGEST_SIZE;
  }

  /** Of at least 0. */
  integer(value: bigint): void {
    const isSmall = value < 0x8000_0000n;
    this.number(isSmall ? Number(value) * 2 : 1);
    if (!isSmall) this.text(value.toString(36));
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = new Uint8Array((this.#length + count) * 2);
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(packed: Uint8Array) {
    this.#bytes = packed;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#bytes.length;
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

  digest(): string {
    return encodeBase64url(this.#take(DIGEST_SIZE));
  }

  integer(): bigint {
    const value = this.number();
    return value % 2 === 0 ? BigInt(value / 2) : parseDigits(this.text());
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
