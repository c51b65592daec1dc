/** The records of a ledger in columns: one row each, and the findings of those that have any. */

import { printable } from '../../../base/bytes/printable.js';
import type { JsonObject } from '../../../base/json/value.js';
import type { Finding } from '../../../format/finding/finding.js';
import type { FindingJson } from '../../../format/schema/generated/types.js';
import { findNamed } from '../../../rules/verify/grant-above.js';
import type { EventVerdict, SignatureOutcome } from '../../../rules/verify/line-result.js';
import type { VerifiedRecord } from '../../../rules/verify/verified-record.js';
import { Column, Texts } from './columns.js';
import { type Kind, KINDS, type Row, type RowQuery } from './protocol.js';
import { describeEvent, kindOf } from './words.js';

/** The most findings that are kept with their records; the report counts all. */
const MAX_RECORD_FINDINGS = 100_000;

const VERDICTS: readonly EventVerdict[] = ['ok', 'denied', 'violation', 'invalid'];
const ID_PREFIX = 'sha-256:';

/** Where a record's line begins in the bytes that hold it, and how long it is. */
export interface LinePlace {
  readonly index: number;
  readonly offset: number;
  readonly size: number;
}

/** A finding, of which only the class and the line are read. */
export interface Located extends Pick<Finding, 'class'> {
  readonly at: Pick<Finding['at'], 'file' | 'line'>;
}

const ints = (length: number): Int32Array<ArrayBuffer> => new Int32Array(length);
const floats = (length: number): Float64Array<ArrayBuffer> => new Float64Array(length);
const bytes = (length: number): Uint8Array<ArrayBuffer> => new Uint8Array(length);

/** Indexes count the records that are held; places, those of the ledger. */
export class RecordTable {
  readonly #segmentStarts: ReadonlyMap<string, number>;
  /** The place of each record in the ledger: a bundle leaves places out. */
  readonly #place = new Column(floats);
  readonly #isLinked = new Column(bytes);
  readonly #texts = new Texts();
  readonly #principals = new Texts();
  readonly #outcomes = new Texts();
  readonly #file = new Column(ints);
  readonly #line = new Column(ints);
  readonly #offset = new Column(floats);
  readonly #size = new Column(ints);
  readonly #kind = new Column(bytes);
  readonly #verdict = new Column(bytes);
  readonly #type = new Column(ints);
  readonly #time = new Column(ints);
  readonly #principal = new Column(ints);
  readonly #tool = new Column(ints);
  readonly #what = new Column(ints);
  readonly #signatures = new Column(ints);
  readonly #parent = new Column(ints);
  readonly #ids: (string | undefined)[] = [];
  readonly #byId = new Map<string, number>();
  readonly #findings = new Map<number, (Finding | FindingJson)[]>();
  #findingsKept = 0;

  /** @param segmentStarts - The offset at which each file begins. */
  constructor(segmentStarts: ReadonlyMap<string, number>) {
    this.#segmentStarts = segmentStarts;
  }

  get length(): number {
    return this.#line.length;
  }

  add(record: VerifiedRecord, isLinked: boolean, event: JsonObject | undefined): Kind {
    const { examined, findings } = record;
    const index = this.length;
    const kind = kindOf(event);
    const id = examined?.eventId;
    this.#place.push(record.ordinal);
    this.#isLinked.push(isLinked ? 1 : 0);
    this.#file.push(this.#texts.numberOf(record.file));
    this.#line.push(record.line);
    this.#offset.push((this.#segmentStarts.get(record.file) ?? 0) + record.byteOffset);
    this.#size.push(record.byteLength);
    this.#kind.push(KINDS.indexOf(kind));
    this.#verdict.push(VERDICTS.indexOf(record.verdict));
    this.#type.push(this.#textOf(examined?.eventType));
    this.#time.push(this.#textOf(examined?.occurredAt));
    this.#principal.push(this.#principals.numberOf(printable(examined?.principalId ?? '')));
    this.#tool.push(this.#textOf(examined?.toolName));
    this.#what.push(this.#texts.numberOf(describeEvent(kind, event)));
    this.#signatures.push(this.#outcomes.numberOf(JSON.stringify(record.signatures)));
    const named = examined && findNamed(examined);
    this.#parent.push(named === undefined ? -1 : (this.findId(named) ?? -1));
    this.#ids.push(id);
    if (id !== undefined && !this.#byId.has(id)) this.#byId.set(id, index);
    if (findings.length > 0) this.keep(index, findings);
    return kind;
  }

  /** Keeps findings with a record, each once. */
  keep(index: number, findings: readonly (Finding | FindingJson)[]): void {
    const list = this.#findings.get(index) ?? [];
    for (const finding of findings) {
      if (this.#findingsKept >= MAX_RECORD_FINDINGS) return;
      if (
        list.some(
          (other) =>
            other.code === finding.code &&
            other.at.pointer === finding.at.pointer &&
            other.actual === finding.actual,
        )
      )
        continue;
      list.push(finding);
      this.#findingsKept += 1;
    }
    this.#findings.set(index, list);
  }

  /** Marks a record of which only the end shows that it is invalid. */
  setInvalid(index: number): void {
    this.#verdict.set(index, VERDICTS.indexOf('invalid'));
  }

  kindAt(index: number): Kind {
    return KINDS[this.#kind.at(index)] ?? 'unreadable';
  }

  verdictAt(index: number): EventVerdict {
    return VERDICTS[this.#verdict.at(index)] ?? 'invalid';
  }

  /** The index of the record that a record names as what it is under; -1 for none. */
  parentAt(index: number): number {
    return this.#parent.at(index);
  }

  /** The id of a record's event in base64url. */
  idAt(index: number): string | undefined {
    return this.#ids[index];
  }

  linePlaceAt(index: number): LinePlace & { readonly file: string; readonly line: number } {
    return {
      index,
      offset: this.#offset.at(index),
      size: this.#size.at(index),
      file: printable(this.#texts.at(this.#file.at(index))),
      line: this.#line.at(index),
    };
  }

  /** A number for the outcomes of a record's signatures: equal ones have the same. */
  outcomesNumberAt(index: number): number {
    return this.#signatures.at(index);
  }

  outcomesAt(index: number): readonly SignatureOutcome[] {
    return JSON.parse(this.#outcomes.at(this.#signatures.at(index)) || '[]') as readonly SignatureOutcome[];
  }

  findingsAt(index: number): readonly (Finding | FindingJson)[] {
    return this.#findings.get(index) ?? [];
  }

  withFindings(): Iterable<number> {
    return this.#findings.keys();
  }

  principals(): readonly string[] {
    return this.#principals.all();
  }

  /** What a row says of a record by itself. */
  rowAt(index: number): Omit<Row, 'signers' | 'children'> {
    return {
      ordinal: this.#place.at(index),
      kind: this.kindAt(index),
      type: this.#texts.at(this.#type.at(index)),
      occurredAt: this.#texts.at(this.#time.at(index)),
      principal: this.#principals.at(this.#principal.at(index)),
      tool: this.#texts.at(this.#tool.at(index)),
      what: this.#texts.at(this.#what.at(index)),
      verdict: this.verdictAt(index),
      findings: this.findingsAt(index).length,
      isLinked: this.#isLinked.at(index) === 1,
    };
  }

  /** The index of the first record with an event id (`sha-256:…`). */
  findId(id: string): number | undefined {
    return this.#byId.get(id.slice(ID_PREFIX.length));
  }

  /** The index of a record by its place in the ledger. */
  findPlace(place: number): number | undefined {
    const index = this.#firstFrom((i) => this.#place.at(i) < place);
    return index < this.length && this.#place.at(index) === place ? index : undefined;
  }

  /** The index of the record in a finding's line: records are in the order of files and lines. */
  findLine({ at }: Located): number | undefined {
    const file = this.#texts.numberOf(at.file);
    const startOf = (number: number): number => this.#segmentStarts.get(this.#texts.at(number)) ?? 0;
    const start = startOf(file);
    const index = this.#firstFrom((i) => {
      const other = this.#file.at(i);
      return other === file ? this.#line.at(i) < at.line : startOf(other) < start;
    });
    const isThere = index < this.length && this.#file.at(index) === file && this.#line.at(index) === at.line;
    return isThere ? index : undefined;
  }

  #firstFrom(isBefore: (index: number) => boolean): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (isBefore(middle)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The indexes of the records that a query selects. */
  match({ text: wanted, kind, verdict, principal }: Omit<RowQuery, 'offset' | 'limit'>): Int32Array {
    const needle = wanted.trim().toLowerCase();
    const seq = /^#?(?:seq-)?(\d{1,15})$/.exec(needle)?.[1];
    const principalNumber = principal === '' ? undefined : this.#principals.numberOf(principal);
    const id = needle.startsWith('sha-256:') ? wanted.trim().slice('sha-256:'.length) : wanted.trim();
    const found = new Int32Array(this.length);
    let count = 0;
    for (let i = 0; i < this.length; i++) {
      const own = this.verdictAt(i);
      const ownKind = this.kindAt(i);
      // Each guarded call has a start beside its execution: they would be a quarter of the table.
      if (kind === '' && needle === '' && ownKind === 'start' && own === 'ok' && !this.#findings.has(i))
        continue;
      if (kind !== '' && kind !== 'any' && ownKind !== kind) continue;
      if (verdict !== '' && own !== (verdict === 'refused' ? 'denied' : verdict)) continue;
      if (principalNumber !== undefined && this.#principal.at(i) !== principalNumber) continue;
      if (needle !== '' && !this.#contains(i, needle, seq, id)) continue;
      found[count] = i;
      count += 1;
    }
    return found.slice(0, count);
  }

  #contains(i: number, needle: string, seq: string | undefined, id: string): boolean {
    if (seq !== undefined && String(this.#place.at(i)) === seq) return true;
    if (id.length >= 6 && this.#ids[i]?.startsWith(id) === true) return true;
    const texts = [this.#what, this.#tool, this.#time, this.#type].map((column) =>
      this.#texts.at(column.at(i)),
    );
    if (texts.some((each) => each.toLowerCase().includes(needle))) return true;
    if (this.#principals.at(this.#principal.at(i)).toLowerCase().includes(needle)) return true;
    return this.#findings.get(i)?.some(({ code }) => code.toLowerCase().includes(needle)) ?? false;
  }

  #textOf(outside: string | undefined): number {
    return this.#texts.numberOf(printable(outside ?? ''));
  }
}
