/** Reads records sequentially, with or without their verdicts. */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { JsonObject } from '../../base/json/value.js';
import { checkOptions, checkString } from '../../base/options.js';
import { fromDigestText, toDigestText } from '../../base/value/digest.js';
import { matchRecord, parseRecordName } from '../../base/value/record-name.js';
import { compareTimestamps, isTimestamp } from '../../base/value/timestamp.js';
import type { PublicKey } from '../../format/key/public-key.js';
import { decodeWireKey } from '../../format/key/wire-key.js';
import { type ExaminedLine, examineLine, type SignatureEntry } from '../../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import { checkKey } from '../../format/schema/check.js';
import type { Key, TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type LedgerLine, readLines } from '../../rules/source/read-lines.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import { verifyLine } from '../../rules/verify/verify-line.js';

/** A readable record or bare event. */
export interface ReadRecord {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  /** The record's number; for a bare event its ordinal, without blank lines. */
  readonly seq: number;
  /** `sha-256:…`, as claimed. */
  readonly eventId: string;
  readonly event: JsonObject;
  readonly signatures: readonly SignatureEntry[];
  /** Without `\n`. */
  readonly bytes: Uint8Array;
  /** Only with {@link ReadOptions.verify}. */
  readonly verdict: EventVerdict | undefined;
}

export interface UnreadLine {
  readonly file: string;
  readonly line: number;
}

export interface ReadOptions {
  /** Verifies while reading. Default: no verification. */
  readonly verify?: { readonly trust?: TrustPolicy } | undefined;
  /** Called for each line that is no record; such lines are left out. */
  readonly onUnread?: ((line: UnreadLine) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The records of a source in order.
 * @throws NorthrootError when the source cannot be read; the signal's reason; TypeError for a bad option
 */
export async function* readRecords(
  source: LedgerSource,
  options: ReadOptions = {},
): AsyncGenerator<ReadRecord, void, void> {
  checkOptions('readRecords', options, { verify: 'object', onUnread: 'function', signal: 'signal' });
  checkOptions('readRecords: verify', options.verify ?? {}, { trust: 'object' });
  const read = options.verify === undefined ? plainReader() : verifyingReader(options.verify.trust);
  yield* readWith(read, source, options);
}

async function* readWith(
  read: Reader,
  source: LedgerSource,
  options: Pick<ReadOptions, 'onUnread' | 'signal'>,
): AsyncGenerator<ReadRecord, void, void> {
  for await (const each of readLines(source, { signal: options.signal })) {
    const { line, segment, ordinal } = each;
    const { examined, verdict } = read(each);
    const event = examined?.json();
    const eventId = examined?.eventId;
    const place = { file: segment.file, line: line.number };
    if (event === undefined || eventId === undefined) options.onUnread?.(place);
    else {
      const { seq = ordinal, signatures = [] } = examined ?? {};
      const bytes = Uint8Array.from(line.bytes);
      yield { ...place, seq, eventId: toDigestText(eventId), event, signatures, bytes, verdict };
    }
  }
}

type Reader = (line: LedgerLine) => {
  readonly examined: ExaminedLine | undefined;
  readonly verdict: EventVerdict | undefined;
};

/** @param mayBe - Whether a line is wanted: others are not parsed. Default: all */
function plainReader(mayBe: (line: Uint8Array) => boolean = () => true): Reader {
  let layout: ExaminedLine['layout'];
  return ({ line: { bytes, length }, takesPlace }) => {
    const isRead = takesPlace && length <= MAX_LINE_BYTES && (layout === undefined || mayBe(bytes));
    const examined = isRead ? examineLine(bytes, layout) : undefined;
    layout ??= examined?.layout;
    return { examined, verdict: undefined };
  };
}

function verifyingReader(trust: TrustPolicy | undefined): Reader {
  const state: VerifyState = startVerification(trust, defaultBackend);
  return ({ line, segment }) => verifyLine(state, line, segment);
}

/**
 * The keys of genesis and key events, by keyid, without verification; inconsistent entries are left out.
 * @throws NorthrootError when the source cannot be read; the signal's reason
 */
export async function readDeclaredKeys(
  source: LedgerSource,
  signal?: AbortSignal,
): Promise<Map<string, PublicKey>> {
  const found = new Map<string, PublicKey>();
  for await (const { event } of readRecords(source, { signal })) {
    for (const entry of entriesOf(event)) {
      if (checkKey(entry).length > 0) continue;
      const decoded = decodeWireKey(entry as Key);
      if (decoded.ok) found.set(decoded.value.keyid, decoded.value);
    }
  }
  return found;
}

function entriesOf(event: Readonly<Record<string, unknown>>): readonly unknown[] {
  const { event_type: type, keys, key } = event;
  if (type === 'genesis') return Array.isArray(keys) ? keys : [];
  return type === 'key' ? [key] : [];
}

/**
 * The record; the first of identical copies.
 * @param wanted - A seq such as `17`, an id (`sha-256:…`, base64url or hex), or a prefix
 * @throws NorthrootError `RECORD_NOT_FOUND`, `RECORD_AMBIGUOUS`, `USAGE`, and as the source does; the signal's reason
 */
export async function findRecord(
  source: LedgerSource,
  wanted: string,
  signal?: AbortSignal,
): Promise<ReadRecord> {
  checkString('findRecord', 'the record', wanted);
  const matches = matchRecord(wanted);
  const found: ReadRecord[] = [];
  for await (const record of readWith(plainReader(mayHave(idsIn(wanted))), source, { signal })) {
    const [first] = found;
    if (!matches(record) || (first?.seq === record.seq && first.eventId === record.eventId)) continue;
    found.push(record);
    if (found.length > 1) break;
  }
  const [record, other] = found;
  if (record === undefined) throw notFound(source, wanted);
  if (other !== undefined) throw ambiguous(wanted, record, other);
  return record;
}

/** Of more ids lines are parsed rather than searched. */
const MAX_SEARCHED = 16;

/** The whole id that a name is, base64url; none for another. */
function idsIn(wanted: string): readonly string[] {
  const name = parseRecordName(wanted);
  return 'eventId' in name ? [fromDigestText(name.eventId)] : [];
}

/**
 * Whether a line may claim one of some ids: then it has its text, as lines that are not canonical are no records.
 * @param ids - base64url
 * @returns Undefined where each line is to be parsed
 */
function mayHave(ids: readonly string[]): ((line: Uint8Array) => boolean) | undefined {
  if (ids.length === 0 || ids.length > MAX_SEARCHED) return undefined;
  return (line) => {
    const text = Buffer.from(line.buffer, line.byteOffset, line.length);
    return ids.some((id) => text.includes(id, 0, 'latin1'));
  };
}

/**
 * The first record of each of some events, by its id `sha-256:…`, in one reading.
 * @throws NorthrootError `RECORD_NOT_FOUND` if one is missing, and as the source does; the signal's reason
 */
export async function findEvents(
  source: LedgerSource,
  eventIds: readonly string[],
  signal?: AbortSignal,
): Promise<Map<string, ReadRecord>> {
  const missing = new Set(eventIds);
  const found = new Map<string, ReadRecord>();
  if (missing.size === 0) return found;
  const read = plainReader(mayHave(eventIds.map(fromDigestText)));
  for await (const record of readWith(read, source, { signal })) {
    if (!missing.delete(record.eventId)) continue;
    found.set(record.eventId, record);
    if (missing.size === 0) return found;
  }
  const [first = ''] = missing;
  throw notFound(source, first);
}

function notFound({ paths: [where = ''] }: LedgerSource, wanted: string): NorthrootError {
  return new NorthrootError('RECORD_NOT_FOUND', `no record ${printable(wanted)} in ${printable(where)}`);
}

export function ambiguous(
  wanted: string,
  record: Pick<ReadRecord, 'seq' | 'eventId'>,
  other: Pick<ReadRecord, 'seq' | 'eventId'>,
): NorthrootError {
  return new NorthrootError('RECORD_AMBIGUOUS', `${printable(wanted)} names more than one record`, {
    hint:
      record.eventId === other.eventId
        ? `the ledger has the event twice: give the seq, ${record.seq} or ${other.seq}`
        : `give more of the id: ${record.eventId} or ${other.eventId}`,
  });
}

/** After a record's number, or before the first record later than a time. */
export type Point = { readonly seq: number } | { readonly time: string } | 'end';

/** @throws NorthrootError `RECORD_NOT_FOUND` when no record has the number; as the source does; the signal's reason */
export async function replayTo(
  source: LedgerSource,
  point: Point,
  trust?: TrustPolicy,
  signal?: AbortSignal,
): Promise<VerifyState> {
  const state = startVerification(trust, defaultBackend);
  const [time, seq] =
    point === 'end' ? [] : 'time' in point ? [point.time, undefined] : [undefined, point.seq];
  for await (const { line, segment, ordinal, takesPlace } of readLines(source, { signal })) {
    if (time !== undefined && takesPlace && isAfter(line, time, state)) return state;
    const { examined } = verifyLine(state, line, segment);
    // Without a number of its own, its ordinal counts.
    if (takesPlace && (examined?.seq ?? ordinal) === seq) return state;
  }
  if (seq === undefined) return state;
  const [where = ''] = source.paths;
  throw new NorthrootError('RECORD_NOT_FOUND', `no record ${seq} in ${printable(where)}`, {
    hint: `it has ${state.records} records`,
  });
}

function isAfter({ bytes, length }: RawLine, time: string, state: VerifyState): boolean {
  if (length > MAX_LINE_BYTES) return false;
  const { occurredAt } = examineLine(bytes, state.layout);
  return occurredAt !== undefined && isTimestamp(occurredAt) && compareTimestamps(occurredAt, time) > 0;
}
