/** Events by id, over an index: recent ones are in the in-memory table of verification; others are read on demand. */

import { viewBytes } from '#platform';
import { encodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { isNamed, type RecordName } from '../../base/value/record-name.js';
import {
  EVENT_KINDS,
  EventIndex,
  type EventKind,
  type EventMatch,
  type EventPosition,
  type IndexedEvent,
} from '../../rules/verify/event-index.js';
import { encodeText } from './codec.js';
import { type EntryChange, IndexFault } from './entry-store.js';
import { readRecordForm } from './record-entries.js';
import { type Entries, isCount } from './tables.js';

const ID_LENGTH = 43;
const MAX_ABSENT = 20_000;
const ID_BYTES = 32;
const BASE64URL = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

interface EventForm {
  readonly file: string;
  readonly l: number;
  readonly s: number;
  readonly k: number;
  /** The grant that it counts under, if any. */
  readonly g?: number;
}

/** Events over an index; see the head of this file. */
export class IndexedEvents extends EventIndex {
  readonly #entries: Entries;
  #total: number;
  /** Ids in memory, by number. */
  #ids: string[] = [];
  /** Numbers added or changed since the last write. */
  readonly #changed = new Set<number>();
  /** Ids known to be missing, since a new event's id is looked up more than once. */
  readonly #absent = new Set<string>();
  #lastAbsent: string | undefined;

  constructor(entries: Entries, size: number) {
    super();
    this.#entries = entries;
    this.#total = size;
  }

  override get size(): number {
    return this.#total;
  }

  get loaded(): number {
    return this.#ids.length;
  }

  idOf(number: number): string {
    return this.#ids[number] as string;
  }

  override find(id: string): IndexedEvent | undefined {
    return super.find(id) ?? (this.#load(id) ? super.find(id) : undefined);
  }

  override locate(bytes: Uint8Array, at: number): number {
    const number = super.locate(bytes, at);
    if (number !== -1) return number;
    const id = decodeLatin1(bytes, at, at + ID_LENGTH);
    return this.#load(id) ? this.numberOf(id) : -1;
  }

  override locateWords(words: Int32Array, at: number, hash: number): number {
    const number = super.locateWords(words, at, hash);
    if (number !== -1) return number;
    const id = encodeBase64url(viewBytes(words.buffer, words.byteOffset + 4 * at, ID_BYTES));
    return this.#load(id) ? this.numberOf(id) : -1;
  }

  override add(id: string, position: EventPosition, kind: EventKind = 'other', grant = -1): void {
    super.add(id, position, kind, grant);
    this.#note(id);
  }

  override addLocated(position: EventPosition, kind: EventKind, grant: number): number {
    // The id whose lookup just failed.
    const id = this.#lastAbsent as string;
    const number = super.addLocated(position, kind, grant);
    this.#note(id);
    return number;
  }

  override spend(id: string, grant: number, kind?: 'spent' | 'released'): void {
    if (this.find(id) === undefined) throw new RangeError('the event is not in the index');
    super.spend(id, grant, kind);
  }

  override spendNumber(number: number, grant: number, kind?: 'spent' | 'released'): void {
    super.spendNumber(number, grant, kind);
    this.#changed.add(number);
  }

  /** Includes events not written yet. */
  override matchNow(name: RecordName): readonly EventMatch[] | undefined {
    if ('eventId' in name) {
      const event = this.find(fromDigestText(name.eventId));
      return event === undefined ? [] : [{ seq: event.seq, eventId: name.eventId, kind: event.kind }];
    }
    const { isRegular } = (this.#entries.get('R') ?? {}) as { readonly isRegular?: unknown };
    if (!('seq' in name) || isRegular !== true) return undefined;
    const { i: id } = (readRecordForm(this.#entries, name.seq) ?? {}) as { readonly i?: unknown };
    return this.#choose(name, [...(typeof id === 'string' ? [id] : []), ...this.#changedIds()]);
  }

  override async match(name: RecordName, limit = Infinity): Promise<readonly EventMatch[] | undefined> {
    const matches = this.matchNow(name);
    if (matches !== undefined) return matches;
    const ids = await this.#listNamed(name, limit);
    return ids && this.#choose(name, [...ids, ...this.#changedIds()]);
  }

  takeChanges(): EntryChange[] {
    const changes: EntryChange[] = [];
    for (const number of this.#changed) {
      const id = this.idOf(number);
      changes.push(this.#entries.changeText(eventKey(id), this.#textOf(super.find(id) as IndexedEvent)));
    }
    this.#changed.clear();
    return changes;
  }

  /** Looks up ids in one batch. @throws IndexFault */
  async lookAhead(ids: readonly string[]): Promise<void> {
    const unknown = ids.filter((id) => !this.#absent.has(id) && super.numberOf(id) === -1);
    if (unknown.length === 0) return;
    const missing = await this.#entries.listMissing(unknown.map((id) => eventKey(id)));
    for (const key of missing) this.#noteAbsent(key.slice(eventKey('').length));
  }

  /** Drops the in-memory table. All changes MUST be written. */
  override clear(): void {
    super.clear();
    this.#ids = [];
  }

  /** The form that `encodeValue` would write. */
  #textOf({ file, line, seq, kind, grant }: IndexedEvent): string {
    const place = `"file":${encodeText(this.#entries.names.toIndex(file))},"l":${line},"s":${seq}`;
    return `{${place},"k":${EVENT_KINDS.indexOf(kind)}${grant === -1 ? '' : `,"g":${grant}`}}`;
  }

  /** Loads an event; false if there is none. */
  #load(id: string): boolean {
    this.#lastAbsent = id;
    if (this.#absent.has(id)) return false;
    const form = this.#entries.get(eventKey(id));
    if (form === undefined) {
      this.#noteAbsent(id);
      return false;
    }
    const { file, l: line, s: seq, k, g: grant = -1 } = form as Partial<EventForm>;
    const kind = EVENT_KINDS[k ?? -1];
    if (
      typeof file !== 'string' ||
      !isCount(line) ||
      !isCount(seq) ||
      kind === undefined ||
      typeof grant !== 'number'
    )
      throw new IndexFault('the entry of an event is malformed');
    super.add(id, { file, line, seq }, kind, grant);
    this.#ids.push(id);
    return true;
  }

  #noteAbsent(id: string): void {
    if (this.#absent.size >= MAX_ABSENT) this.#absent.clear();
    this.#absent.add(id);
  }

  #note(id: string): void {
    this.#absent.delete(id);
    this.#changed.add(this.#ids.length);
    this.#ids.push(id);
    this.#total += 1;
  }

  #changedIds(): string[] {
    return [...this.#changed].map((number) => this.idOf(number));
  }

  /** The events that `name` names, in ledger order. */
  #choose(name: RecordName, ids: Iterable<string>): EventMatch[] {
    const found: EventMatch[] = [];
    for (const id of new Set(ids)) {
      const event = this.find(id);
      const eventId = toDigestText(id);
      if (event === undefined || !isNamed({ seq: event.seq, eventId }, name)) continue;
      found.push({ seq: event.seq, eventId, kind: event.kind });
    }
    return found.sort((a, b) => a.seq - b.seq);
  }

  /** A superset of the written ids that `name` names; undefined for `limit` or more. */
  async #listNamed(name: RecordName, limit: number): Promise<string[] | undefined> {
    const ids: string[] = [];
    for (const prefix of 'prefix' in name ? [name.prefix, ...hexPrefixes(name.hex)] : ['']) {
      for await (const [key] of this.#entries.list(`e:${prefix}`, undefined, limit))
        ids.push(key.slice('e:'.length));
      if (ids.length >= limit) return undefined;
    }
    return ids;
  }
}

function eventKey(id: string): string {
  return `e:${id}`;
}

/** The base64url prefixes of a hex prefix: its whole characters, then each that the remaining bits allow. */
function hexPrefixes(hex: string | undefined): string[] {
  if (hex === undefined) return [];
  const bits = [...hex].map((digit) => Number.parseInt(digit, 16).toString(2).padStart(4, '0')).join('');
  const whole = Math.floor(bits.length / 6) * 6;
  const prefix = (bits.slice(0, whole).match(/.{6}/g) ?? []).map((six) => BASE64URL[Number.parseInt(six, 2)]);
  const rest = bits.slice(whole);
  if (rest === '') return [prefix.join('')];
  const first = Number.parseInt(rest.padEnd(6, '0'), 2);
  const count = 2 ** (6 - rest.length);
  return Array.from({ length: count }, (_, i) => `${prefix.join('')}${BASE64URL[first + i]}`);
}
