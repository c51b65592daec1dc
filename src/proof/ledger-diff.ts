/** Finds where two ledgers diverge (SPEC §8: FORKED): one pass in lockstep, byte for byte, in constant memory. Verifies neither. */

import { equalBytes } from '../base/bytes/compare.js';
import { decodeUtf8 } from '../base/bytes/text.js';
import { canonicalText } from '../base/json/canonicalize.js';
import { isJsonObject, type JsonObject } from '../base/json/value.js';
import { toDigestText } from '../base/value/digest.js';
import { examineLine } from '../format/record/examine-line.js';
import { MAX_LINE_BYTES, type RawLine } from '../format/record/line-splitter.js';
import { appendLeaf, emptyRange, hashToBase64url, rangeRoot } from '../format/tree/compact-range.js';
import type { LedgerSource } from '../rules/source/ledger-source.js';
import { hashLine, type LedgerLine, type LineReader, readLines } from '../rules/source/read-lines.js';
import { escapePointer } from '../base/json/pointer.js';

/** The relation of two ledgers. A torn last line does not count. */
export type LedgerRelation = 'identical' | 'a_extends_b' | 'b_extends_a' | 'forked';

export interface DiffSide {
  readonly paths: readonly string[];
  readonly records: number;
  /** The bytes of a last line without `\n`. */
  readonly torn_bytes: number;
}

/** The record of one ledger where the two diverge. */
export interface DiffRecord {
  readonly file: string;
  /** 1 for the first line of the file. */
  readonly line: number;
  readonly byte_offset: number;
  readonly byte_length: number;
  /** As the record states; `null`, like the following members, if unreadable. */
  readonly seq: number | null;
  /** `sha-256:…` */
  readonly event_id: string | null;
  readonly event_type: string | null;
  readonly occurred_at: string | null;
  readonly principal_id: string | null;
  /** The fault of the line by itself, if any. */
  readonly code: string | null;
}

/** The result in its wire form: what `diff --format json` prints. */
export interface LedgerDiff {
  readonly relation: LedgerRelation;
  /** 0, or 1 when the ledgers forked. */
  readonly exit_status: 0 | 1;
  readonly verified: false;
  readonly a: DiffSide;
  readonly b: DiffSide;
  /** The number of common lines from the beginning, and the root of their tree. */
  readonly common: { readonly records: number; readonly root: string };
  /** The first lines that differ and, if both are JSON, the JSON pointers of the members that differ. */
  readonly fork: {
    readonly a: DiffRecord;
    readonly b: DiffRecord;
    readonly differs: readonly string[];
  } | null;
}

/**
 * Compares two ledgers.
 *
 * @param signal - Aborting ends the comparison with its reason.
 * @throws NorthrootError when a source cannot be read to its end.
 */
export async function diffLedgers(
  a: LedgerSource,
  b: LedgerSource,
  signal?: AbortSignal,
): Promise<LedgerDiff> {
  const readerA = new DiffReader(a, signal);
  const readerB = new DiffReader(b, signal);
  try {
    return await compareLines(readerA, readerB);
  } finally {
    await readerA.close();
    await readerB.close();
  }
}

async function compareLines(a: DiffReader, b: DiffReader): Promise<LedgerDiff> {
  const tree = emptyRange();
  let common = 0;
  let fork: LedgerDiff['fork'] = null;
  for (;;) {
    // No await while both have lines in memory.
    const lineA = a.tryNext() ?? (await a.next());
    const lineB = b.tryNext() ?? (await b.next());
    if (lineA === undefined || lineB === undefined) break;
    if (!isSameLine(lineA.line, lineB.line)) {
      fork = describeFork(describe(lineA), describe(lineB));
      break;
    }
    common += 1;
    if (lineA.takesPlace) appendLeaf(tree, hashLine(lineA.line));
  }
  await a.skipRest();
  await b.skipRest();
  const relation =
    fork !== null
      ? 'forked'
      : a.lines > b.lines
        ? 'a_extends_b'
        : a.lines < b.lines
          ? 'b_extends_a'
          : 'identical';
  return {
    relation,
    exit_status: fork === null ? 0 : 1,
    verified: false,
    a: a.side,
    b: b.side,
    common: { records: common, root: toDigestText(hashToBase64url(rangeRoot(tree))) },
    fork,
  };
}

class DiffReader {
  readonly #paths: readonly string[];
  readonly #reader: LineReader;
  #torn = 0;
  /** How many lines were returned. */
  lines = 0;

  constructor(source: LedgerSource, signal: AbortSignal | undefined) {
    this.#paths = source.paths;
    this.#reader = readLines(source, { signal });
  }

  get side(): DiffSide {
    return { paths: this.#paths, records: this.lines, torn_bytes: this.#torn };
  }

  /** The next line, if it is in memory. It is valid until the next call. */
  tryNext(): LedgerLine | undefined {
    for (;;) {
      const next = this.#reader.tryNext();
      if (next === undefined || this.#isWhole(next)) return next;
    }
  }

  /** The next line; undefined at the end. It is valid until the next call. */
  async next(): Promise<LedgerLine | undefined> {
    for (;;) {
      const next = await this.#reader.next();
      if (next.done === true) return undefined;
      if (this.#isWhole(next.value)) return next.value;
    }
  }

  #isWhole({ line: { length, terminated } }: LedgerLine): boolean {
    if (terminated) this.lines += 1;
    else this.#torn += length;
    return terminated;
  }

  /** Reads to the end, to count. */
  async skipRest(): Promise<void> {
    while ((this.tryNext() ?? (await this.next())) !== undefined);
  }

  async close(): Promise<void> {
    await this.#reader.return();
  }
}

function describe({ line, segment }: LedgerLine): DescribedLine {
  const { length, offset, number } = line;
  const place = {
    file: segment.file,
    line: number,
    byte_offset: offset,
    byte_length: length,
  };
  if (length === 0 || length > MAX_LINE_BYTES)
    return {
      record: { ...place, ...UNREAD, code: length === 0 ? 'LINE_BLANK' : 'LINE_TOO_LONG' },
      value: undefined,
    };
  const { faults, seq, span, eventId, eventType, occurredAt, principalId, layout } = examineLine(
    line.bytes,
    undefined,
  );
  const record = {
    ...place,
    seq: seq ?? null,
    event_id: eventId === undefined ? null : toDigestText(eventId),
    event_type: eventType ?? null,
    occurred_at: occurredAt ?? null,
    principal_id: principalId ?? null,
    code: faults[0]?.code ?? null,
  };
  if (span === undefined) return { record, value: undefined };
  const value = JSON.parse(decodeUtf8(line.bytes)) as JsonObject;
  return { record, value: layout === 'bare' ? { event: value } : value };
}

interface DescribedLine {
  readonly record: DiffRecord;
  /** The record, if readable; a bare event is wrapped in a record. */
  readonly value: JsonObject | undefined;
}

const UNREAD = {
  seq: null,
  event_id: null,
  event_type: null,
  occurred_at: null,
  principal_id: null,
} as const;

function isSameLine(a: RawLine, b: RawLine): boolean {
  return a.length === b.length && a.longLeafHash === b.longLeafHash && equalBytes(a.bytes, b.bytes);
}

function describeFork(a: DescribedLine, b: DescribedLine): LedgerDiff['fork'] {
  const differs = a.value !== undefined && b.value !== undefined ? differingMembers(a.value, b.value) : [];
  return { a: a.record, b: b.record, differs };
}

/** The pointers of the members of a record, and of its event, that differ, sorted. */
function differingMembers(a: JsonObject, b: JsonObject): string[] {
  return differingKeys(a, b).flatMap((key) => {
    const [eventA, eventB] = [a[key], b[key]];
    if (key !== 'event' || !isJsonObject(eventA) || !isJsonObject(eventB)) return [`/${escapePointer(key)}`];
    return differingKeys(eventA, eventB).map((member) => `/event/${escapePointer(member)}`);
  });
}

function differingKeys(a: JsonObject, b: JsonObject): string[] {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)]);
  return [...keys].filter((key) => memberText(a, key) !== memberText(b, key)).sort();
}

function memberText(object: JsonObject, key: string): string | undefined {
  return Object.hasOwn(object, key) ? canonicalText(object[key]) : undefined;
}
