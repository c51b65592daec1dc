/**
 * Everything that can be said of a line without knowing any other: its bytes (SPEC §1), its shape and values (§2–§4)
 * and its event's identity (§3). Pure and free of state, so that lines may be examined in any order or in parallel; what
 * depends on earlier lines is `verify/`'s.
 */

import { decodeUtf8 } from '../bytes/text.js';
import { diagnoseCanonical } from '../json/diagnose.js';
import type { EventIdentity } from '../event/identity.js';
import { MemberMarks, scanCanonical } from '../json/scan.js';
import type { JsonObject, JsonValue } from '../json/value.js';
import type { FindingCode } from '../finding/catalog.js';
import { checkEvent, checkRecord } from '../schema/check.js';
import { findMember, hashEvent, type Span } from './event-bytes.js';

/** The most bytes that a record's `meta` may have (SPEC §4). */
export const MAX_META_BYTES = 4_096;

/** Whether lines are records, or bare events with no record around them (SPEC §4). */
export type Layout = 'records' | 'bare';

/** One fault of a line; `offset` and `length` (bytes, from the line's start) are given where only a part of the line is meant. */
export interface LineIssue {
  readonly code: FindingCode;
  readonly pointer?: string;
  readonly expected?: string;
  readonly actual?: string;
  readonly offset?: number;
}

/** One signature of a record. */
export interface SignatureEntry {
  readonly keyid: string;
  readonly sig: string;
}

/** What a line says of itself, each member only where it has the right form. */
export interface ExaminedLine {
  readonly layout: Layout | undefined;
  readonly issues: readonly LineIssue[];
  readonly seq: number | undefined;
  /** base64url. */
  readonly prev: string | undefined;
  /** The id that the event claims, base64url. */
  readonly eventId: string | undefined;
  /** The ledger that the event says it is for, base64url. */
  readonly ledgerId: string | undefined;
  readonly event: JsonObject | undefined;
  /** Whether the event has the shape and the values of its type. */
  readonly wellFormed: boolean;
  readonly signatures: readonly SignatureEntry[] | undefined;
  /** Where the event's bytes lie in the line. */
  readonly span: Span | undefined;
}

const unreadable = {
  layout: undefined,
  seq: undefined,
  prev: undefined,
  eventId: undefined,
  ledgerId: undefined,
  event: undefined,
  wellFormed: false,
  signatures: undefined,
  span: undefined,
} as const;

const marks = new MemberMarks();

/**
 * Examines one line.
 *
 * @param line - The line's bytes without `\n`, at most 65,535 and at least one.
 * @param layout - The layout of the ledger; `undefined` to take it from this line.
 */
export function examineLine(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  if (scanCanonical(line, 0, line.length, marks) !== -1) return { ...unreadable, issues: [byteIssue(line)] };
  const value = JSON.parse(decodeUtf8(line)) as JsonValue;
  if (!isObject(value)) {
    const issue = { code: 'SCHEMA', pointer: '', expected: 'an object', actual: kindOf(value) } as const;
    return { ...unreadable, issues: [issue] };
  }
  const actualLayout =
    layout ?? (Object.hasOwn(value, 'event_type') && !Object.hasOwn(value, 'event') ? 'bare' : 'records');
  return actualLayout === 'bare' ? examineBareEvent(line, value) : examineRecord(line, value);
}

function examineBareEvent(line: Uint8Array, event: JsonObject): ExaminedLine {
  const shape = checkEvent(event);
  const span = { start: 0, end: line.length };
  const issues = [...shape, ...identityIssues(event, hashEvent(line, marks, span, 1), '')];
  const eventId = digestText(event['event_id']);
  const ledgerId = digestText(event['ledger_id']);
  return {
    ...unreadable,
    layout: 'bare',
    issues,
    eventId,
    ledgerId,
    event,
    wellFormed: shape.length === 0,
    span,
  };
}

function examineRecord(line: Uint8Array, record: JsonObject): ExaminedLine {
  const issues: LineIssue[] = checkRecord(record);
  const recordFaults = issues.length;
  const meta = findMember(line, marks, 'meta');
  if (meta !== undefined && meta.end - meta.start > MAX_META_BYTES) {
    const actual = `${meta.end - meta.start} bytes`;
    issues.push({ code: 'SCHEMA', pointer: '/meta', expected: `at most ${MAX_META_BYTES} bytes`, actual });
  }
  const seq = record['seq'];
  const common = {
    layout: 'records',
    issues,
    seq: Number.isSafeInteger(seq) && (seq as number) >= 0 ? (seq as number) : undefined,
    prev: digestText(record['prev']),
    signatures: signaturesOf(record['signatures'], recordFaults === 0),
  } as const;
  const event = record['event'];
  const span = findMember(line, marks, 'event');
  if (span === undefined || !isObject(event)) return { ...unreadable, ...common };
  const shape = checkEvent(event);
  for (const issue of shape) issues.push({ ...issue, pointer: `/event${issue.pointer}` });
  issues.push(...identityIssues(event, hashEvent(line, marks, span, 2), '/event'));
  return {
    ...common,
    eventId: digestText(event['event_id']),
    ledgerId: digestText(event['ledger_id']),
    event,
    wellFormed: shape.length === 0,
    span,
  };
}

function byteIssue(line: Uint8Array): LineIssue {
  const issue = diagnoseCanonical(line);
  if (issue === undefined) throw new Error('scan and diagnosis disagree');
  return issue;
}

/** Digests are compared as text: both sides are canonical base64url, or they differ. */
function identityIssues(event: JsonObject, identity: EventIdentity, root: string): LineIssue[] {
  const issues: LineIssue[] = [];
  const claimedDigest = digestText(event['payload_digest']);
  if (claimedDigest !== undefined && claimedDigest !== identity.payloadDigest) {
    issues.push({
      code: 'PAYLOAD_DIGEST_MISMATCH',
      pointer: `${root}/payload_digest`,
      expected: `sha-256:${identity.payloadDigest}`,
      actual: `sha-256:${claimedDigest}`,
    });
  }
  const claimedId = digestText(event['event_id']);
  if (claimedId !== undefined && claimedId !== identity.eventId) {
    issues.push({
      code: 'EVENT_ID_MISMATCH',
      pointer: `${root}/event_id`,
      expected: `sha-256:${identity.eventId}`,
      actual: `sha-256:${claimedId}`,
    });
  }
  return issues;
}

/** 42 characters of 6 bits and one whose two low bits are 0: the only spelling of 32 bytes. */
const SHA256_TEXT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

function digestText(value: JsonValue | undefined): string | undefined {
  if (value === undefined || !isObject(value) || value['alg'] !== 'sha-256') return undefined;
  const b64 = value['b64'];
  return typeof b64 === 'string' && SHA256_TEXT.test(b64) ? b64 : undefined;
}

function signaturesOf(
  value: JsonValue | undefined,
  wellFormed: boolean,
): readonly SignatureEntry[] | undefined {
  if (wellFormed) return value as unknown as readonly SignatureEntry[];
  if (!Array.isArray(value) || value.length > 16) return undefined;
  const isEntry = (entry: JsonValue): boolean =>
    isObject(entry) && typeof entry['keyid'] === 'string' && typeof entry['sig'] === 'string';
  return value.every(isEntry) ? (value as unknown as readonly SignatureEntry[]) : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}
