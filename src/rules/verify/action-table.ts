/**
 * The actions of a state in memory, each packed into a text of one byte per character: about 250 bytes with its id and table entry. Repeated
 * names are shared. An unpacked action equals the one that was set, but may be another object. The fast path keeps its actions in rows
 * instead (`action-rows.ts`), where it compares them.
 */

import { decodeLatin1, encodeLatin1 } from '../../base/bytes/text.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Action, Grant } from '../bounds/grant.js';
import { ActionRows, Names, RowColumn } from './action-rows.js';
import type { GrantTable } from './grant-table.js';
import { Reader, Writer } from './packing.js';
import type { Table } from './table.js';

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
  /** How many are open under the root grant with this number. The first call reads all. Over an index only after `load`. */
  countUnder(root: number): number;
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
  readonly #writer = new Writer(this.#names);
  /** The rows of the actions that {@link ActionTable.place} added. */
  readonly rows = new ActionRows(this.#names);
  #numberOf: (id: string) => number = () => -1;
  /** What was set or unpacked last: an action is asked about several times in a row. */
  #last: { readonly id: string; readonly packed: string; readonly action: Action } | undefined;
  /** What was read last of a row, likewise. */
  #lastRead: { readonly row: number; readonly action: Action } | undefined;
  /** The open ones by the number of their root grant, once somebody asked. */
  #under: Map<number, number> | undefined;

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
    this.#uncount(id);
    this.remove(this.#numberOf(id));
    this.#count(action.decision === 'allow' ? action.grant : undefined, 1);
    // A copy: a slice would keep the longer text alive.
    const own = decodeLatin1(encodeLatin1(id));
    this.#packed.set(own, packed);
    this.#last = { id: own, packed, action };
  }

  delete(id: string): boolean {
    this.#uncount(id);
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
      if (this.#unpackHead(id, this.#open(packed)).decision === 'allow') count += 1;
    return count;
  }

  countUnder(root: number): number {
    if (this.#under === undefined) {
      this.#under = new Map();
      for (const { decision, grant } of this.values()) if (decision === 'allow') this.#count(grant, 1);
    }
    return this.#under.get(root) ?? 0;
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
        const { decision, place, toolName } = this.#unpackHead(id, this.#open(packed));
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
    else this.#countRow(row, 1);
  }

  /** Removes the action with this number; false where it has no row. */
  remove(number: number): boolean {
    const row = this.#placed.at(number);
    if (row === -1) return false;
    this.#placed.remove(number);
    if (this.rows.isDenied(row)) this.#denied -= 1;
    else this.#countRow(row, -1);
    this.rows.free(row);
    this.#lastRead = undefined;
    return true;
  }

  clear(): void {
    for (const [, row] of this.#placed.entries()) this.rows.free(row);
    this.#placed = new RowColumn();
    this.#lastRead = undefined;
    this.#denied = 0;
    this.#packed.clear();
    this.#under = undefined;
  }

  /** Before a packed action is replaced or removed. */
  #uncount(id: string): void {
    if (this.#under === undefined) return;
    const packed = this.#packed.get(id);
    if (packed === undefined) return;
    const { decision, grant } = this.#recall(id, packed);
    if (decision === 'allow') this.#count(grant, -1);
  }

  #countRow(row: number, by: 1 | -1): void {
    if (this.#under === undefined) return;
    const grant = this.rows.grant(row);
    this.#count(grant === -1 ? undefined : this.#grants.at(grant), by);
  }

  #count(grant: Grant | undefined, by: 1 | -1): void {
    if (this.#under === undefined || grant === undefined) return;
    const count = (this.#under.get(grant.rootIndex) ?? 0) + by;
    if (count === 0) this.#under.delete(grant.rootIndex);
    else this.#under.set(grant.rootIndex, count);
  }

  #recall(id: string, packed: string): Action {
    if (this.#last?.packed === packed && this.#last.id === id) return this.#last.action;
    const action = this.#unpack(id, packed);
    this.#last = { id, packed, action };
    return action;
  }

  #read(row: number): Action {
    if (this.#lastRead?.row !== row)
      this.#lastRead = { row, action: this.rows.read(row, (index) => this.#grants.at(index)) };
    return this.#lastRead.action;
  }

  #pack(id: string, action: Action): string {
    const { place, decision, principalId, occurredAt, intent, userIntent, grant, toolName, params } = action;
    const { expiresAt = '', system = '' } = action;
    const writer = this.#writer;
    writer.begin();
    writer.name(place.file);
    writer.number(place.line);
    writer.number(place.seq);
    const isOwn = place.eventId === toDigestText(id);
    writer.number((decision === 'allow' ? 1 : 0) + (isOwn ? 0 : 2));
    if (!isOwn) writer.text(place.eventId);
    writer.name(principalId);
    writer.name(toolName);
    writer.text(occurredAt);
    writer.digest(intent);
    writer.digest(userIntent);
    writer.digest(params);
    writer.number(grant === undefined ? 0 : grant.index + 1);
    writer.text(expiresAt);
    writer.text(system);
    writer.amounts(action.reservation);
    return writer.end();
  }

  #open(packed: string): Reader {
    return Reader.of(this.#names, packed);
  }

  /** The first that was packed of an action. */
  #unpackHead(id: string, reader: Reader): Pick<Action, 'place' | 'decision' | 'principalId' | 'toolName'> {
    const file = reader.name();
    const [line, seq, flags] = [reader.number(), reader.number(), reader.number()];
    const place = { file, line, seq, eventId: flags < 2 ? toDigestText(id) : reader.text() };
    const decision = flags % 2 === 1 ? 'allow' : 'deny';
    return { place, decision, principalId: reader.name(), toolName: reader.name() };
  }

  #unpack(id: string, packed: string): Action {
    const reader = this.#open(packed);
    const head = this.#unpackHead(id, reader);
    const occurredAt = reader.text();
    const [intent, userIntent, params] = [
      reader.digest() as string,
      reader.digest(),
      reader.digest() as string,
    ];
    const grant = reader.number();
    const [expiresAt, system] = [reader.text() || undefined, reader.text() || undefined];
    const reservation = reader.amounts();
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
