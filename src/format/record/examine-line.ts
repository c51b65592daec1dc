/**
 * Examines a line by itself: its bytes (SPEC §1), its shape and values (§2–§4) and its event's identity (§3). Stateless, so that lines may
 * be examined in any order or in parallel; `rules/verify/` checks what depends on earlier lines.
 */

import { glanceAt, readScannedLine } from '#fast/line';
import { allocateScratch } from '../../base/bytes/concat.js';
import { decodeUtf8 } from '../../base/bytes/text.js';
import type { ValueFault } from '../../base/fault.js';
import { diagnoseCanonical } from '../../base/json/diagnose.js';
import { MemberMarks, scanCanonical } from '../../base/json/scan.js';
import { isJsonObject, type JsonObject, type JsonValue, membersOf } from '../../base/json/value.js';
import { isSha256Text, toDigestText } from '../../base/value/digest.js';
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

/** `offset` is from the line's start. */
type LineFault = ValueFault<FindingCode>;

export interface SignatureEntry {
  readonly keyid: string;
  readonly sig: string;
}

/** The facts of a line, each defined only if it has the right form. Plain data: `structuredClone` keeps it. */
interface CommonFacts {
  readonly layout: Layout | undefined;
  readonly faults: readonly LineFault[];
  readonly seq: number | undefined;
  /** Digests are base64url. */
  readonly prev: string | undefined;
  /** As claimed by the event. */
  readonly eventId: string | undefined;
  readonly ledgerId: string | undefined;
  /** `prev_event_id`. */
  readonly previousId: string | undefined;
  /** `event_type`, `occurred_at`, `principal_id`: any strings if the event is not well-formed. */
  readonly eventType: string | undefined;
  readonly occurredAt: string | undefined;
  readonly principalId: string | undefined;
  /** The tool of an execution, a start or an action. */
  readonly toolName: string | undefined;
  readonly signatures: readonly SignatureEntry[] | undefined;
  /** The event's bytes in the line. */
  readonly span: Span | undefined;
}

/** The facts of a line whose event has the shape and values of its type. */
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

interface OtherFacts extends CommonFacts {
  readonly wellFormed: false;
  readonly type: undefined;
}

/** The facts without the event, which {@link withEvent} restores from the line's bytes. */
export type LineFacts = { readonly [T in TypeName]: WellFormedFacts<T> }[TypeName] | OtherFacts;

interface HasJson {
  /** The parsed event, well-formed or not; undefined if the line has no object in its place. */
  json(): JsonObject | undefined;
}

export type WellFormedLine<T extends TypeName = TypeName> = {
  readonly [U in T]: WellFormedFacts<U> &
    HasJson & {
      event(): EventTypes[U];
      /** Undefined for types whose rules read the event itself. */
      outline(): OutlineOf<U>;
      /** Undefined for other types than authorizations. */
      terms(): AuthorizationTerms | (U extends 'authorization' ? never : undefined);
    };
}[T];

/** The facts of a line, with its event on demand; discriminated by `type`. */
export type ExaminedLine = WellFormedLine | (OtherFacts & HasJson);

/** The facts of a scanned line, with its event on demand. */
export type ScannedFacts = CommonFacts & HasJson & Pick<LineFacts, 'type' | 'wellFormed'>;

type RecordFacts = Pick<CommonFacts, 'layout' | 'faults' | 'seq' | 'prev' | 'signatures'>;

type EventFacts = Omit<CommonFacts, keyof RecordFacts> & Pick<LineFacts, 'type' | 'wellFormed'>;

/** Its own members are the facts; a clone has only these. */
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

  /** @param source - The event, or the line that it is parsed from on first use. */
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

function toLine(record: RecordFacts, event: EventFacts, json?: JsonObject): ExaminedLine {
  return new Line(record, event, { event: json }) as HasJson as ExaminedLine;
}

/**
 * A line of known facts, for example from another thread. The event is parsed on first use.
 *
 * @param line - The bytes of these facts; they MUST NOT change while the event may be requested.
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

/** In use only during {@link examineFully}. */
const marks = new MemberMarks();

/**
 * Examines one line: scannable records on the fast path, all others fully.
 *
 * @param line - The line without `\n`, 1 to 65,535 bytes.
 * @param layout - The layout of the ledger; `undefined` to detect it from this line.
 */
export function examineLine(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  const fast = layout === 'bare' ? undefined : glanceAt(line);
  return fast === undefined ? examineFully(line, layout) : asPlainData(fast, line);
}

/** {@link examineLine}, cheaper: the result is not plain data. */
export function examineLazily(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  const fast = layout === 'bare' ? undefined : readScannedLine(line);
  return (fast as HasJson | undefined as ExaminedLine | undefined) ?? examineFully(line, layout);
}

function asPlainData(fast: ScannedFacts, line: Uint8Array): ExaminedLine {
  const bytes = allocateScratch(line.length);
  bytes.set(line);
  return new Line(fast, fast, bytes) as HasJson as ExaminedLine;
}

/** The slow path: the definition, and the source of all faults. */
export function examineFully(line: Uint8Array, layout: Layout | undefined): ExaminedLine {
  if (scanCanonical(line, 0, line.length, marks) !== -1)
    return toLine({ ...NO_RECORD, faults: [findByteFault(line)] }, NO_EVENT);
  const value = parseJson(line);
  if (!isJsonObject(value)) {
    const fault = { code: 'SCHEMA', pointer: '', expected: 'an object', actual: kindOf(value) } as const;
    return toLine({ ...NO_RECORD, faults: [fault] }, NO_EVENT);
  }
  const actualLayout =
    layout ?? (Object.hasOwn(value, 'event_type') && !Object.hasOwn(value, 'event') ? 'bare' : 'records');
  return actualLayout === 'bare' ? examineBareEvent(line, value) : examineRecord(line, value);
}

/**
 * The result for a record without `meta` that this process made: nothing is checked again. The event and the signatures MUST be valid.
 *
 * @param event - Parsed from its bytes in the line, at `span`.
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
  if (span === undefined || !isJsonObject(event)) return toLine(facts, NO_EVENT);
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

/** The tool of an execution or an action. */
function toolOf({ tool_name: own, authorization }: JsonObject): JsonValue | undefined {
  return own ?? membersOf(membersOf(authorization)['action'])['tool_name'];
}

function findByteFault(line: Uint8Array): LineFault {
  const fault = diagnoseCanonical(line);
  if (fault === undefined) throw new Error('scan and diagnosis disagree');
  return fault;
}

function findIdentityFaults(event: JsonObject, identity: EventIdentity, root: string): LineFault[] {
  const faults: LineFault[] = [];
  addMismatch(faults, 'PAYLOAD_DIGEST_MISMATCH', event, root, 'payload_digest', identity.payloadDigest);
  addMismatch(faults, 'EVENT_ID_MISMATCH', event, root, 'event_id', identity.eventId);
  return faults;
}

/** Digests are canonical base64url on both sides, so they are compared as text. */
function addMismatch(
  faults: LineFault[],
  code: FindingCode,
  event: JsonObject,
  root: string,
  name: string,
  computed: string,
): void {
  const claimed = digestText(event[name]);
  if (claimed === undefined || claimed === computed) return;
  const [expected, actual] = [toDigestText(computed), toDigestText(claimed)];
  faults.push({ code, pointer: `${root}/${name}`, expected, actual });
}

function digestText(value: JsonValue | undefined): string | undefined {
  if (value === undefined || !isJsonObject(value) || value['alg'] !== 'sha-256') return undefined;
  const b64 = value['b64'];
  return typeof b64 === 'string' && isSha256Text(b64) ? b64 : undefined;
}

function signaturesOf(
  value: JsonValue | undefined,
  wellFormed: boolean,
): readonly SignatureEntry[] | undefined {
  if (!Array.isArray(value) || value.length > MAX_SIGNATURES) return undefined;
  // The schema has checked those of a well-formed record.
  return wellFormed || value.every(isSignature)
    ? (value as readonly object[] as readonly SignatureEntry[])
    : undefined;
}

function isSignature(entry: JsonValue): boolean {
  return isJsonObject(entry) && typeof entry['keyid'] === 'string' && typeof entry['sig'] === 'string';
}

function textOf(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'an array' : `a ${typeof value}`;
}
