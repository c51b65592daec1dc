/** The position and kind of each event of the ledger, by its id: links between events are resolved by it. */

import { encodeBase64url } from '../../base/bytes/encoding.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { isNamed, type RecordName } from '../../base/value/record-name.js';
import type { ScratchFile } from '../source/scratch-file.js';
import { ByteColumn, CountingColumn, type CountingPiece, SparseColumn } from './columns.js';
import { IdIndex, idsWithin } from './id-index.js';

/**
 * The kinds of events for links. `spent` is an allowed action that was executed, `released` one that was given back before it began,
 * `malformed` an authorization that is not well-formed.
 */
export type EventKind =
  | 'other'
  | 'grant'
  | 'action'
  | 'spent'
  | 'malformed'
  | 'execution'
  | 'approval'
  | 'released';

/** Whether an event is an allowed action that was executed or released: nothing more can be done under it. */
export function isUsedUp(kind: EventKind | undefined): boolean {
  return kind === 'spent' || kind === 'released';
}

/** An event's position. `seq` is the record's, or its ordinal where it has none. */
export interface EventPosition {
  readonly file: string;
  readonly line: number;
  readonly seq: number;
}

export interface IndexedEvent extends EventPosition {
  readonly kind: EventKind;
  /** For a spent action or an execution the number of the grant that it counts under; -1 for none. */
  readonly grant: number;
}

export interface EventMatch {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly kind: EventKind;
}

/** The events of a state. Ids are base64url. */
export interface EventTable {
  readonly size: number;
  find(id: string): IndexedEvent | undefined;
  /** Prefetches events, where a single lookup is slow. */
  lookAhead?(ids: readonly string[]): Promise<void>;
  /** Adds an event that {@link EventTable.find} does not find. Files MUST come in order. */
  add(id: string, position: EventPosition, kind?: EventKind, grant?: number): void;
  /** Marks an action as executed or released, under the grant of this number (-1: none). */
  spend(id: string, grant: number, kind?: 'spent' | 'released'): void;
  /** The matching events, in ledger order; undefined where that needs {@link EventTable.match}. */
  matchNow(name: RecordName): readonly EventMatch[] | undefined;
  /** The matching events, in ledger order; undefined for `limit` or more. */
  match(name: RecordName, limit?: number): Promise<readonly EventMatch[] | undefined>;
}

/** The index as plain data: concatenated ids, in parts, and the pieces of its columns. */
export interface EventIndexData {
  readonly ids: readonly Uint32Array[];
  readonly lines: readonly CountingPiece[];
  readonly seqs: readonly CountingPiece[];
  readonly kinds: readonly Uint8Array[];
  readonly grants: readonly (Uint8Array | Int32Array | undefined)[];
  /** The files, with the number of their first event. */
  readonly names: readonly string[];
  readonly begins: readonly number[];
}

/** The kinds by the number that tables and indexes store. */
export const EVENT_KINDS: readonly EventKind[] = [
  'other',
  'grant',
  'action',
  'spent',
  'malformed',
  'execution',
  'approval',
  'released',
];

const ID_BYTES = 32;
/** Bytes of an event in memory, without its id. */
const COLUMN_BYTES = 2;

/** Ids to positions, in typed arrays: about 45 bytes per event, or 4 once its id is spilled. */
export class EventIndex implements EventTable {
  #ids: IdIndex;
  #lines = new CountingColumn();
  #seqs = new CountingColumn();
  #kinds = new ByteColumn();
  #grants = new SparseColumn();
  readonly #names: string[] = [];
  /** The number of each file's first event. */
  readonly #begins: number[] = [];

  /** An empty index, or one as {@link EventIndex.save} gave it. It keeps the ids, and does not change them. */
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

  /**
   * Limits the index to about `maxMemory` bytes: further ids are spilled to temporary files, which `open` makes. Results stay the same.
   * Any later call may throw the error of a file.
   */
  bound(maxMemory: number, open: () => ScratchFile): void {
    const ids = (): number => idsWithin(maxMemory - this.#ids.awayBytes - COLUMN_BYTES * this.size);
    this.#ids.bound({ ids, open });
  }

  /** Releases the temporary files. The index MUST NOT be used afterwards. */
  close(): void {
    this.#ids.close();
  }

  find(id: string): IndexedEvent | undefined {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) return undefined;
    return {
      file: this.#names[this.#fileOf(ordinal)] as string,
      line: this.#lines.at(ordinal),
      seq: this.#seqs.at(ordinal),
      kind: this.kindOf(ordinal),
      grant: this.#grants.at(ordinal),
    };
  }

  add(id: string, position: EventPosition, kind: EventKind = 'other', grant = -1): void {
    this.#push(this.#ids.add(id), position, EVENT_KINDS.indexOf(kind), grant);
  }

  /** The number of the event whose id is at an offset, 43 characters of base64url; -1 for none. */
  locate(bytes: Uint8Array, at: number): number {
    return this.#ids.findAt(bytes, at);
  }

  /** As {@link EventIndex.locate}, see `IdIndex.findWords`. */
  locateWords(words: Int32Array, at: number, hash: number): number {
    return this.#ids.findWords(words, at, hash);
  }

  /** See `IdIndex.hash`. */
  hash(words: Int32Array, at: number): number {
    return this.#ids.hash(words, at);
  }

  /** See `IdIndex.prefetch`. */
  prefetch(hashes: Uint32Array, count: number): void {
    this.#ids.prefetch(hashes, count);
  }

  /** The number of the event of an id; -1 for none. */
  numberOf(id: string): number {
    return this.#ids.find(id);
  }

  kindOf(ordinal: number): EventKind {
    return EVENT_KINDS[this.#kinds.at(ordinal)] as EventKind;
  }

  /** Adds the event of the last {@link EventIndex.locate} or {@link EventIndex.locateWords}, which found nothing. @returns Its number. */
  addLocated(position: EventPosition, kind: EventKind, grant: number): number {
    const number = this.#ids.addLast();
    this.#push(number, position, EVENT_KINDS.indexOf(kind), grant);
    return number;
  }

  spend(id: string, grant: number, kind: 'spent' | 'released' = 'spent'): void {
    const ordinal = this.#ids.find(id);
    if (ordinal === -1) throw new RangeError('the event is not in the index');
    this.spendNumber(ordinal, grant, kind);
  }

  /** As {@link EventIndex.spend}, by the event's number. */
  spendNumber(ordinal: number, grant: number, kind: 'spent' | 'released' = 'spent'): void {
    this.#kinds.set(ordinal, EVENT_KINDS.indexOf(kind));
    this.#grants.set(ordinal, grant);
  }

  clear(): void {
    this.#ids.close();
    this.#ids = new IdIndex();
    this.#lines = new CountingColumn();
    this.#seqs = new CountingColumn();
    this.#kinds = new ByteColumn();
    this.#grants = new SparseColumn();
    this.#names.length = 0;
    this.#begins.length = 0;
  }

  match(name: RecordName, limit = Infinity): Promise<readonly EventMatch[] | undefined> {
    const matches = this.#matchNow(name);
    return Promise.resolve(matches.length < limit ? matches : undefined);
  }

  matchNow(name: RecordName): readonly EventMatch[] | undefined {
    return this.#matchNow(name);
  }

  #matchNow(name: RecordName): readonly EventMatch[] {
    if (!('eventId' in name)) return this.#matchAll(name);
    const event = this.find(fromDigestText(name.eventId));
    return event === undefined ? [] : [{ seq: event.seq, eventId: name.eventId, kind: event.kind }];
  }

  #matchAll(name: RecordName): EventMatch[] {
    const matches: [ordinal: number, event: EventMatch][] = [];
    this.#ids.each((words, at, ordinal) => {
      const bytes = new Uint8Array(words.buffer, words.byteOffset + at * 4, ID_BYTES);
      const eventId = toDigestText(encodeBase64url(bytes));
      const event = { seq: this.#seqs.at(ordinal), eventId, kind: this.kindOf(ordinal) };
      if (isNamed(event, name)) matches.push([ordinal, event]);
    });
    return matches.sort(([a], [b]) => a - b).map(([, event]) => event);
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

  /** The last file that begins at or before an event. */
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
