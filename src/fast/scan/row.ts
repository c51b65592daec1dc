/** The layout of the row of a scannable record: numbers, which can be sent to another thread. `scanRecord` fills it. */

export const ROW_WIDTH = 104;

/** The types of scannable records; 0 is none. */
export const AUTHORIZATION = 1;
export const EXECUTION = 2;
export const ADJUSTMENT = 3;
export const OTHER = 4;
/** `x.northroot.start`, in the form that counts (SPEC §3.8). */
export const START = 5;

/*
 * The members of a row. Offsets are into the scanned bytes, 0 for an absent member. A text has two: of its first character and of its
 * closing quote. A SHA-256 digest has that of its base64url, any other digest that of its `{`.
 */
export const TYPE = 0;
export const FLAGS = 1;
/** `seq` modulo 2^30, and the rest. */
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
/** For a type without a schema. */
export const EVENT_TYPE = 19;
export const TOOL = 21;
/** `auth_event_id` of an execution or a start, `grant_event_id` of an action or an adjustment. */
export const LINK = 23;
/** `execution_event_id` of an adjustment; of an execution the offset after the `{` of its bases by unit. */
export const EXECUTION_ID = 24;
export const BASES = 24;
export const INTENT = 25;
export const USER_INTENT = 26;
export const PARAMS = 27;
/** The offset after the `[` of the meters, and their number. */
export const METERS = 28;
export const METER_COUNT = 29;
export const STARTED_AT = 30;
export const ENDED_AT = 32;
/* In the same places: of an action its expiry and its request key, of a start its recorder. */
export const EXPIRES_AT = 30;
export const REQUEST_KEY = 32;
export const RECORDER = 32;
export const PLACES_END = 34;
/** How many bases by unit there are. */
export const BASIS_COUNT = 38;

/*
 * Written by `relate.ts`: the first rows of the block, from 0, known to have the same principal, tool, link and first keyid; and digests
 * as eight numbers each: the event's id, the link, and, in an authorization, execution or start with SHA-256 digests only, the intent, the
 * parameters and the user's intent if present.
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
 * The first four meters, so many numbers each: the digits of the amount but the last eight, or -1 for more than 15; the last eight; how
 * many digits are after the point; the offset of the unit. Then, by `relate.ts`, four times the first row of the block known to have the
 * same unit, plus the index of that meter.
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
/** A check failed, or resources were touched: the rules read these from the event. */
export const HAS_FAILED_CHECK = 1 << 9;
export const HAS_RESOURCES = 1 << 10;
export const HAS_ERROR_CODE = 1 << 11;
/** A digest of the row is not SHA-256. */
export const HAS_OTHER_DIGEST = 1 << 13;
/**
 * Written by `relate.ts`: the line before, in the same block, is scannable too; `prev` is its leaf hash, `seq` is one more than its
 * own, and both have the same `ledger_id`, or none.
 */
export const IS_CHAINED = 1 << 12;
/** Likewise: the line before is scannable too, and `occurred_at` is as long as its own, and not earlier. */
export const IS_IN_ORDER = 1 << 14;
/**
 * Likewise: `started_at` and `ended_at` are present, neither `ended_at` nor `occurred_at` is earlier than `started_at`, and all three have
 * the same length.
 */
export const HAS_SOUND_TIMES = 1 << 15;
/** An execution has bases by unit. Of the first twelve meters, those that these or its own basis make estimated have a bit each. */
export const HAS_UNIT_BASES = 1 << 16;
export const FIRST_ESTIMATED = 17;
export const FLAGGED_AMOUNTS = 12;
