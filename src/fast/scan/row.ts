/** What stands where in the row of a scannable record: numbers, which can be handed to another thread. `scanRecord` fills it. */

/** How many numbers a record's row has. */
export const ROW_WIDTH = 104;

/** The types of scannable records; 0 is none. */
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

/*
 * Not of the scan but of `relate.ts`: the first rows of the block, counted from 0, that are known to have the same principal, tool,
 * link and first keyid; and the bytes of digests, eight numbers each: of the event's id, of the link, and, in an authorization and an
 * execution all of whose digests are SHA-256, of the intent, the parameters and the user's intent, where they are there.
 */
export const SAME_PRINCIPAL = 34;
export const SAME_TOOL = 35;
export const SAME_LINK = 36;
export const SAME_KEYID = 37;
export const ID_WORDS = 40;
export const LINK_WORDS = 48;
export const INTENT_WORDS = 80;
export const PARAMS_WORDS = 88;
export const USER_INTENT_WORDS = 96;

/*
 * The first four meters, each in as many numbers: the digits of its amount but for the last eight, or -1 where they are more than 15; these
 * last ones; how many of all are behind the point; where its unit stands. And, not of the scan but of `relate.ts`, four times the first
 * row of the block that is known to have the same unit, and which of its meters has it.
 */
export const AMOUNTS = 56;
export const ROW_AMOUNTS = 4;
export const AMOUNT_WIDTH = 6;
export const AMOUNT_HIGH = 0;
export const AMOUNT_LOW = 1;
export const AMOUNT_SCALE = 2;
export const UNIT = 3;
export const SAME_UNIT = 5;

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
export const HAS_ERROR_CODE = 1 << 11;
/** One of the digests that have a place in the row is not SHA-256. */
export const HAS_OTHER_DIGEST = 1 << 13;
/**
 * Not of the scan but of `relate.ts`: the line directly before this one, in the same block, is a scannable record too; `prev` is its
 * leaf hash, `seq` is its own plus one, and `ledger_id` is the same as its own, or neither has one.
 */
export const IS_CHAINED = 1 << 12;
/** Likewise: it is a scannable record too, and `occurred_at` is not earlier than its own, and as long. */
export const IS_IN_ORDER = 1 << 14;
/**
 * Likewise: `started_at` and `ended_at` are there, and `ended_at` is not earlier than `started_at`, and `occurred_at` neither; all three
 * are of the same length.
 */
export const HAS_SOUND_TIMES = 1 << 15;
