/**
 * Everything that can be said of a line without knowing any other: its bytes (SPEC §1), its shape and values (§2–§4)
 * and its event's identity (§3). Pure and free of state, so that lines may be examined in any order or in parallel; what
 * depends on earlier lines is `verify/`'s.
 */

import { glanceAt, readScannedLine } from '#fast/line';
import { allocateScratch } from '../../base/bytes/concat.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import type { ValueFault } from '../../base/fault.js';
import { diagnoseCanonical } from '../../base/json/diagnose.js';
import { MemberMarks, scanCanonical } from '../../base/json/scan.js';
import type { JsonObject, JsonValue } from '../../base/json/value.js';
import { toDigestText } from '../../base/value/digest.js';
import type { EventIdentity } from '../event/identity.js';
import { type AuthorizationTerms, outlineEvent, type OutlineOf } from '../event/outline.js';
import { type EventTypes, type TypeName, typeNameOf } from '../event/typed-event.js';
import type { FindingCode } from '../finding/catalog.js';
import { checkEvent, checkRecord } from '../schema/check.js';
import { MAX_SIGNATURES } from '../signature/dsse.js';
import { findMember, hashEvent, type Span } from './event-bytes.js';
import { MAX_META_BYTES } from './line-splitter.js';

/** Whether lines are records, or bare events with no record around them (SPEC §4). */
export type Layout = 'records' | 'bare';

/** One fault of a line; `offset` is from the line's start. */
type LineFault = ValueFault<FindingCode>;

/** One signature of a record. */
export interface SignatureEntry {
  readonly keyid: string;
  readonly sig: string;
}

/** What a line says of itself, each member only where it has the right form. Plain data: `structuredClone` keeps it. */
interface CommonFacts {
  readonly layout: Layout | undefined;
  readonly faults: readonly LineFault[];
  readonly seq: number | undefined;
  /** base64url. */
  readonly prev: string | undefined;
  /** The id that the event claims, base64url. */
  readonly eventId: string | undefined;
  /** The ledger that the event says it is for, base64url. */
  readonly ledgerId: string | undefined;
  /** The earlier event that it says it follows, base64url. */
  readonly previousId: string | undefined;
  /** `event_type`, `occurred_at`, `principal_id`: any strings, where the event is not of its form. */
  readonly eventType: string | undefined;
  readonly occurredAt: string | undefined;
  readonly principalId: string | undefined;
  /** The tool of an execution, a start or an action. */
  readonly toolName: string | undefined;
  readonly signatures: readonly SignatureEntry[] | undefined;
  /** Where the event's bytes lie in the line. */
  readonly span: Span | undefined;
}

/** Of a line whose event has the shape and the values of its type, {@link WellFormedFacts.type}. */
interface WellFormedFacts<T extends TypeName> extends CommonFacts {
  readonly wellFormed: true;
  readonly type: T;
  readonly layout: Layout;
  readonly eventId: string;
  readonly eventType: string;
  readonly occurredAt: string;
  readonly principalId: string;
  readonly span: Span;
}

/** Of any other line. */
interface OtherFacts extends CommonFacts {
  readonly wellFormed: false;
  readonly type: undefined;
}

/** What can be said of a line without its event: {@link withEvent} gives that again, from the line's bytes. */
export type LineFacts = { readonly [T in TypeName]: WellFormedFacts<T> }[TypeName] | OtherFacts;

interface HasJson {
  /** The event as it was parsed, well-formed or not; undefined where the line holds no object in its place. */
  json(): JsonObject | undefined;
}

/** A line whose event is well-formed, and of one type. */
export type WellFormedLine<T extends TypeName = TypeName> = {
  readonly [U in T]: WellFormedFacts<U> &
    HasJson & {
      event(): EventTypes[U];
      /** What verification's rules ask of it, where that is not the event itself. */
      outline(): OutlineOf<U>;
      /** Of an authorization; undefined for others. */
      terms(): AuthorizationTerms | (U extends 'authorization' ? never : undefined);
    };
}[T];

/** The facts of a line, and its event where it is asked for. `type` tells which. */
export type ExaminedLine = WellFormedLine | (OtherFacts & HasJson);

/** What a scanned line says: all facts, and the event where it is asked for. */
export type ScannedFacts = CommonFacts & HasJson & Pick<LineFacts, 'type' | 'wellFormed'>;

/** What the record around an event says. */
type RecordFacts = Pick<CommonFacts, 'layout' | 'faults' | 'seq' | 'prev' | 'signatures'>;

/** What the event says. */
type EventFacts = Omit<CommonFacts, keyof RecordFacts> & Pick<LineFacts, 'type' | 'wellFormed'>;

/** Its own members are the facts, and a clone has these alone. */
class Line implements CommonFacts, HasJson {
  readonly layout: Layout | undefined;
  readonly faults: readonly LineFault[];
  readonly seq: number | undefined;
  readonly prev: string | undefined;
  readonly signatures: readonly SignatureEntry[] | undefined;
  readonly wellFormed: boolean;
  readonly type: TypeName | undefined;
  readonly eventId: string | undefined;
  readonly ledgerId: string | undefined;
  readonly previousId: string | undefined;
  readonly eventType: string | undefined;
  readonly occurredAt: string | undefined;
  readonly principalId: string | undefined;
  readonly toolName: string | undefined;
  readonly span: Span | undefined;
  readonly #line: Uint8Array | undefined;
  #event: JsonObject | undefined;
  #outline: OutlineOf<TypeName>;

  /** @param source - The event, or the line that it is parsed from when it is asked for first. */
  constructor(
    record: RecordFacts,
    event: EventFacts,
    source: { event: JsonObject | undefined } | Uint8Array,
  ) {
    this.layout = record.layout;
    this.faults = record.faults;
    this.seq = record.seq;
    this.prev = record.prev;
    this.signatures = record.signatures;
    this.wellFormed = event.wellFormed;
    this.type = event.type;
    this.eventId = event.eventId;
    this.ledgerId = event.ledgerId;
    this.previousId = event.previousId;
    this.eventType = event.eventType;
    this.occurredAt = event.occurredAt;
    this.principalId = event.principalId;
    this.toolName = event.toolName;
    this.span = event.span;
    if (source instanceof Uint8Array) this.#line = source;
    else this.#event = source.event;
  }

  json(): JsonObject | undefined {
    const { span } = this;
    if (this.#event === undefined && this.#line !== undefined && span !== undefined)
      this.#event = parseJson(this.#line.subarray(span.start, span.end)) as JsonObject;
    return this.#event;
  }

  event(): JsonObject | undefined {
    return this.json();
  }

  terms(): AuthorizationTerms | undefined {
    return this.type === 'authorization' ? (this.outline() as OutlineOf<'authorization'>) : undefined;
  }

  outline(): OutlineOf<TypeName> {
    if (this.type === undefined) return undefined;
    return (this.#outline ??= outlineEvent(this.type, this.json() as object as EventTypes[TypeName]));
  }
}

/** Here the facts get the types that they stand for. */
function toLine(record: RecordFacts, event: EventFacts, json?: JsonObject): ExaminedLine {
  return new Line(record, event, { event: json }) as HasJson as ExaminedLine;
}

/**
 * A line of which the facts are known already, say from another thread. The event is parsed when it is asked for first.
 *
 * @param line - The very bytes that the facts are of; unchanged as long as the event may be asked for.
 */
export function withEvent(facts: LineFacts | ExaminedLine, line: Uint8Array): ExaminedLine {
  const made: HasJson = 'json' in facts ? facts : new Line(facts, facts, line);
  return made as ExaminedLine;
}

const NO_RECORD = { layout: undefined, seq: undefined, prev: undefined, signatures: undefined } as const;

const NO_EVENT: EventFacts = {
  wellFormed: false,
  type: undefined,
  eventId: undefined,
  ledgerId: undefined,
  previousId: undefined,
  eventType: undefined,
  occurredAt: undefined,
  principalId: undefined,
  toolName: undefined,
  span: undefined,
};

/** Free when {@link examineFully} returns: what it gives are spans. */
const marks = new MemberMarks();

/**
 * Examines one line: scannable records the fast path, all others fully.
 *
 * @param line - The line's bytes without `\n`, at most 65,535 and at least one.
 * @param layout - The layout of the ledger; `undefined` to take it from this line.
 */
export function examineLine(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  const fast = layout === 'bare' ? undefined : glanceAt(line);
  return fast === undefined ? examineFully(line, layout) : asPlainData(fast, line);
}

/** As {@link examineLine}; what it gives is not plain data and costs less. */
export function examineLazily(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  const fast = layout === 'bare' ? undefined : readScannedLine(line);
  return (fast as HasJson | undefined as ExaminedLine | undefined) ?? examineFully(line, layout);
}

function asPlainData(fast: ScannedFacts, line: Uint8Array): ExaminedLine {
  const bytes = allocateScratch(line.length);
  bytes.set(line);
  return new Line(fast, fast, bytes) as HasJson as ExaminedLine;
}

/** What the fast path is held against, and what says what is wrong with a line. */
export function examineFully(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  if (scanCanonical(line, 0, line.length, marks) !== -1) {
    return toLine({ ...NO_RECORD, faults: [findByteFault(line)] }, NO_EVENT);
  }
  const value = parseJson(line);
  if (!isObject(value)) {
    const fault = { code: 'SCHEMA', pointer: '', expected: 'an object', actual: kindOf(value) } as const;
    return toLine({ ...NO_RECORD, faults: [fault] }, NO_EVENT);
  }
  const actualLayout =
    layout ?? (Object.hasOwn(value, 'event_type') && !Object.hasOwn(value, 'event') ? 'bare' : 'records');
  return actualLayout === 'bare' ? examineBareEvent(line, value) : examineRecord(line, value);
}

/**
 * The same of a record without `meta` whose event was completed and checked here, and whose signatures are of the right form: nothing
 * of it is looked at again.
 *
 * @param event - As its bytes in the line say it, which lie at `span`.
 */
export function examineMade(
  event: JsonObject,
  span: Span,
  around: { readonly seq: number; readonly prev: string; readonly signatures: readonly SignatureEntry[] },
): WellFormedLine {
  const { seq, prev, signatures } = around;
  const record = { layout: 'records', faults: [], seq, prev, signatures } as const;
  return toLine(record, factsOf(event, true, span), event) as WellFormedLine;
}

function parseJson(bytes: Uint8Array): JsonValue {
  return JSON.parse(decodeUtf8(bytes)) as JsonValue;
}

function examineBareEvent(line: Uint8Array, event: JsonObject): ExaminedLine {
  const span = { start: 0, end: line.length };
  const identity = hashEvent(line, marks, span, 1);
  const shape = checkEvent(event);
  const faults = [...shape, ...findIdentityFaults(event, identity, '')];
  return toLine({ ...NO_RECORD, layout: 'bare', faults }, factsOf(event, shape.length === 0, span), event);
}

function examineRecord(line: Uint8Array, record: JsonObject): ExaminedLine {
  const faults: LineFault[] = checkRecord(record);
  const recordFaults = faults.length;
  const meta = findMember(line, marks, 'meta');
  if (meta !== undefined && meta.end - meta.start > MAX_META_BYTES) {
    const actual = `${meta.end - meta.start} bytes`;
    faults.push({ code: 'SCHEMA', pointer: '/meta', expected: `at most ${MAX_META_BYTES} bytes`, actual });
  }
  const seq = record['seq'];
  const facts: RecordFacts = {
    layout: 'records',
    faults,
    seq: Number.isSafeInteger(seq) && (seq as number) >= 0 ? (seq as number) : undefined,
    prev: digestText(record['prev']),
    signatures: signaturesOf(record['signatures'], recordFaults === 0),
  };
  const event = record['event'];
  const span = findMember(line, marks, 'event');
  if (span === undefined || !isObject(event)) return toLine(facts, NO_EVENT);
  const shape = checkEvent(event);
  for (const fault of shape) faults.push({ ...fault, pointer: `/event${fault.pointer}` });
  faults.push(...findIdentityFaults(event, hashEvent(line, marks, span, 2), '/event'));
  return toLine(facts, factsOf(event, shape.length === 0, span), event);
}

function factsOf(event: JsonObject, wellFormed: boolean, span: Span): EventFacts {
  const { event_type: type, occurred_at: occurredAt, principal_id: principalId } = event;
  return {
    wellFormed,
    type: wellFormed ? typeNameOf(type) : undefined,
    eventId: digestText(event['event_id']),
    ledgerId: digestText(event['ledger_id']),
    previousId: digestText(event['prev_event_id']),
    eventType: textOf(type),
    occurredAt: textOf(occurredAt),
    principalId: textOf(principalId),
    toolName: textOf(toolOf(event)),
    span,
  };
}

/** The tool of an execution, or of an action. */
function toolOf({ tool_name: own, authorization }: JsonObject): JsonValue | undefined {
  return own ?? objectOf(objectOf(authorization)['action'])['tool_name'];
}

function findByteFault(line: Uint8Array): LineFault {
  const fault = diagnoseCanonical(line);
  if (fault === undefined) throw new Error('scan and diagnosis disagree');
  return fault;
}

/** Digests are compared as text: both sides are canonical base64url, or they differ. */
function findIdentityFaults(event: JsonObject, identity: EventIdentity, root: string): LineFault[] {
  const faults: LineFault[] = [];
  const claimedDigest = digestText(event['payload_digest']);
  if (claimedDigest !== undefined && claimedDigest !== identity.payloadDigest) {
    faults.push({
      code: 'PAYLOAD_DIGEST_MISMATCH',
      pointer: `${root}/payload_digest`,
      expected: toDigestText(identity.payloadDigest),
      actual: toDigestText(claimedDigest),
    });
  }
  const claimedId = digestText(event['event_id']);
  if (claimedId !== undefined && claimedId !== identity.eventId) {
    faults.push({
      code: 'EVENT_ID_MISMATCH',
      pointer: `${root}/event_id`,
      expected: toDigestText(identity.eventId),
      actual: toDigestText(claimedId),
    });
  }
  return faults;
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
  if (!Array.isArray(value) || value.length > MAX_SIGNATURES) return undefined;
  // Of a well-formed record the schema has looked at each.
  return wellFormed || value.every(isSignature)
    ? (value as readonly object[] as readonly SignatureEntry[])
    : undefined;
}

function isSignature(entry: JsonValue): boolean {
  return isObject(entry) && typeof entry['keyid'] === 'string' && typeof entry['sig'] === 'string';
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}
