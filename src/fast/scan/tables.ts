/** The forms of scannable records, as tables of numbers for the scan. */

import { encodeLatin1 } from '../../base/bytes/text.js';
import { MAX_METERS } from '../../base/value/meter.js';
import { MAX_LINE_BYTES, MAX_META_BYTES } from '../../format/record/line-splitter.js';
import { MAX_SIGNATURES } from '../../format/signature/dsse.js';
import {
  BASES,
  ENDED_AT,
  EVENT_ID,
  EVENT_TYPE,
  EXECUTION_ID,
  EXPIRES_AT,
  HAS_ERROR_CODE,
  HAS_FAILED_CHECK,
  HAS_OUTPUT_DIGEST,
  HAS_OUTPUT_REF,
  HAS_RESOURCES,
  HAS_UNIT_BASES,
  INTENT,
  IS_CREDIT,
  IS_DENY,
  IS_ESTIMATED,
  IS_FAILURE,
  IS_SUCCESS,
  LEDGER_ID,
  LINK,
  METERS,
  OCCURRED_AT,
  PARAMS,
  PAYLOAD_DIGEST,
  PREVIOUS_ID,
  PRINCIPAL,
  RECORDER,
  REQUEST_KEY,
  STARTED_AT,
  TOOL,
  USER_INTENT,
} from './row.js';

export { MAX_LINE_BYTES, MAX_META_BYTES, MAX_METERS, MAX_SIGNATURES };

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const MINUS = 0x2d;
export const DOT = 0x2e;
export const ZERO = 0x30;
export const COLON = 0x3a;
export const OPEN_BRACKET = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_BRACKET = 0x5d;
export const OPEN = 0x7b;
export const CLOSE = 0x7d;

/* Classes of bytes, a bit each. */
export const BASE64URL = 1 << 0;
/** The last character of 43 of base64url: its two low bits are 0. */
export const ENDS_43 = 1 << 1;
/** The last character of 4n + 2 of base64url: its four low bits are 0. */
export const ENDS_2 = 1 << 2;
export const IN_TOOL = 1 << 3;
export const IN_PRINCIPAL = 1 << 4;
export const ALPHANUMERIC = 1 << 5;
export const IN_UNIT = 1 << 6;
export const IN_CODE = 1 << 7;
export const IN_ALG = 1 << 8;
export const IN_TYPE = 1 << 9;
export const LOWER = 1 << 10;
export const IN_REQUEST_KEY = 1 << 11;

export const CLASS = new Uint16Array(256);
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
  [IN_REQUEST_KEY, `${UPPER_CASE}${LOWER_CASE}${DIGITS}._:/+=@-`],
] as const)
  for (const character of characters) CLASS[character.charCodeAt(0)]! |= bit;

/* Kinds of values. */
export const NOTHING = 0;
export const SHA256 = 1;
export const DIGEST = 2;
export const TIMESTAMP = 3;
export const PRINCIPAL_ID = 4;
export const TOOL_NAME = 5;
export const CODE = 6;
export const ERROR_CODE = 7;
export const TEXT = 8;
export const CHOICE = 9;
export const METER_VECTOR = 10;
export const SAFE_INTEGER = 11;
export const OBJECT = 12;
const LIST = 13;
export const TYPE_NAME = 14;
export const PROFILE_ID = 15;
export const REQUEST_KEY_TEXT = 16;
/** Of a start. */
export const RECORDER_NAME = 17;
export const START_NAME = 18;
export const UNIT_BASES = 19;

/** A member: the text before its value, the form of the value, and what the row keeps of it. */
interface Member {
  readonly text: string;
  readonly kind: number;
  readonly required: boolean;
  /** Where the row keeps the value's offset; 0 for nowhere. */
  readonly slot: number;
  /** The flags of a present member; of a list, of one that is not empty. */
  readonly flag: number;
  /** The maximum length of a text; the number of an object, of a list's objects or of a choice; the minimum of meters. */
  readonly limit: number;
}

export const NO_LIMIT = 0x7fffffff;

function must(name: string, kind: number, { slot = 0, flag = 0, limit = NO_LIMIT } = {}): Member {
  return { text: `"${name}":`, kind, required: true, slot, flag, limit };
}

function may(...args: Parameters<typeof must>): Member {
  return { ...must(...args), required: false };
}

/** A member with one value. */
function constant(name: string, value: string): Member {
  return { ...must(name, NOTHING), text: `"${name}":${value}` };
}

/** The possible texts of a member, quotes included, each with the flag that it sets. */
type Choice = readonly (readonly [text: string, flag: number])[];

const DECISION = 0;
const OUTCOME = 1;
const RESULT = 2;
const DIRECTION = 3;
export const BASIS = 4;
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
export const AUTHORIZATION_EVENT = 8;
export const EXECUTION_EVENT = 9;
export const ADJUSTMENT_EVENT = 10;
export const ENVELOPE = 11;
export const START_EVENT = 12;

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

/** The objects of `schemas/`, with their members in canonical order. */
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
    may('expires_at', TIMESTAMP, { slot: EXPIRES_AT }),
    may('meter_reservation', METER_VECTOR, { slot: METERS, limit: 0 }),
    may('request_key', REQUEST_KEY_TEXT, { slot: REQUEST_KEY }),
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
    may('meter_basis_by_unit', UNIT_BASES, { slot: BASES, flag: HAS_UNIT_BASES }),
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
  /* START_EVENT: the members that an execution has before it ends (`rules/verify/starts.ts`), and no others. */ [
    must('auth_event_id', SHA256, { slot: LINK }),
    PROFILE,
    CONTEXT_OF,
    ID_OF,
    must('event_type', START_NAME, { slot: EVENT_TYPE }),
    VERSION,
    INTENTS_OF,
    LEDGER_OF,
    must('meter_known', METER_VECTOR, { slot: METERS, limit: 0 }),
    TIME_OF,
    PAYLOAD_OF,
    PREVIOUS_OF,
    PRINCIPAL_OF,
    must('recorder', RECORDER_NAME, { slot: RECORDER }),
    must('started_at', TIMESTAMP, { slot: STARTED_AT }),
    must('tool_name', TOOL_NAME, { slot: TOOL }),
    may('tool_params_digest', DIGEST, { slot: PARAMS }),
  ],
];

/*
 * The same as numbers, for the scan: the text of member m is `TEXTS[TEXT_AT[m] .. TEXT_AT[m + 1])`, the members of object o are
 * `FIRST[o] .. FIRST[o + 1]`. Likewise for choices.
 */
const MEMBERS = OBJECTS.flat();
export const FIRST = starts(OBJECTS.map(({ length }) => length));
export const TEXT_AT = starts(MEMBERS.map(({ text }) => text.length));
export const TEXTS = Uint8Array.from(encodeLatin1(MEMBERS.map(({ text }) => text).join('')));
export const KINDS = Uint8Array.from(MEMBERS, ({ kind }) => kind);
export const REQUIRED = Uint8Array.from(MEMBERS, ({ required }) => Number(required));
export const SLOTS = Uint8Array.from(MEMBERS, ({ slot }) => slot);
export const FLAG_OF = Int32Array.from(MEMBERS, ({ flag }) => flag);
export const LIMITS = Int32Array.from(MEMBERS, ({ limit }) => limit);

const OPTIONS = CHOICES.flat();
export const FIRST_OPTION = starts(CHOICES.map(({ length }) => length));
export const OPTION_AT = starts(OPTIONS.map(([text]) => text.length + 2));
export const OPTION_TEXTS = Uint8Array.from(encodeLatin1(OPTIONS.map(([text]) => `"${text}"`).join('')));
export const OPTION_FLAGS = Int32Array.from(OPTIONS, ([, flag]) => flag);

function starts(lengths: readonly number[]): Int32Array {
  const places = new Int32Array(lengths.length + 1);
  lengths.forEach((length, i) => {
    places[i + 1] = places[i]! + length;
  });
  return places;
}

const asBytes = (text: string): Uint8Array => Uint8Array.from(encodeLatin1(text));
export const EVENT_MEMBER = asBytes('{"event":');
export const META_MEMBER = asBytes(',"meta":');
export const PREV_MEMBER = asBytes(',"prev":');
export const SEQ_MEMBER = asBytes(',"seq":');
export const SIGNATURES_MEMBER = asBytes(',"signatures":[');
export const DIGEST_BEFORE_B64 = asBytes('{"alg":"sha-256","b64":"');
export const ALG_MEMBER = asBytes('{"alg":"');
export const B64_MEMBER = asBytes('","b64":"');
export const AMOUNT_MEMBER = asBytes('{"amount":{');
export const INT_BEFORE_V = asBytes('"t":"int","v":"');
export const DEC_BEFORE_M = asBytes('"m":"');
export const DEC_BEFORE_S = asBytes('","s":');
export const DEC_AFTER_S = asBytes(',"t":"dec"},"unit":"');
export const INT_AFTER_V = asBytes('"},"unit":"');
export const KEYID_MEMBER = asBytes('{"keyid":"');
export const SIG_MEMBER = asBytes('","sig":"');
export const TOOL_MEMBER = asBytes('"tool_name"');
export const AUTHORIZATION_MEMBER = asBytes('"authorization"');
export const ACTION_MEMBER = asBytes('"action"');
export const X_DOT = asBytes('x.');
export const TRUE = asBytes('true');
export const FALSE = asBytes('false');
export const NULL = asBytes('null');
export const AGENT = asBytes('agent:');
export const HUMAN = asBytes('human:');
export const ORG = asBytes('org:');
export const SERVICE = asBytes('service:');
export const ABANDONED = asBytes('"ABANDONED"');
export const START_TYPE_TEXT = asBytes('"x.northroot.start"');

export const B64_LENGTH = 43;
/** From a signature's `{` to its keyid. */
export const BEFORE_KEYID = KEYID_MEMBER.length;
/** From a SHA-256 digest's `{` to its base64url. */
export const B64_IN_DIGEST = DIGEST_BEFORE_B64.length;
export const MAX_SIG_LENGTH = 200;
export const MAX_DIGITS = 39;
export const MAX_SCALE = 38;
/** Any number with at most so many digits is a safe integer. */
export const MAX_SAFE_DIGITS = 15;
/** Any number with at most so many digits fits 32 bits. */
export const LOW_DIGITS = 8;
export const SEQ_BASE = 2 ** 30;
/** `,"event_id":{"alg":"sha-256","b64":"` and `,"payload_digest":{"alg":"sha-256","b64":"`. */
export const BEFORE_EVENT_ID = 36;
export const BEFORE_PAYLOAD_DIGEST = 42;
/** How many texts of each kind are remembered, and how many kinds there are (`relate.ts`). */
export const REMEMBERED = 512;
export const SEEN_KINDS = 5;
/** 43 characters, `"` and `}`. */
export const B64_TO_END = B64_LENGTH + 2;
