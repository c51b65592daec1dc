/**
 * Reads single records through the index: locates the line, reads it, and checks that it is the verified one. Undefined means that the
 * ledger must be read.
 */

import { tryDecodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { defined } from '../../base/defined.js';
import { NorthrootError } from '../../base/error.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { matchRecord, parseRecordName } from '../../base/value/record-name.js';
import type { Finding } from '../../format/finding/finding.js';
import { type ExaminedLine, examineLine } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES } from '../../format/record/line-splitter.js';
import { hashToBase64url, leafHash, nodeHash } from '../../format/tree/compact-range.js';
import type { LeafRange } from '../../format/tree/proof.js';
import type { Account } from '../../rules/bounds/grant.js';
import { resolveWaiting } from '../../rules/verify/authorizations.js';
import { actOf, contextOf } from '../../rules/verify/line-findings.js';
import type { EventVerdict, SignatureOutcome } from '../../rules/verify/line-result.js';
import type { VerifyState } from '../../rules/verify/state.js';
import { readAnchor } from '../fleet/anchor-event.js';
import type { TrackedCheckpoint } from '../read/find-checkpoint.js';
import { ambiguous, type ReadRecord } from '../read/read-records.js';
import type { LedgerStore } from '../store/ledger-store.js';
import { tryDecodeRational } from './codec.js';
import { IndexFault, IndexGap } from './entry-store.js';
import {
  type AccountsForm,
  type FindingForm,
  HASHES_PER_ENTRY,
  decodeAnchor,
  hashKey,
  MAX_LISTED,
  type NamingForm,
  namingKey,
  readHashes,
  readRecordForm,
  readRecordsHead,
  type RecordForm,
} from './record-entries.js';
import { type Entries, isCount } from './tables.js';
import { isUsedUp } from '../../rules/verify/event-index.js';

interface AccountsAround {
  readonly grantId: string;
  readonly before: ReadonlyMap<string, Account>;
  readonly after: ReadonlyMap<string, Account>;
}

interface IndexedRecord {
  readonly record: ReadRecord;
  readonly verdict: EventVerdict;
  /** In order; empty if none could be verified. */
  readonly signatures: readonly SignatureOutcome[];
  /** Without findings that only the ledger's end shows; undefined if too many were found to keep. */
  readonly findings: readonly Finding[] | undefined;
  /** Nearest first; undefined if their accounts were too many to keep. */
  readonly above: readonly AccountsAround[] | undefined;
}

/** The events that name another one: the count, and the first ordinals. */
interface NamingRecords {
  readonly total: number;
  /** At most {@link MAX_LISTED}. */
  readonly ordinals: readonly number[];
}

/** More prefix matches are left to the ledger. */
const MAX_MATCHES = 256;

const HASH_LENGTH = 43;
/** Errors that mean that the store is not the one that was indexed. Others say nothing about the index. */
const MISFIT = new Set(['FILE_NOT_FOUND', 'FILE_CHANGED', 'LEDGER_CONFLICT', 'NOT_A_LEDGER']);

export type LineReader = Pick<LedgerStore, 'readLine'>;

/** Reads records by index; see the head of this file. */
export class RecordReader {
  readonly #entries: Entries;
  readonly #state: VerifyState;
  readonly #lines: LineReader;
  readonly #hashes = new Map<string, string[]>();

  constructor(entries: Entries, state: VerifyState, lines: LineReader) {
    this.#entries = entries;
    this.#state = state;
    this.#lines = lines;
  }

  /** Records, readable or not. */
  get size(): number {
    return this.#state.records;
  }

  /** Whether every readable record's number is its ordinal, and its id unique. Otherwise lookups fail. */
  get isRegular(): boolean {
    return readRecordsHead(this.#entries).isRegular;
  }

  get isReadable(): boolean {
    return readRecordsHead(this.#entries).isReadable;
  }

  /**
   * As `findRecord`; undefined if the ledger must be read.
   * @throws NorthrootError `RECORD_AMBIGUOUS`, `USAGE`; IndexFault
   */
  async find(wanted: string): Promise<ReadRecord | undefined> {
    const ordinals = await this.#match(wanted);
    const matches = matchRecord(wanted);
    const records: ReadRecord[] = [];
    for (const ordinal of ordinals?.slice(0, 2) ?? []) {
      const record = await this.read(ordinal);
      if (record === undefined) continue;
      if (!matches(record)) throw new IndexFault('an entry leads to another record');
      records.push(record);
    }
    const [record, other] = records;
    if (record !== undefined && other !== undefined) throw ambiguous(wanted, record, other);
    return record;
  }

  /** The record at an ordinal, from 0; undefined if that line is no record. @throws IndexFault */
  async read(ordinal: number): Promise<ReadRecord | undefined> {
    return (await this.#read(ordinal))?.record;
  }

  /** The first record of an event, `sha-256:…`. @throws IndexFault */
  async readEvent(eventId: string): Promise<ReadRecord | undefined> {
    const event = this.#state.events.find(fromDigestText(eventId));
    if (event === undefined) return undefined;
    const record = await this.read(event.seq);
    if (record?.eventId !== eventId) throw new IndexFault('an event is not where its entry says');
    return record;
  }

  /** The record with its outcome; undefined if the line is no record. @throws IndexGap if its signatures were assumed; IndexFault */
  async describe(ordinal: number): Promise<IndexedRecord | undefined> {
    const read = await this.#read(ordinal);
    if (read === undefined) return undefined;
    const { record, form, examined } = read;
    const { v: verdict = 'ok', s: outcomes = [], f = [], w, g = [] } = form;
    if (outcomes === 0) throw new IndexGap();
    if (outcomes.length > 0 && outcomes.length !== record.signatures.length)
      throw new IndexFault('a record has other signatures than its entry');
    const signatures = outcomes.map((outcome, i) => ({
      keyid: record.signatures[i]?.keyid as string,
      ...outcome,
    }));
    const own = f === 0 ? undefined : f.map((each) => toFinding(each, read));
    const late = w === undefined ? [] : [this.#resolve(toFinding(w, read), examined)];
    return {
      record,
      verdict,
      signatures,
      findings: own && [...own, ...late],
      above: g === 0 ? undefined : g.map((each) => this.#accountsOf(each)),
    };
  }

  /** Executions that name an authorization, `sha-256:…`. @throws IndexFault */
  executionsOf(eventId: string): NamingRecords {
    const naming = this.#naming('x', eventId);
    const { kind } = this.#state.events.find(fromDigestText(eventId)) ?? {};
    if (isUsedUp(kind) && naming.total === 0) throw new IndexFault('the entry of an execution is missing');
    return naming;
  }

  /** Adjustments that name a grant, `sha-256:…`. @throws IndexFault */
  adjustmentsOf(eventId: string): NamingRecords {
    return this.#naming('y', eventId);
  }

  /** The furthest anchor of another ledger, `sha-256:…`; of several the last. @throws IndexFault */
  async findAnchor(ledgerId: string): Promise<ReadRecord | undefined> {
    const form: unknown = this.#entries.get(`z:${fromDigestText(ledgerId)}`);
    if (form === undefined) return undefined;
    const record = await this.read(decodeAnchor(form).at);
    if (record === undefined || readAnchor(record.event)?.childId !== ledgerId)
      throw new IndexFault('the entry of an anchor leads to another record');
    return record;
  }

  /** The last checkpoint, as of `findCheckpoint`. */
  get checkpoint(): TrackedCheckpoint | undefined {
    return readRecordsHead(this.#entries).checkpoint;
  }

  /** The root of a range of leaves of a proof, or from 0, as a binary string. @throws IndexFault */
  rootOf({ start, end }: LeafRange): string {
    if (end > this.size || start >= end) throw new RangeError('the tree has no such leaves');
    const roots: string[] = [];
    for (let at = start; at < end;) {
      let width = 1;
      while (at % (width * 2) === 0 && at + width * 2 <= end) width *= 2;
      roots.push(this.#subtree(at, width));
      at += width;
    }
    return roots.reduceRight((right, left) => nodeHash(left, right));
  }

  /** The root of a full subtree; `width` is a power of 2. */
  #subtree(start: number, width: number): string {
    if (width === 1) return fromBase64url(this.#form(start).h);
    let level = 0;
    let step = 1;
    while (step * HASHES_PER_ENTRY <= width) {
      step *= HASHES_PER_ENTRY;
      level += 1;
    }
    if (step === width) return this.#hash(level, start / width);
    const half = width / 2;
    return nodeHash(this.#subtree(start, half), this.#subtree(start + half, half));
  }

  #hash(level: number, index: number): string {
    const key = hashKey(level, Math.floor(index / HASHES_PER_ENTRY));
    const at = index % HASHES_PER_ENTRY;
    const known = this.#hashes.get(key) ?? [];
    const hashes = at < known.length ? known : readHashes(this.#entries, key, at + 1, HASHES_PER_ENTRY);
    this.#hashes.set(key, hashes);
    return fromBase64url(hashes[at]);
  }

  /** The ordinals that `wanted` may name; undefined if the ledger must be read. */
  async #match(wanted: string): Promise<number[] | undefined> {
    const parsed = parseRecordName(wanted);
    if (!this.isRegular) return undefined;
    if ('seq' in parsed) return parsed.seq < this.size ? [parsed.seq] : undefined;
    if ('eventId' in parsed) {
      const event = this.#state.events.find(fromDigestText(parsed.eventId));
      return event && [event.seq];
    }
    const matches = await this.#state.events.match(parsed, MAX_MATCHES);
    return matches?.map(({ seq }) => seq);
  }

  #form(ordinal: number): RecordForm {
    const form = readRecordForm(this.#entries, ordinal) as Partial<RecordForm> | undefined;
    const { file, l = ordinal + 1, o, b, h } = form ?? {};
    if (typeof file !== 'string' || ![l, o, b].every(isCount) || typeof h !== 'string')
      throw new IndexFault('the entry of a record is missing or malformed');
    return form as RecordForm;
  }

  async #read(
    ordinal: number,
  ): Promise<{ record: ReadRecord; form: RecordForm; examined: ExaminedLine } | undefined> {
    if (!(isCount(ordinal) && ordinal < this.size)) throw new RangeError('the ledger has no such record');
    const form = this.#form(ordinal);
    const { file, l: line = ordinal + 1 } = form;
    if (form.b > MAX_LINE_BYTES) return undefined;
    const bytes = await this.#readLine(ordinal, form);
    if (hashToBase64url(leafHash(bytes)) !== form.h)
      throw new IndexFault(`record ${ordinal} is not what was verified`);
    const examined = examineLine(bytes, this.#state.layout);
    const { eventId, seq = ordinal, signatures = [] } = examined;
    const event = examined.json();
    if (event === undefined || eventId === undefined) return undefined;
    const place = { file, line, seq, eventId: toDigestText(eventId) };
    return { record: { ...place, event, signatures, bytes, verdict: undefined }, form, examined };
  }

  async #readLine(ordinal: number, { file, l: line = ordinal + 1, o, b }: RecordForm): Promise<Uint8Array> {
    // Lines that are no records have no ordinals here; in a store of one file, the line's number counts them.
    const isOnly = this.#entries.names.toIndex(file) === '';
    const place = { ordinal: isOnly ? line - 1 : ordinal, file, byteOffset: o, byteLength: b };
    const bytes = await this.#lines.readLine(place).catch((cause: unknown) => {
      const isMisfit = cause instanceof NorthrootError && MISFIT.has(cause.code);
      throw isMisfit ? new IndexFault('the ledger is not where it was', { cause }) : cause;
    });
    if (bytes === undefined) throw new IndexFault('lines are not where they were');
    return bytes;
  }

  /** Updates a finding on a link whose event has come since. */
  #resolve(finding: Finding, examined: ExaminedLine): Finding {
    const { b64 } = (examined.json() as { readonly auth_event_id: { readonly b64: string } }).auth_event_id;
    const named = this.#state.events.find(b64);
    if (named === undefined) return finding;
    const { file, line, seq, kind } = named;
    return resolveWaiting(finding, kind, { file, line, seq, eventId: toDigestText(b64) });
  }

  #accountsOf([index, ...held]: AccountsForm): AccountsAround {
    const grant = this.#state.links.grants.at(index);
    if (grant?.accounts.size !== held.length) throw new IndexFault('the accounts of a record are malformed');
    const before = new Map<string, Account>();
    const after = new Map<string, Account>();
    for (const [i, [unit, { cap }]] of [...grant.accounts].entries()) {
      const [was = '', is = was] = held[i] ?? [];
      before.set(unit, { cap, ...readAmounts(was) });
      after.set(unit, { cap, ...readAmounts(is) });
    }
    return { grantId: grant.place.eventId, before, after };
  }

  #naming(prefix: string, eventId: string): NamingRecords {
    const id = fromDigestText(eventId);
    const form = this.#entries.get(`${prefix}:${id}`) as Partial<NamingForm> | undefined;
    if (form === undefined) return { total: 0, ordinals: [] };
    const { n: total, first } = form;
    if (!isCount(total) || !isCount(first)) throw new IndexFault('the entry of a link is malformed');
    const ordinals = [first];
    for (let n = 2; n <= Math.min(total, MAX_LISTED); n += 1) {
      const { at } = (this.#entries.get(namingKey(prefix, id, n)) ?? {}) as { readonly at?: unknown };
      if (!isCount(at)) throw new IndexFault('the entry of a link is missing or malformed');
      ordinals.push(at);
    }
    return { total, ordinals };
  }
}

function toFinding(
  { code, severity, class: of, pointer, part, expected, actual, related, lineDigest }: FindingForm,
  { record, form, examined }: { record: ReadRecord; form: RecordForm; examined: ExaminedLine },
): Finding {
  const [offset, length] = part ?? [0, form.b];
  const { file, line, eventId } = record;
  return {
    code,
    severity,
    class: of,
    at: {
      file,
      line,
      byteOffset: form.o + offset,
      byteLength: length,
      ...defined({ pointer }),
    },
    seq: examined.seq,
    eventId,
    ...defined({ expected, actual, related, lineDigest }),
    context: { ...contextOf(examined), ...actOf(examined) },
  };
}

/** @throws IndexFault */
function readAmounts(text: string): Omit<Account, 'cap'> {
  const [used, estimated, reserved] = text.split(' ').map(tryDecodeRational);
  if (used === undefined || estimated === undefined || reserved === undefined)
    throw new IndexFault('the accounts of a record are malformed');
  return { used, estimated, reserved };
}

function fromBase64url(hash: string | undefined): string {
  const bytes = hash === undefined || hash.length !== HASH_LENGTH ? undefined : tryDecodeBase64url(hash);
  if (bytes === undefined) throw new IndexFault('a hash of the tree is malformed');
  return decodeLatin1(bytes);
}
