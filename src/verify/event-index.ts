/** Where each event of the ledger stands and what it is, by its id: what links between events are resolved against. */

import { encodeBase64url } from '../bytes/encoding.js';
import { IdIndex } from '../ledger/id-index.js';
import { fromDigestText, toDigestText } from '../value/digest.js';
import { isNamed, type RecordName } from '../value/record-name.js';
import { ByteColumn, CountingColumn, SparseColumn, type CountingPiece } from './columns.js';

/**
 * What links need to know of an event's type. `spent` is an allowed action that was executed, `malformed` an authorization that
 * is not well-formed.
 */
export type EventKind = 'other' | 'grant' | 'action' | 'spent' | 'malformed' | 'execution';

/** An event's position. `seq` is the record's own, or its ordinal where it has none. */
export interface EventPosition {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
}

/** What the index knows of one event. */
export interface IndexedEvent extends EventPosition {
  readonly kind: EventKind;
  /** Of a spent action and of an execution: the number of the grant that it counts under; -1 for none. */
  readonly grant: number;
}

/** An event that a name may mean. */
export interface EventMatch {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly kind: EventKind;
}

/** What the rules ask and tell of events. Ids are base64url. */
export interface EventTable {
  readonly size: number;
  find(id: string): IndexedEvent | undefined;
  /** Adds an event that {@link EventTable.find} does not find. Files come in order. */
  add(id: string, position: EventPosition, kind?: EventKind, grant?: number): void;
  /** Marks an action as executed, under the grant of this number (-1: none). */
  spend(id: string, grant: number): void;
  /** Those that are meant, in the order of the ledger; undefined where that takes {@link EventTable.match}. */
  matchNow(name: RecordName): readonly EventMatch[] | undefined;
  /** Those that are meant, in the order of the ledger; undefined where they are `limit` or more. */
  match(name: RecordName, limit?: number): Promise<readonly EventMatch[] | undefined>;
}

/** The index as plain data: ids, and the pieces of its columns. */
export interface EventIndexData {
  readonly ids: Uint32Array;
  readonly lines: readonly CountingPiece[];
  readonly seqs: readonly CountingPiece[];
  readonly kinds: readonly Uint8Array[];
  readonly grants: readonly (Uint8Array | Int32Array | undefined)[];
  /** The files, and of each the number of its first event. */
  readonly names: readonly string[];
  readonly begins: readonly number[];
}

const KINDS: readonly EventKind[] = ['other', 'grant', 'action', 'spent', 'malformed', 'execution'];

/** Ids of 43 characters of base64url to positions, in typed arrays: some 45 bytes an event. */
export class EventIndex implements EventTable {
  readonly #ids: IdIndex;
  readonly #lines = new CountingColumn();
  readonly #seqs = new CountingColumn();
  readonly #kinds = new ByteColumn();
  readonly #grants = new SparseColumn();
  readonly #names: string[] = [];
  /** Of each file the number of its first event. */
  readonly #begins: number[] = [];

  /** An empty index, or one as {@link EventIndex.save} gave it. */
  constructor(data?: EventIndexData) {
    this.#ids = new IdIndex(data?.ids);
    if (data === undefined) return;
    this.#lines.restore(data.lines, this.size);
    this.#seqs.restore(data.seqs, this.size);
    this.#kinds.restore(data.kinds);
    this.#grants.restore(data.grants);
    for (const name of data.names) this.#names.push(name);
    for (const begin of data.begins) this.#begins.push(begin);
  }

  get size(): number {
    return this.#ids.size;
  }

  find(id: string): IndexedEvent | undefined {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) return undefined;
    return {
      file: this.#names[this.#fileOf(ordinal)] as string,
      line: this.#lines.at(ordinal),
      seq: this.#seqs.at(ordinal),
      kind: KINDS[this.#kinds.at(ordinal)] as EventKind,
      grant: this.#grants.at(ordinal),
    };
  }

  add(id: string, position: EventPosition, kind: EventKind = 'other', grant = -1): void {
    this.#push(this.#ids.add(id), position, KINDS.indexOf(kind), grant);
  }

  spend(id: string, grant: number): void {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) throw new RangeError('the event is not in the index');
    this.#kinds.set(ordinal, KINDS.indexOf('spent'));
    this.#grants.set(ordinal, grant);
  }

  match(name: RecordName, limit = Infinity): Promise<readonly EventMatch[] | undefined> {
    const matches = this.matchNow(name);
    return Promise.resolve(matches.length < limit ? matches : undefined);
  }

  matchNow(name: RecordName): readonly EventMatch[] {
    if (!('eventId' in name)) return [...this.#entries()].filter((event) => isNamed(event, name));
    const event = this.find(fromDigestText(name.eventId));
    return event === undefined ? [] : [{ seq: event.seq, eventId: name.eventId, kind: event.kind }];
  }

  /** Every event in the order of the ledger. */
  *#entries(): Generator<EventMatch> {
    for (let ordinal = 0; ordinal < this.size; ordinal += 1) {
      const eventId = toDigestText(encodeBase64url(this.#ids.at(ordinal)));
      const kind = KINDS[this.#kinds.at(ordinal)] as EventKind;
      yield { seq: this.#seqs.at(ordinal), eventId, kind };
    }
  }

  save(): EventIndexData {
    return {
      ids: this.#ids.save(),
      lines: this.#lines.save(),
      seqs: this.#seqs.save(),
      kinds: this.#kinds.save(),
      grants: this.#grants.save(),
      names: [...this.#names],
      begins: [...this.#begins],
    };
  }

  #push(ordinal: number, { file, line, seq }: EventPosition, kind: number, grant: number): void {
    if (this.#names.at(-1) !== file) {
      this.#names.push(file);
      this.#begins.push(ordinal);
    }
    this.#lines.push(line);
    this.#seqs.push(seq);
    this.#kinds.set(ordinal, kind);
    this.#grants.set(ordinal, grant);
  }

  /** The number of the last file that begins at or before an event. */
  #fileOf(ordinal: number): number {
    let low = 0;
    let high = this.#begins.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#begins[middle] as number) <= ordinal) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}
