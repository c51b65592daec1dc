/** Where each event of the ledger stands and what it is, by its id: what links between events are resolved against. */

import { encodeBase64url } from '../bytes/encoding.js';
import { IdIndex } from '../ledger/id-index.js';
import { fromDigestText, toDigestText } from '../value/digest.js';
import { isNamed, type RecordName } from '../value/record-name.js';

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

/** The index as plain data. */
export interface EventIndexData {
  readonly ids: Uint32Array;
  readonly lines: Float64Array;
  readonly seqs: Float64Array;
  readonly files: Uint32Array;
  readonly kinds: Uint8Array;
  readonly grants: Int32Array;
  readonly names: readonly string[];
}

const ID_BYTES = 32;
const KINDS: readonly EventKind[] = ['other', 'grant', 'action', 'spent', 'malformed', 'execution'];

/** Ids of 43 characters of base64url to positions, in typed arrays: about 65 bytes an event. */
export class EventIndex implements EventTable {
  readonly #ids: IdIndex;
  #lines: Float64Array;
  #seqs: Float64Array;
  #files: Uint32Array;
  #kinds: Uint8Array;
  #grants: Int32Array;
  readonly #names: string[];

  /** An empty index, or one as {@link EventIndex.save} gave it. */
  constructor(data?: EventIndexData) {
    this.#ids = new IdIndex(data?.ids);
    this.#lines = data?.lines ?? new Float64Array(1024);
    this.#seqs = data?.seqs ?? new Float64Array(1024);
    this.#files = data?.files ?? new Uint32Array(1024);
    this.#kinds = data?.kinds ?? new Uint8Array(1024);
    this.#grants = data?.grants ?? new Int32Array(1024);
    this.#names = [...(data?.names ?? [])];
  }

  get size(): number {
    return this.#ids.size;
  }

  find(id: string): IndexedEvent | undefined {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) return undefined;
    return {
      file: this.#names[this.#files[ordinal] as number] as string,
      line: this.#lines[ordinal] as number,
      seq: this.#seqs[ordinal] as number,
      kind: KINDS[this.#kinds[ordinal] as number] as EventKind,
      grant: this.#grants[ordinal] as number,
    };
  }

  add(id: string, position: EventPosition, kind: EventKind = 'other', grant = -1): void {
    const ordinal = this.#ids.add(id);
    if (ordinal === this.#lines.length) this.#resize(ordinal * 2);
    if (this.#names.at(-1) !== position.file) this.#names.push(position.file);
    this.#files[ordinal] = this.#names.length - 1;
    this.#lines[ordinal] = position.line;
    this.#seqs[ordinal] = position.seq;
    this.#kinds[ordinal] = KINDS.indexOf(kind);
    this.#grants[ordinal] = grant;
  }

  spend(id: string, grant: number): void {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) throw new RangeError('the event is not in the index');
    this.#kinds[ordinal] = KINDS.indexOf('spent');
    this.#grants[ordinal] = grant;
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
    const ids = new Uint8Array(this.#ids.save().buffer);
    for (let ordinal = 0; ordinal < this.size; ordinal += 1) {
      const eventId = toDigestText(
        encodeBase64url(ids.subarray(ordinal * ID_BYTES, (ordinal + 1) * ID_BYTES)),
      );
      const kind = KINDS[this.#kinds[ordinal] as number] as EventKind;
      yield { seq: this.#seqs[ordinal] as number, eventId, kind };
    }
  }

  save(): EventIndexData {
    const size = Math.max(this.size, 1);
    return {
      ids: this.#ids.save(),
      lines: this.#lines.slice(0, size),
      seqs: this.#seqs.slice(0, size),
      files: this.#files.slice(0, size),
      kinds: this.#kinds.slice(0, size),
      grants: this.#grants.slice(0, size),
      names: [...this.#names],
    };
  }

  #resize(capacity: number): void {
    this.#lines = grown(new Float64Array(capacity), this.#lines);
    this.#seqs = grown(new Float64Array(capacity), this.#seqs);
    this.#files = grown(new Uint32Array(capacity), this.#files);
    this.#kinds = grown(new Uint8Array(capacity), this.#kinds);
    this.#grants = grown(new Int32Array(capacity), this.#grants);
  }
}

function grown<T extends Float64Array | Uint32Array | Uint8Array | Int32Array>(larger: T, array: T): T {
  larger.set(array);
  return larger;
}
