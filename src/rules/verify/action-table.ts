/**
 * The actions of a state in memory, each packed into a text of one byte per character: about 250 bytes with its id and table entry. Repeated
 * names are shared. An unpacked action equals the one that was set, but may be another object. The fast path keeps its actions in rows
 * instead (`action-rows.ts`), where it compares them.
 */

import { encodeBase64url, writeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1, decodeUtf8, encodeLatin1, encodeUtf8, writeLatin1 } from '../../base/bytes/text.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Rational } from '../../base/value/rational.js';
import type { Action } from '../bounds/grant.js';
import { ActionRows, Names, RowColumn } from './action-rows.js';
import type { GrantTable } from './grant-table.js';
import type { Table } from './table.js';

const SHA256 = /^sha-256:([A-Za-z0-9_-]{42}[AEIMQUYcgkosw048])$/;
const DIGEST_SIZE = 32;

/** An open action in lists. */
export interface OpenAction {
  /** `sha-256:…` */
  readonly eventId: string;
  readonly seq: number;
  readonly toolName: string;
}

/** The open and denied actions of a state. */
export interface Actions extends Table<string, Action> {
  /** How many are open. Reads those that are not in rows. */
  countOpen(): number;
  /** The open actions in ledger order, each made on request. Over an index only after `load`. */
  open(): Iterable<OpenAction>;
  /** Over an index: reads the open actions. */
  load?(): Promise<void>;
}

export class ActionTable implements Actions {
  /** Packed texts by id, in order of insertion. */
  readonly #packed = new Map<string, string>();
  /** Rows by the number of the event. */
  #placed = new RowColumn();
  /** How many of those in rows were denied. */
  #denied = 0;
  readonly #names = new Names();
  readonly #grants: Pick<GrantTable, 'at'>;
  readonly #writer = new Writer();
  /** The rows of the actions that {@link ActionTable.place} added. */
  readonly rows = new ActionRows(this.#names);
  #numberOf: (id: string) => number = () => -1;
  /** What was set or unpacked last: an action is asked about several times in a row. */
  #last: { readonly id: string; readonly packed: string; readonly action: Action } | undefined;

  /** @param grants - The grants that actions name by number. */
  constructor(grants: Pick<GrantTable, 'at'>) {
    this.#grants = grants;
  }

  get size(): number {
    return this.#packed.size + this.#placed.size;
  }

  get(id: string): Action | undefined {
    const packed = this.#packed.get(id);
    if (packed !== undefined) return this.#recall(id, packed);
    const row = this.rowOf(this.#numberOf(id));
    return row === -1 ? undefined : this.#read(row);
  }

  has(id: string): boolean {
    return this.#packed.has(id) || this.rowOf(this.#numberOf(id)) !== -1;
  }

  set(id: string, action: Action): void {
    const packed = this.#pack(id, action);
    this.remove(this.#numberOf(id));
    // A copy: a slice would keep the longer text alive.
    const own = decodeLatin1(encodeLatin1(id));
    this.#packed.set(own, packed);
    this.#last = { id: own, packed, action };
  }

  delete(id: string): boolean {
    return this.#packed.delete(id) || this.remove(this.#numberOf(id));
  }

  /** In ledger order. */
  values(): Generator<Action, void, void> {
    return this.#inOrder(
      (row) => this.#read(row),
      (id, packed) => this.#unpack(id, packed),
    );
  }

  countOpen(): number {
    let count = this.#placed.size - this.#denied;
    for (const [id, packed] of this.#packed)
      if (this.#unpackHead(id, new Reader(packed)).decision === 'allow') count += 1;
    return count;
  }

  *open(): Generator<OpenAction, void, void> {
    const listed = this.#inOrder(
      (row): OpenAction | undefined =>
        this.rows.isDenied(row)
          ? undefined
          : {
              eventId: this.rows.eventId(row),
              seq: this.rows.seq(row),
              toolName: this.rows.toolName(row),
            },
      (id, packed): OpenAction | undefined => {
        const { decision, place, toolName } = this.#unpackHead(id, new Reader(packed));
        return decision === 'allow' ? { eventId: place.eventId, seq: place.seq, toolName } : undefined;
      },
    );
    for (const each of listed) if (each !== undefined) yield each;
  }

  /** Maps each action, in ledger order. */
  *#inOrder<T>(
    ofRow: (row: number) => T,
    ofPacked: (id: string, packed: string) => T,
  ): Generator<T, void, void> {
    const placed = this.#placed.entries();
    let next = placed.next();
    for (const [id, packed] of this.#packed) {
      const number = next.done === true ? -1 : this.#numberOf(id);
      for (; next.done !== true && next.value[0] < number; next = placed.next()) yield ofRow(next.value[1]);
      yield ofPacked(id, packed);
    }
    for (; next.done !== true; next = placed.next()) yield ofRow(next.value[1]);
  }

  /** Allows {@link ActionTable.place}. @param numberOf - The number of the event of an id; -1 for none. */
  number(numberOf: (id: string) => number): void {
    this.#numberOf = numberOf;
  }

  /** The row of the action with this number; -1 for none. */
  rowOf(number: number): number {
    return this.#placed.at(number);
  }

  /** Adds a new action that is in a row. */
  place(number: number, row: number): void {
    this.#placed.set(number, row);
    if (this.rows.isDenied(row)) this.#denied += 1;
  }

  /** Removes the action with this number; false where it has no row. */
  remove(number: number): boolean {
    const row = this.#placed.at(number);
    if (row === -1) return false;
    this.#placed.remove(number);
    if (this.rows.isDenied(row)) this.#denied -= 1;
    this.rows.free(row);
    return true;
  }

  /** Clears the table. */
  clear(): void {
    for (const [, row] of this.#placed.entries()) this.rows.free(row);
    this.#placed = new RowColumn();
    this.#denied = 0;
    this.#packed.clear();
  }

  #recall(id: string, packed: string): Action {
    if (this.#last?.packed === packed && this.#last.id === id) return this.#last.action;
    const action = this.#unpack(id, packed);
    this.#last = { id, packed, action };
    return action;
  }

  #read(row: number): Action {
    return this.rows.read(row, (index) => this.#grants.at(index));
  }

  #pack(id: string, action: Action): string {
    const { place, decision, principalId, occurredAt, intent, userIntent, grant, toolName, params } = action;
    const { expiresAt = '', system = '' } = action;
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
    writer.text(expiresAt);
    writer.text(system);
    for (const [unit, { n, d }] of action.reservation) {
      name(unit);
      writer.integer(n);
      writer.integer(d);
    }
    return writer.end();
  }

  #unpackName(reader: Reader): string {
    const number = reader.number();
    return number === 0 ? reader.text() : this.#names.at(number - 1);
  }

  /** The first that was packed of an action. */
  #unpackHead(id: string, reader: Reader): Pick<Action, 'place' | 'decision' | 'principalId' | 'toolName'> {
    const file = this.#unpackName(reader);
    const [line, seq, flags] = [reader.number(), reader.number(), reader.number()];
    const place = { file, line, seq, eventId: flags < 2 ? toDigestText(id) : reader.text() };
    const decision = flags % 2 === 1 ? 'allow' : 'deny';
    return { place, decision, principalId: this.#unpackName(reader), toolName: this.#unpackName(reader) };
  }

  #unpack(id: string, packed: string): Action {
    const reader = new Reader(packed);
    const head = this.#unpackHead(id, reader);
    const digest = (): string | undefined => {
      const kind = reader.number();
      if (kind === 0) return undefined;
      return kind === 1 ? reader.text() : toDigestText(reader.digest());
    };
    const occurredAt = reader.text();
    const [intent, userIntent, params] = [digest() as string, digest(), digest() as string];
    const grant = reader.number();
    const [expiresAt, system] = [reader.text() || undefined, reader.text() || undefined];
    const reservation = new Map<string, Rational>();
    while (!reader.isAtEnd)
      reservation.set(this.#unpackName(reader), { n: reader.integer(), d: reader.integer() });
    return {
      ...head,
      occurredAt,
      intent,
      userIntent,
      grant: grant === 0 ? undefined : this.#grants.at(grant - 1),
      params,
      reservation,
      expiresAt,
      system,
    };
  }
}

/** Numbers in groups of 7 bits, the last of them below 128; texts and integers with their lengths before them. */
class Writer {
  #bytes = new Uint8Array(512);
  #length = 0;

  begin(): void {
    this.#length = 0;
  }

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

  constructor(packed: string) {
    this.#bytes = new Uint8Array(packed.length);
    writeLatin1(this.#bytes, packed, 0);
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
