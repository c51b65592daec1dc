/**
 * The usual record, recognised over its bytes: canonical form (SPEC §1), shape and values (§2–§4) in one pass that makes no objects.
 *
 * It says *yes* only where `examineFully` finds no fault but perhaps the identity's, and *no* wherever it is not sure: of grants, genesis,
 * keys and checkpoints, of amounts other than whole numbers and decimals, of whatever is unusual, and of all that is wrong. So *no*
 * means nothing; the line is then examined fully. Canonical JSON has its keys in one order, so the members of a record are expected in
 * that order.
 *
 * Of a usual record it keeps in a row of numbers where those members lie that verification asks for. A row can be sent to another
 * thread, and `QuickLine` reads it.
 */

import { decodeLatin1, encodeLatin1 } from '../bytes/text.js';
import { MemberMarks, PLAIN, bytesAscend, endOfString, scanCanonical } from '../json/scan.js';
import { isKnownEventType } from '../schema/check.js';
import { MAX_SIGNATURES } from '../signature/dsse.js';
import { MAX_METERS } from '../value/meter.js';
import { daysInMonth } from '../value/timestamp.js';
import { MAX_LINE_BYTES } from './line-splitter.js';

/** The most bytes that a record's `meta` may have (SPEC §4). */
export const MAX_META_BYTES = 4_096;

/** How many numbers a record's row has. */
export const ROW_WIDTH = 40;

/** The types of usual records; 0 is none. */
export const AUTHORIZATION = 1;
export const EXECUTION = 2;
export const ADJUSTMENT = 3;
export const OTHER = 4;

/*
 * What stands where in a row. All places are offsets into the scanned bytes, 0 for what is absent: no member begins there. Of texts the
 * places of the first character and of the closing quote; of digests that are SHA-256 the place of their base64url; of any other digest
 * that of its `{`.
 */
export const TYPE = 0;
export const FLAGS = 1;
/** `seq` modulo 2^30, and what is above that. */
export const SEQ_LOW = 2;
export const SEQ_HIGH = 3;
export const LINE_START = 4;
export const LINE_END = 5;
export const EVENT_START = 6;
export const EVENT_END = 7;
export const PREV = 8;
export const SIGNATURES = 9;
export const SIGNATURE_COUNT = 10;
export const EVENT_ID = 11;
export const PAYLOAD_DIGEST = 12;
export const LEDGER_ID = 13;
export const PREVIOUS_ID = 14;
export const OCCURRED_AT = 15;
export const PRINCIPAL = 17;
/** Of a type that has no schema of its own. */
export const EVENT_TYPE = 19;
export const TOOL = 21;
/** `auth_event_id` of an execution, `grant_event_id` of an action or an adjustment. */
export const LINK = 23;
/** `execution_event_id` of an adjustment. */
export const EXECUTION_ID = 24;
export const INTENT = 25;
export const USER_INTENT = 26;
export const PARAMS = 27;
/** The place behind the `[` of the meters, and how many there are. */
export const METERS = 28;
export const METER_COUNT = 29;
export const STARTED_AT = 30;
export const ENDED_AT = 32;
/** Behind the last place. */
export const PLACES_END = 34;

/* What {@link FLAGS} are made of. */
export const IS_DENY = 1 << 0;
export const IS_FAILURE = 1 << 2;
export const IS_SUCCESS = 1 << 3;
export const IS_ABANDONED = 1 << 4;
export const IS_ESTIMATED = 1 << 5;
export const HAS_OUTPUT_DIGEST = 1 << 6;
export const HAS_OUTPUT_REF = 1 << 7;
export const IS_CREDIT = 1 << 8;
/** A check failed, or resources were touched: what the rules ask of these is read from the event. */
export const HAS_FAILED_CHECK = 1 << 9;
export const HAS_RESOURCES = 1 << 10;
const HAS_ERROR_CODE = 1 << 11;
/**
 * Not of the scan but of `examineBlock`: the line directly before this one, in the same block, is a usual record too; `prev` is its
 * leaf hash, `seq` is its own plus one, and `ledger_id` is there and the same as its own.
 */
export const IS_CHAINED = 1 << 12;

const QUOTE = 0x22;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/* Classes of bytes, a bit each. */
const BASE64URL = 1 << 0;
/** What may end 43 characters of base64url: its two low bits are 0. */
const ENDS_43 = 1 << 1;
/** What may end base64url of 4n + 2 characters: its four low bits are 0. */
const ENDS_2 = 1 << 2;
const IN_TOOL = 1 << 3;
const IN_PRINCIPAL = 1 << 4;
const ALPHANUMERIC = 1 << 5;
const IN_UNIT = 1 << 6;
const IN_CODE = 1 << 7;
const IN_ALG = 1 << 8;
const IN_TYPE = 1 << 9;
const LOWER = 1 << 10;

const CLASS = new Uint16Array(256);
const UPPER_CASE = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';
const LOWER_CASE = 'abcdefghijklmnopqrstuvwxyz';
const DIGITS = '0123456789';
for (const [bit, characters] of [
  [BASE64URL, `${UPPER_CASE}${LOWER_CASE}${DIGITS}-_`],
  [ENDS_43, 'AEIMQUYcgkosw048'],
  [ENDS_2, 'AQgw'],
  [IN_TOOL, `${UPPER_CASE}${LOWER_CASE}${DIGITS}_./:@+=#~-`],
  [IN_PRINCIPAL, `${UPPER_CASE}${LOWER_CASE}${DIGITS}._:@/+~-`],
  [ALPHANUMERIC, `${UPPER_CASE}${LOWER_CASE}${DIGITS}`],
  [IN_UNIT, `${LOWER_CASE}${DIGITS}_.-`],
  [IN_CODE, `${UPPER_CASE}${DIGITS}_`],
  [IN_ALG, `${LOWER_CASE}${DIGITS}-`],
  [IN_TYPE, `${UPPER_CASE}${LOWER_CASE}${DIGITS}_.:/-`],
  [LOWER, LOWER_CASE],
] as const) {
  for (const character of characters) CLASS[character.charCodeAt(0)]! |= bit;
}

/* Kinds of values. */
const NOTHING = 0;
const SHA256 = 1;
const DIGEST = 2;
const TIMESTAMP = 3;
const PRINCIPAL_ID = 4;
const TOOL_NAME = 5;
const CODE = 6;
const ERROR_CODE = 7;
const TEXT = 8;
const CHOICE = 9;
const METER_VECTOR = 10;
const SAFE_INTEGER = 11;
const OBJECT = 12;
const LIST = 13;
const TYPE_NAME = 14;
const PROFILE_ID = 15;

/** A member: what stands before its value, what that is, and what is kept of it. */
interface Member {
  readonly text: string;
  readonly kind: number;
  readonly required: boolean;
  /** The place in the row where the value's place is kept; 0 to keep none. */
  readonly slot: number;
  /** What is added to the flags where the member is there; of a list, where it is not empty. */
  readonly flag: number;
  /** Of a text the most characters, of an object or a list the number of the object, of meters the least number, of a choice its number. */
  readonly limit: number;
}

const NO_LIMIT = 0x7fffffff;

function must(name: string, kind: number, { slot = 0, flag = 0, limit = NO_LIMIT } = {}): Member {
  return { text: `"${name}":`, kind, required: true, slot, flag, limit };
}

function may(...args: Parameters<typeof must>): Member {
  return { ...must(...args), required: false };
}

/** A member that has one value. */
function constant(name: string, value: string): Member {
  return { ...must(name, NOTHING), text: `"${name}":${value}` };
}

/** Texts of which one must stand there, quotes included, each with the flag that it sets. */
type Choice = readonly (readonly [text: string, flag: number])[];

const DECISION = 0;
const OUTCOME = 1;
const RESULT = 2;
const DIRECTION = 3;
const BASIS = 4;
const CHOICES: readonly Choice[] = [
  /* DECISION */ [
    ['allow', 0],
    ['deny', IS_DENY],
  ],
  /* OUTCOME */ [
    ['success', IS_SUCCESS],
    ['failure', IS_FAILURE],
    ['unknown', 0],
  ],
  /* RESULT */ [
    ['pass', 0],
    ['fail', HAS_FAILED_CHECK],
  ],
  /* DIRECTION */ [
    ['credit', IS_CREDIT],
    ['debit', 0],
  ],
  /* BASIS */ [
    ['measured', 0],
    ['reported', 0],
    ['estimated', IS_ESTIMATED],
    ['billed', 0],
  ],
];

const CONTENT_REF = 0;
const SOURCE = 1;
const INTENTS = 2;
const RESOURCE = 3;
const CHECK = 4;
const HYGIENE = 5;
const ACTION = 6;
const ACTION_AUTHORIZATION = 7;
const AUTHORIZATION_EVENT = 8;
const EXECUTION_EVENT = 9;
const ADJUSTMENT_EVENT = 10;
const ENVELOPE = 11;

const PROFILE = constant('canonical_profile_id', '"northroot-jcs-v1"');
const VERSION = constant('event_version', '"1"');
const CONTEXT_OF = may('context_digest', DIGEST);
const ID_OF = must('event_id', SHA256, { slot: EVENT_ID });
const LEDGER_OF = may('ledger_id', SHA256, { slot: LEDGER_ID });
const TIME_OF = must('occurred_at', TIMESTAMP, { slot: OCCURRED_AT });
const PAYLOAD_OF = must('payload_digest', SHA256, { slot: PAYLOAD_DIGEST });
const PREVIOUS_OF = may('prev_event_id', SHA256, { slot: PREVIOUS_ID });
const PRINCIPAL_OF = must('principal_id', PRINCIPAL_ID, { slot: PRINCIPAL });
const INTENTS_OF = must('intents', OBJECT, { limit: INTENTS });
const SOURCE_OF = may('source', OBJECT, { limit: SOURCE });
const BASIS_OF = may('meter_basis', CHOICE, { limit: BASIS });

/** The objects of `schemas/`, each with its members in the order of canonical JSON. */
const OBJECTS: readonly (readonly Member[])[] = [
  /* CONTENT_REF */ [must('digest', DIGEST), may('media_type', TEXT), may('size_bytes', SAFE_INTEGER)],
  /* SOURCE */ [may('digest', DIGEST), must('id', TEXT, { limit: 512 }), must('system', TEXT, { limit: 64 })],
  /* INTENTS */ [
    must('intent_digest', DIGEST, { slot: INTENT }),
    may('intent_ref', OBJECT, { limit: CONTENT_REF }),
    may('user_intent_digest', DIGEST, { slot: USER_INTENT }),
  ],
  /* RESOURCE */ [must('kind', TEXT, { limit: 256 }), must('reference', TEXT, { limit: 1024 })],
  /* CHECK */ [
    must('check', TEXT, { limit: 64 }),
    may('code', CODE),
    must('result', CHOICE, { limit: RESULT }),
  ],
  /* HYGIENE: one that found nothing. */ [
    constant('metrics', '{}'),
    must('profile_id', PROFILE_ID),
    constant('status', '"Ok"'),
    constant('warnings', '[]'),
  ],
  /* ACTION */ [
    may('meter_reservation', METER_VECTOR, { slot: METERS, limit: 0 }),
    must('tool_name', TOOL_NAME, { slot: TOOL }),
    must('tool_params_digest', DIGEST, { slot: PARAMS }),
  ],
  /* ACTION_AUTHORIZATION */ [
    must('action', OBJECT, { limit: ACTION }),
    may('grant_event_id', SHA256, { slot: LINK }),
    constant('kind', '"action"'),
  ],
  /* AUTHORIZATION_EVENT */ [
    must('authorization', OBJECT, { limit: ACTION_AUTHORIZATION }),
    PROFILE,
    may('checks', LIST, { limit: CHECK }),
    CONTEXT_OF,
    must('decision', CHOICE, { limit: DECISION }),
    must('decision_code', CODE),
    ID_OF,
    constant('event_type', '"authorization"'),
    VERSION,
    may('hygiene', OBJECT, { limit: HYGIENE }),
    may('hygiene_digest', DIGEST),
    INTENTS_OF,
    LEDGER_OF,
    TIME_OF,
    PAYLOAD_OF,
    must('policy_digest', DIGEST),
    must('policy_id', TEXT, { limit: 256 }),
    PREVIOUS_OF,
    PRINCIPAL_OF,
    SOURCE_OF,
  ],
  /* EXECUTION_EVENT */ [
    must('auth_event_id', SHA256, { slot: LINK }),
    PROFILE,
    CONTEXT_OF,
    may('ended_at', TIMESTAMP, { slot: ENDED_AT }),
    may('error_code', ERROR_CODE, { flag: HAS_ERROR_CODE }),
    ID_OF,
    constant('event_type', '"execution"'),
    VERSION,
    INTENTS_OF,
    LEDGER_OF,
    BASIS_OF,
    must('meter_used', METER_VECTOR, { slot: METERS, limit: 0 }),
    may('model_id', TEXT),
    TIME_OF,
    must('outcome', CHOICE, { limit: OUTCOME }),
    may('output_digest', DIGEST, { flag: HAS_OUTPUT_DIGEST }),
    may('output_ref', OBJECT, { flag: HAS_OUTPUT_REF, limit: CONTENT_REF }),
    PAYLOAD_OF,
    PREVIOUS_OF,
    may('pricing_snapshot_digest', DIGEST),
    PRINCIPAL_OF,
    may('provider', TEXT),
    may('resources_touched', LIST, { flag: HAS_RESOURCES, limit: RESOURCE }),
    SOURCE_OF,
    may('started_at', TIMESTAMP, { slot: STARTED_AT }),
    must('tool_name', TOOL_NAME, { slot: TOOL }),
    may('tool_params_digest', DIGEST, { slot: PARAMS }),
  ],
  /* ADJUSTMENT_EVENT */ [
    PROFILE,
    CONTEXT_OF,
    must('direction', CHOICE, { limit: DIRECTION }),
    ID_OF,
    constant('event_type', '"adjustment"'),
    VERSION,
    may('evidence', OBJECT, { limit: CONTENT_REF }),
    may('execution_event_id', SHA256, { slot: EXECUTION_ID }),
    must('grant_event_id', SHA256, { slot: LINK }),
    LEDGER_OF,
    BASIS_OF,
    must('meters', METER_VECTOR, { slot: METERS, limit: 1 }),
    TIME_OF,
    PAYLOAD_OF,
    PREVIOUS_OF,
    PRINCIPAL_OF,
    must('reason', CODE),
    SOURCE_OF,
  ],
  /* ENVELOPE: what there is to see of an event of any other type. */ [
    PROFILE,
    CONTEXT_OF,
    ID_OF,
    must('event_type', TYPE_NAME, { slot: EVENT_TYPE }),
    VERSION,
    LEDGER_OF,
    TIME_OF,
    PAYLOAD_OF,
    PREVIOUS_OF,
    PRINCIPAL_OF,
  ],
];

/*
 * The same as numbers, which is what the scan reads: of member m the text `TEXTS[TEXT_AT[m] .. TEXT_AT[m + 1])`, and of object o the
 * members `FIRST[o] .. FIRST[o + 1]`. Likewise of the choices.
 */
const MEMBERS = OBJECTS.flat();
const FIRST = starts(OBJECTS.map(({ length }) => length));
const TEXT_AT = starts(MEMBERS.map(({ text }) => text.length));
const TEXTS = Uint8Array.from(encodeLatin1(MEMBERS.map(({ text }) => text).join('')));
const KINDS = Uint8Array.from(MEMBERS, ({ kind }) => kind);
const REQUIRED = Uint8Array.from(MEMBERS, ({ required }) => Number(required));
const SLOTS = Uint8Array.from(MEMBERS, ({ slot }) => slot);
const FLAG_OF = Int32Array.from(MEMBERS, ({ flag }) => flag);
const LIMITS = Int32Array.from(MEMBERS, ({ limit }) => limit);

const OPTIONS = CHOICES.flat();
const FIRST_OPTION = starts(CHOICES.map(({ length }) => length));
const OPTION_AT = starts(OPTIONS.map(([text]) => text.length + 2));
const OPTION_TEXTS = Uint8Array.from(encodeLatin1(OPTIONS.map(([text]) => `"${text}"`).join('')));
const OPTION_FLAGS = Int32Array.from(OPTIONS, ([, flag]) => flag);

function starts(lengths: readonly number[]): Int32Array {
  const places = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => {
    places[i + 1] = places[i]! + length;
  });
  return places;
}

const asBytes = (text: string): Uint8Array => Uint8Array.from(encodeLatin1(text));
const EVENT_MEMBER = asBytes('{"event":');
const META_MEMBER = asBytes(',"meta":');
const PREV_MEMBER = asBytes(',"prev":');
const SEQ_MEMBER = asBytes(',"seq":');
const SIGNATURES_MEMBER = asBytes(',"signatures":[');
const DIGEST_BEFORE_B64 = asBytes('{"alg":"sha-256","b64":"');
const ALG_MEMBER = asBytes('{"alg":"');
const B64_MEMBER = asBytes('","b64":"');
const AMOUNT_MEMBER = asBytes('{"amount":{');
const INT_BEFORE_V = asBytes('"t":"int","v":"');
const DEC_BEFORE_M = asBytes('"m":"');
const DEC_BEFORE_S = asBytes('","s":');
const DEC_AFTER_S = asBytes(',"t":"dec"},"unit":"');
const INT_AFTER_V = asBytes('"},"unit":"');
const KEYID_MEMBER = asBytes('{"keyid":"');
const SIG_MEMBER = asBytes('","sig":"');
const TOOL_MEMBER = asBytes('"tool_name"');
const AUTHORIZATION_MEMBER = asBytes('"authorization"');
const AGENT = asBytes('agent:');
const HUMAN = asBytes('human:');
const ORG = asBytes('org:');
const SERVICE = asBytes('service:');
const ABANDONED = asBytes('"ABANDONED"');

const B64_LENGTH = 43;
/** From a SHA-256 digest's `{` to its base64url. */
const B64_IN_DIGEST = DIGEST_BEFORE_B64.length;
const MAX_SIG_LENGTH = 200;
const MAX_DIGITS = 39;
const MAX_SCALE = 38;
/** Whatever has no more digits is a safe integer. */
const MAX_SAFE_DIGITS = 15;
const SEQ_BASE = 2 ** 30;

const marks = new MemberMarks();
const unitAt = new Int32Array(MAX_METERS);
const unitEnd = new Int32Array(MAX_METERS);

/**
 * Scans one line. It computes no hash: whether the event's ids are true is for `hasTrueIdentity`.
 *
 * @param bytes - `[start, end)` of them is the line, without `\n`.
 * @param rows - Row `at`, {@link ROW_WIDTH} numbers, is filled; what it holds after *no* means nothing.
 * @returns Whether it is a usual record.
 */
export function scanRecord(
  bytes: Uint8Array,
  start: number,
  end: number,
  rows: Int32Array,
  at: number,
): boolean {
  const base = at * ROW_WIDTH;
  if (end - start > MAX_LINE_BYTES || base + ROW_WIDTH > rows.length || end > bytes.length) return false;
  rows.fill(0, base, base + ROW_WIDTH);
  rows[base + LINE_START] = start;
  rows[base + LINE_END] = end;
  const event = after(EVENT_MEMBER, bytes, start);
  if (event < 0) return false;
  rows[base + EVENT_START] = event;
  let type = typeOf(bytes, event);
  let next = type === OTHER ? -1 : endOfEvent(type, bytes, event, rows, base);
  // What begins like one of the three may be another: an extension names its members as it likes.
  if (next < 0) {
    rows.fill(0, base + TYPE, base + LINE_START);
    rows.fill(0, base + EVENT_END, base + ROW_WIDTH);
    type = OTHER;
    next = endOfOther(bytes, start, end, rows, base);
  }
  if (next < 0 || endOfRecord(bytes, next, rows, base) !== end) return false;
  rows[base + EVENT_END] = next;
  rows[base + TYPE] = type;
  return true;
}

/** By the name of the first member. */
function typeOf(bytes: Uint8Array, event: number): number {
  // `{"auth_event_id":`, `{"authorization":`, `{"canonical_profile_id":`
  const third = bytes[event + 2];
  if (third === 0x61 && bytes[event + 6] === 0x6f) return AUTHORIZATION;
  if (third === 0x61 && bytes[event + 6] === 0x5f) return EXECUTION;
  return third === 0x63 ? ADJUSTMENT : OTHER;
}

/*
 * Each of the functions below takes the place where something is expected and gives that behind it, or a negative number where it is not
 * there. They may look behind the line's end; what they find there makes the record end elsewhere than the line.
 */

function endOfEvent(type: number, bytes: Uint8Array, from: number, rows: Int32Array, base: number): number {
  const event =
    type === AUTHORIZATION ? AUTHORIZATION_EVENT : type === EXECUTION ? EXECUTION_EVENT : ADJUSTMENT_EVENT;
  const end = endOfObject(event, bytes, from, rows, base);
  const flags = rows[base + FLAGS]!;
  if (type === EXECUTION && (flags & IS_FAILURE) !== 0 && (flags & HAS_ERROR_CODE) === 0) return -1;
  if (type !== AUTHORIZATION || (flags & IS_DENY) !== 0 || rows[base + LINK] !== 0) return end;
  // An allow has explicit bounds.
  return rows[base + METER_COUNT] === 0 ? -1 : end;
}

/** An event of any type without a schema of its own, in a line that is looked at whole: it may hold anything. */
function endOfOther(bytes: Uint8Array, start: number, end: number, rows: Int32Array, base: number): number {
  if (scanCanonical(bytes, start, end, marks) !== -1) return -1;
  const { rows: marked, count } = marks;
  // The first member of the record is the event; whether it is an object shows by the members in it.
  const eventEnd = marked[4]!;
  const last = FIRST[ENVELOPE + 1]!;
  let m = FIRST[ENVELOPE]!;
  for (let row = 5; row < 5 * count; row += 5) {
    const from = marked[row + 1]!;
    if (from >= eventEnd) break;
    const valueEnd = marked[row + 4]!;
    const valueStart = marked[row + 3]!;
    if (isMember(TOOL_MEMBER, bytes, from, valueStart)) {
      if (bytes[valueStart] !== QUOTE) return -1;
      rows[base + TOOL] = valueStart + 1;
      rows[base + TOOL + 1] = valueEnd - 1;
      continue;
    }
    // A known type's, or something that only looks like it: what tool it names is not for here.
    if (isMember(AUTHORIZATION_MEMBER, bytes, from, valueStart)) return -1;
    let known = m;
    while (known < last && !isText(TEXTS, TEXT_AT[known]!, TEXT_AT[known + 1]!, bytes, from)) known += 1;
    if (known === last) continue;
    for (; m < known; m += 1) if (REQUIRED[m] === 1) return -1;
    const behind = endOfValue(m, bytes, from + TEXT_AT[m + 1]! - TEXT_AT[m]!, rows, base);
    if (behind !== valueEnd) return -1;
    m += 1;
  }
  for (; m < last; m += 1) if (REQUIRED[m] === 1) return -1;
  const type = decodeLatin1(bytes, rows[base + EVENT_TYPE], rows[base + EVENT_TYPE + 1]);
  return isKnownEventType(type) ? -1 : eventEnd;
}

function isMember(name: Uint8Array, bytes: Uint8Array, from: number, valueStart: number): boolean {
  return valueStart - 1 - from === name.length && after(name, bytes, from) >= 0;
}

function endOfObject(
  object: number,
  bytes: Uint8Array,
  from: number,
  rows: Int32Array,
  base: number,
): number {
  if (bytes[from] !== OPEN) return -1;
  let at = from + 1;
  let m = FIRST[object]!;
  const last = FIRST[object + 1]!;
  for (;;) {
    for (;;) {
      if (m === last) return -1;
      const textAt = TEXT_AT[m]!;
      const textEnd = TEXT_AT[m + 1]!;
      if (isText(TEXTS, textAt, textEnd, bytes, at)) {
        at += textEnd - textAt;
        break;
      }
      if (REQUIRED[m] === 1) return -1;
      m += 1;
    }
    at = endOfValue(m, bytes, at, rows, base);
    if (at < 0) return -1;
    m += 1;
    const next = bytes[at];
    at += 1;
    if (next === COMMA) continue;
    if (next !== CLOSE) return -1;
    for (; m < last; m += 1) if (REQUIRED[m] === 1) return -1;
    return at;
  }
}

function isText(texts: Uint8Array, textAt: number, textEnd: number, bytes: Uint8Array, at: number): boolean {
  for (let i = textAt, j = at; i < textEnd; i += 1, j += 1) if (texts[i] !== bytes[j]) return false;
  return true;
}

function after(text: Uint8Array, bytes: Uint8Array, at: number): number {
  const { length } = text;
  for (let i = 0; i < length; i += 1) if (text[i] !== bytes[at + i]) return -1;
  return at + length;
}

/** The value of member `m`. */
function endOfValue(m: number, bytes: Uint8Array, at: number, rows: Int32Array, base: number): number {
  const slot = base + SLOTS[m]!;
  rows[base + FLAGS]! |= FLAG_OF[m]!;
  switch (KINDS[m]) {
    case NOTHING:
      return at;
    case SHA256:
      rows[slot] = at + B64_IN_DIGEST;
      return endOfSha256(bytes, at);
    case DIGEST:
      if (slot !== base) rows[slot] = at;
      return endOfDigest(bytes, at);
    case TIMESTAMP:
      return keep(endOfTimestamp(bytes, at), at, rows, slot);
    case PRINCIPAL_ID:
      return keep(endOfPrincipal(bytes, at), at, rows, slot);
    case TOOL_NAME:
      return keep(endOfClass(bytes, at, IN_TOOL, 1, 128), at, rows, slot);
    case TYPE_NAME:
      return keep(endOfTypeName(bytes, at), at, rows, slot);
    case CODE:
      return endOfClass(bytes, at, IN_CODE, 1, 64);
    case ERROR_CODE:
      if (after(ABANDONED, bytes, at) >= 0) rows[base + FLAGS]! |= IS_ABANDONED;
      return endOfClass(bytes, at, IN_CODE, 1, 64);
    case PROFILE_ID:
      return endOfClass(bytes, at, BASE64URL, 16, 128);
    case TEXT:
      return endOfText(bytes, at, LIMITS[m]!);
    case CHOICE:
      return endOfChoice(LIMITS[m]!, bytes, at, rows, base);
    case METER_VECTOR:
      return endOfMeters(bytes, at, LIMITS[m]!, rows, base);
    case SAFE_INTEGER:
      return endOfInteger(bytes, at, MAX_SAFE_DIGITS);
    case OBJECT:
      return endOfObject(LIMITS[m]!, bytes, at, rows, base);
    default:
      return endOfList(m, bytes, at, rows, base);
  }
}

/** Keeps the place of a text without its quotes. */
function keep(end: number, at: number, rows: Int32Array, slot: number): number {
  rows[slot] = at + 1;
  rows[slot + 1] = end - 1;
  return end;
}

function endOfSha256(bytes: Uint8Array, at: number): number {
  const b64 = after(DIGEST_BEFORE_B64, bytes, at);
  if (b64 < 0 || !isBase64url43(bytes, b64)) return -1;
  const close = b64 + B64_LENGTH;
  return bytes[close] === QUOTE && bytes[close + 1] === CLOSE ? close + 2 : -1;
}

function isBase64url43(bytes: Uint8Array, at: number): boolean {
  const last = at + B64_LENGTH - 1;
  let all = BASE64URL;
  for (let i = at; i < last; i += 1) all &= CLASS[bytes[i]!]!;
  return all !== 0 && (CLASS[bytes[last]!]! & ENDS_43) !== 0;
}

/** One of any algorithm; of SHA-256 in its own form. */
function endOfDigest(bytes: Uint8Array, at: number): number {
  if (after(DIGEST_BEFORE_B64, bytes, at) >= 0) return endOfSha256(bytes, at);
  const alg = after(ALG_MEMBER, bytes, at);
  if (alg < 0) return -1;
  let i = alg;
  while ((CLASS[bytes[i]!]! & IN_ALG) !== 0) i += 1;
  if (i === alg || i - alg > 32 || bytes[alg] === MINUS) return -1;
  const b64 = after(B64_MEMBER, bytes, i);
  if (b64 < 0) return -1;
  for (i = b64; (CLASS[bytes[i]!]! & BASE64URL) !== 0;) i += 1;
  const length = i - b64;
  if (length === 0 || length > 128 || length % 4 === 1) return -1;
  if (length % 4 === 2 && (CLASS[bytes[i - 1]!]! & ENDS_2) === 0) return -1;
  if (length % 4 === 3 && (CLASS[bytes[i - 1]!]! & ENDS_43) === 0) return -1;
  return bytes[i] === QUOTE && bytes[i + 1] === CLOSE ? i + 2 : -1;
}

/** A text of characters of one class. */
function endOfClass(bytes: Uint8Array, at: number, bit: number, least: number, most: number): number {
  if (bytes[at] !== QUOTE) return -1;
  let i = at + 1;
  while ((CLASS[bytes[i]!]! & bit) !== 0) i += 1;
  const length = i - at - 1;
  return length >= least && length <= most && bytes[i] === QUOTE ? i + 1 : -1;
}

function endOfTypeName(bytes: Uint8Array, at: number): number {
  const first = bytes[at + 1]!;
  if ((CLASS[first]! & ALPHANUMERIC) === 0 && first !== 0x5f) return -1;
  return endOfClass(bytes, at, IN_TYPE, 1, 128);
}

/** `human:`, `service:`, `agent:` or `org:`, and 1 to 255 characters. */
function endOfPrincipal(bytes: Uint8Array, at: number): number {
  if (bytes[at] !== QUOTE) return -1;
  let i: number;
  switch (bytes[at + 1]) {
    case 0x61:
      i = after(AGENT, bytes, at + 1);
      break;
    case 0x68:
      i = after(HUMAN, bytes, at + 1);
      break;
    case 0x6f:
      i = after(ORG, bytes, at + 1);
      break;
    case 0x73:
      i = after(SERVICE, bytes, at + 1);
      break;
    default:
      return -1;
  }
  if (i < 0 || (CLASS[bytes[i]!]! & ALPHANUMERIC) === 0) return -1;
  const name = i;
  while ((CLASS[bytes[i]!]! & IN_PRINCIPAL) !== 0) i += 1;
  return i - name <= 255 && bytes[i] === QUOTE ? i + 1 : -1;
}

/** Any text that is canonical, of at least one character where there is a most. */
function endOfText(bytes: Uint8Array, at: number, most: number): number {
  if (bytes[at] !== QUOTE) return -1;
  const from = at + 1;
  let i = from;
  while (PLAIN[bytes[i]!] === 1) i += 1;
  if (bytes[i] !== QUOTE) i = endOfString(bytes, i, bytes.length);
  if (i < 0 || (i === from && most !== NO_LIMIT)) return -1;
  return i - from <= most || countCharacters(bytes, from, i) <= most ? i + 1 : -1;
}

/** Of a canonical text: escapes are a character each, and those of UTF-8 have one byte that continues none. */
function countCharacters(bytes: Uint8Array, from: number, end: number): number {
  let count = 0;
  for (let i = from; i < end; i += 1) {
    if ((bytes[i]! & 0xc0) === 0x80) continue;
    if (bytes[i] === BACKSLASH) i += bytes[i + 1] === 0x75 ? 5 : 1;
    count += 1;
  }
  return count;
}

function endOfChoice(choice: number, bytes: Uint8Array, at: number, rows: Int32Array, base: number): number {
  for (let option = FIRST_OPTION[choice]!; option < FIRST_OPTION[choice + 1]!; option += 1) {
    const textAt = OPTION_AT[option]!;
    const textEnd = OPTION_AT[option + 1]!;
    if (!isText(OPTION_TEXTS, textAt, textEnd, bytes, at)) continue;
    rows[base + FLAGS]! |= OPTION_FLAGS[option]!;
    return at + textEnd - textAt;
  }
  return -1;
}

function endOfList(m: number, bytes: Uint8Array, from: number, rows: Int32Array, base: number): number {
  if (bytes[from] !== OPEN_BRACKET) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE_BRACKET) {
    rows[base + FLAGS]! &= ~FLAG_OF[m]!;
    return at + 1;
  }
  for (;;) {
    at = endOfObject(LIMITS[m]!, bytes, at, rows, base);
    if (at < 0) return -1;
    const next = bytes[at];
    at += 1;
    if (next === CLOSE_BRACKET) return at;
    if (next !== COMMA) return -1;
  }
}

/** A whole number that is not negative, of so many digits at most; other forms of numbers are not usual. */
function endOfInteger(bytes: Uint8Array, at: number, most: number): number {
  if (bytes[at] === ZERO) return at + 1;
  let i = at;
  while (isDigit(bytes[i]!)) i += 1;
  return i > at && i - at <= most ? i : -1;
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39;
}

/** Whole numbers and decimals that are not negative, each of another unit. */
function endOfMeters(bytes: Uint8Array, from: number, least: number, rows: Int32Array, base: number): number {
  if (bytes[from] !== OPEN_BRACKET) return -1;
  let at = from + 1;
  rows[base + METERS] = at;
  if (bytes[at] === CLOSE_BRACKET) return least === 0 ? at + 1 : -1;
  for (let count = 0; count < MAX_METERS; count += 1) {
    at = endOfAmount(bytes, at);
    if (at < 0) return -1;
    const unit = at;
    if ((CLASS[bytes[unit]!]! & LOWER) === 0) return -1;
    while ((CLASS[bytes[at]!]! & IN_UNIT) !== 0) at += 1;
    if (at - unit > 64 || bytes[at] !== QUOTE || bytes[at + 1] !== CLOSE) return -1;
    if (!isNewUnit(bytes, unit, at, count)) return -1;
    at += 2;
    const next = bytes[at];
    at += 1;
    if (next === CLOSE_BRACKET) {
      rows[base + METER_COUNT] = count + 1;
      return at;
    }
    if (next !== COMMA) return -1;
  }
  return -1;
}

/** From a meter's `{` to its unit. */
function endOfAmount(bytes: Uint8Array, from: number): number {
  const amount = after(AMOUNT_MEMBER, bytes, from);
  if (amount < 0) return -1;
  if (bytes[amount + 1] === 0x74) {
    const v = after(INT_BEFORE_V, bytes, amount);
    const end = v < 0 ? -1 : endOfInteger(bytes, v, MAX_DIGITS);
    return end < 0 ? -1 : after(INT_AFTER_V, bytes, end);
  }
  const m = after(DEC_BEFORE_M, bytes, amount);
  const end = m < 0 ? -1 : endOfInteger(bytes, m, MAX_DIGITS);
  const s = end < 0 ? -1 : after(DEC_BEFORE_S, bytes, end);
  const scaleEnd = s < 0 ? -1 : endOfInteger(bytes, s, 2);
  if (scaleEnd < 0 || (scaleEnd - s === 2 && twoDigits(bytes, s) > MAX_SCALE)) return -1;
  return after(DEC_AFTER_S, bytes, scaleEnd);
}

function isNewUnit(bytes: Uint8Array, from: number, end: number, count: number): boolean {
  unitAt[count] = from;
  unitEnd[count] = end;
  // Most are in order, and any in order is new; but those before it need not be.
  for (let i = 0; i < count; i += 1) {
    if (unitEnd[i]! - unitAt[i]! === end - from && sameBytes(bytes, unitAt[i]!, from, end - from))
      return false;
  }
  return true;
}

function sameBytes(bytes: Uint8Array, a: number, b: number, length: number): boolean {
  for (let i = 0; i < length; i += 1) if (bytes[a + i] !== bytes[b + i]) return false;
  return true;
}

/** Negative where they are not digits. */
function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = bytes[at]!;
  const ones = bytes[at + 1]!;
  return isDigit(tens) && isDigit(ones) ? (tens - ZERO) * 10 + ones - ZERO : -1;
}

/** As `isTimestamp` has it, with its quotes. */
function endOfTimestamp(bytes: Uint8Array, at: number): number {
  if (
    bytes[at] !== QUOTE ||
    bytes[at + 5] !== MINUS ||
    bytes[at + 8] !== MINUS ||
    bytes[at + 11] !== 0x54 ||
    bytes[at + 14] !== COLON ||
    bytes[at + 17] !== COLON
  ) {
    return -1;
  }
  const century = twoDigits(bytes, at + 1);
  const year = twoDigits(bytes, at + 3);
  const month = twoDigits(bytes, at + 6);
  const day = twoDigits(bytes, at + 9);
  if (century < 0 || year < 0 || month < 1 || month > 12 || day < 1) return -1;
  if (day > 28 && day > daysInMonth(century * 100 + year, month)) return -1;
  const hour = twoDigits(bytes, at + 12);
  const minute = twoDigits(bytes, at + 15);
  const second = twoDigits(bytes, at + 18);
  if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) return -1;
  let i = at + 20;
  if (bytes[i] === DOT) {
    i += 1;
    const fraction = i;
    while (isDigit(bytes[i]!)) i += 1;
    if (i === fraction || i - fraction > 9) return -1;
  }
  return bytes[i] === 0x5a && bytes[i + 1] === QUOTE ? i + 2 : -1;
}

/** What follows the event in a record. */
function endOfRecord(bytes: Uint8Array, from: number, rows: Int32Array, base: number): number {
  let at = from;
  const meta = after(META_MEMBER, bytes, at);
  if (meta >= 0) {
    at = endOfMeta(bytes, meta);
    if (at < 0 || at - meta > MAX_META_BYTES) return -1;
  }
  at = after(PREV_MEMBER, bytes, at);
  if (at < 0) return -1;
  rows[base + PREV] = at + B64_IN_DIGEST;
  at = endOfSha256(bytes, at);
  const seq = at < 0 ? -1 : after(SEQ_MEMBER, bytes, at);
  at = seq < 0 ? -1 : endOfInteger(bytes, seq, MAX_SAFE_DIGITS);
  if (at < 0) return -1;
  let number = 0;
  for (let i = seq; i < at; i += 1) number = number * 10 + bytes[i]! - ZERO;
  rows[base + SEQ_LOW] = number % SEQ_BASE;
  rows[base + SEQ_HIGH] = Math.floor(number / SEQ_BASE);
  at = after(SIGNATURES_MEMBER, bytes, at);
  if (at < 0) return -1;
  rows[base + SIGNATURES] = at;
  let count = 0;
  if (bytes[at] === CLOSE_BRACKET) {
    at += 1;
  } else {
    for (;;) {
      at = endOfSignature(bytes, at);
      count += 1;
      if (at < 0 || count > MAX_SIGNATURES) return -1;
      const next = bytes[at];
      at += 1;
      if (next === CLOSE_BRACKET) break;
      if (next !== COMMA) return -1;
    }
  }
  rows[base + SIGNATURE_COUNT] = count;
  return bytes[at] === CLOSE ? at + 1 : -1;
}

function endOfSignature(bytes: Uint8Array, from: number): number {
  const keyid = after(KEYID_MEMBER, bytes, from);
  if (keyid < 0 || !isBase64url43(bytes, keyid)) return -1;
  const sig = after(SIG_MEMBER, bytes, keyid + B64_LENGTH);
  if (sig < 0) return -1;
  const end = endOfClass(bytes, sig - 1, BASE64URL, 1, MAX_SIG_LENGTH);
  return end >= 0 && bytes[end] === CLOSE ? end + 1 : -1;
}

/** Texts under names in order. Names with escapes or beyond ASCII have another order than their bytes: they are not usual. */
function endOfMeta(bytes: Uint8Array, from: number): number {
  if (bytes[from] !== OPEN) return -1;
  let at = from + 1;
  if (bytes[at] === CLOSE) return at + 1;
  let before = -1;
  for (;;) {
    if (bytes[at] !== QUOTE) return -1;
    let i = at + 1;
    while (PLAIN[bytes[i]!] === 1) i += 1;
    if (bytes[i] !== QUOTE || bytes[i + 1] !== COLON) return -1;
    if (before >= 0 && !bytesAscend(bytes, before, at)) return -1;
    before = at;
    at = endOfText(bytes, i + 2, NO_LIMIT);
    if (at < 0) return -1;
    const next = bytes[at];
    at += 1;
    if (next === CLOSE) return at;
    if (next !== COMMA) return -1;
  }
}
