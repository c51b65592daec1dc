/**
 * Every code that verification can give (SPEC §8): what it means, what usually causes it and what to do. Codes never
 * change their meaning within a major version. `northroot explain CODE` and docs/codes.md show exactly this.
 */

import type { FindingClass, Severity } from './finding.js';

/** One code's page. */
export interface CodePage {
  /** What was found, in a few words; the start of every finding's message. */
  readonly title: string;
  readonly class: FindingClass;
  readonly severity: Severity;
  /** The sections of SPEC that make it a finding. */
  readonly section: string;
  readonly meaning: string;
  readonly cause: string;
  readonly remedy: string;
}

function invalid(page: Omit<CodePage, 'class' | 'severity'>): CodePage {
  return { class: 'invalid', severity: 'error', ...page };
}

const pages = {
  LINE_TORN: invalid({
    title: 'the last line is torn',
    section: '§4',
    meaning: 'The file does not end in a newline, so its last line is not a whole record.',
    cause:
      'A writer was killed or the machine stopped while it was writing. Such a record was never acknowledged. A copy that was cut off looks the same.',
    remedy:
      'Run `northroot repair LEDGER` (or append to it): the torn bytes are saved beside the ledger and cut off. If the file is a copy, copy it again.',
  }),
  LINE_TOO_LONG: invalid({
    title: 'the line is too long',
    section: '§4',
    meaning: 'A line is longer than 65,535 bytes, the largest entry of a tiled log.',
    cause: 'Content was put into an event, or the file is not a ledger at all.',
    remedy:
      'Refer to large content by its digest (`output_ref`, `intent_ref`) and keep the content elsewhere.',
  }),
  LINE_BLANK: invalid({
    title: 'the line is blank',
    section: '§4',
    meaning: 'A ledger has one record a line and nothing else; this line is empty.',
    cause: 'The file was edited, or two files were joined with a newline between them.',
    remedy: 'Find out what edited the file; restore it from a copy.',
  }),
  INVALID_UTF8: invalid({
    title: 'the line is not valid UTF-8',
    section: '§1',
    meaning: 'A byte sequence of the line is not UTF-8 (RFC 3629).',
    cause: 'The file was changed, damaged, or re-encoded.',
    remedy: 'Restore the file from a copy, byte for byte.',
  }),
  BYTE_ORDER_MARK: invalid({
    title: 'the line starts with a byte order mark',
    section: '§1',
    meaning: 'U+FEFF stands where JSON must begin.',
    cause: 'An editor saved the file as "UTF-8 with BOM".',
    remedy: 'Restore the file from a copy; do not open ledgers in an editor that saves them.',
  }),
  NOT_JSON: invalid({
    title: 'the line is not JSON',
    section: '§1',
    meaning: 'The line is not one JSON text (RFC 8259).',
    cause: 'The line was changed or damaged, or the file is not a ledger.',
    remedy: 'Check that this is the right file; otherwise restore it from a copy.',
  }),
  DUPLICATE_KEY: invalid({
    title: 'an object has the same key twice',
    section: '§1',
    meaning: 'Readers differ in which of the two members they see, so the line has no single meaning.',
    cause: 'The line was crafted or written by a tool that concatenates JSON.',
    remedy: 'Treat the line as forged until you know which tool wrote it.',
  }),
  LONE_SURROGATE: invalid({
    title: 'a string has a lone surrogate',
    section: '§1',
    meaning: 'An escape such as \\ud800 without its other half denotes no character.',
    cause: 'A producer cut a string in the middle of a character.',
    remedy: 'Cut strings at characters, or record the digest of the raw bytes.',
  }),
  NESTING_TOO_DEEP: invalid({
    title: 'JSON is nested too deeply',
    section: '§1',
    meaning: 'Objects and arrays are nested more than 64 deep.',
    cause: 'Content was put into an event, or the line was crafted to exhaust a reader.',
    remedy: 'Refer to such content by its digest.',
  }),
  NUMBER_NOT_CANONICAL: invalid({
    title: 'a number is not in its canonical form',
    section: '§1',
    meaning:
      'A number must be exactly the text that ECMAScript gives it, not -0, and, if an integer, within ±(2^53−1).',
    cause: 'A producer wrote numbers with another library: `1.0`, `1E3`, a 64-bit integer.',
    remedy: 'Write amounts as quantities (strings), and the line as RFC 8785 canonical JSON.',
  }),
  NOT_CANONICAL: invalid({
    title: 'the line is not canonical JSON',
    section: '§1',
    meaning:
      'The line is JSON, but not byte for byte what RFC 8785 would write: white space, key order, escapes.',
    cause: 'The line was reformatted or written by something that does not canonicalise.',
    remedy: 'Restore the file; producers should append through northroot or write RFC 8785.',
  }),
  SCHEMA: invalid({
    title: 'a member does not have the form it must have',
    section: '§3, §4, §7',
    meaning: 'A member is missing, unknown, or not of the form that its schema gives it.',
    cause: 'The producer does not follow the format, or the line was changed.',
    remedy: 'Compare the place named with `northroot schema NAME`.',
  }),
  TIMESTAMP_INVALID: invalid({
    title: 'a timestamp is not valid',
    section: '§2',
    meaning:
      'A timestamp must be a real date and time in the form YYYY-MM-DDThh:mm:ss[.f]Z, with 1 to 9 digits of fraction.',
    cause: 'Another time zone, a leap second, a date that does not exist, or more than nine digits.',
    remedy: 'Write UTC with a final Z.',
  }),
  QUANTITY_INVALID: invalid({
    title: 'a quantity is not valid',
    section: '§2',
    meaning:
      'A quantity must be an int, dec, rat (in lowest terms) or f64 (finite) in its one canonical form.',
    cause: 'Leading zeros, a fraction that is not reduced, more than 39 digits, a NaN.',
    remedy: 'Build quantities with the API, or from their decimal text.',
  }),
  METER_UNIT_DUPLICATE: invalid({
    title: 'a meter vector names a unit twice',
    section: '§2',
    meaning: 'Each unit may stand in a meter vector once.',
    cause: 'A producer listed amounts without adding them up.',
    remedy: 'Add the amounts of one unit together before recording them.',
  }),
  METER_NEGATIVE: invalid({
    title: 'a meter vector has a negative amount',
    section: '§2',
    meaning: 'Amounts in meter vectors are never negative: use only ever grows.',
    cause: 'A refund or a correction was recorded as negative use.',
    remedy: 'Record corrections as events of their own.',
  }),
  PROFILE_UNKNOWN: invalid({
    title: 'the canonical profile is not known',
    section: '§1',
    meaning:
      'The event names a canonicalisation profile that this version does not know; it is never guessed.',
    cause: 'The event was written for another version or by another system.',
    remedy: 'Use a northroot that knows the profile; this one knows northroot-jcs-v1.',
  }),
  EVENT_VERSION_UNKNOWN: invalid({
    title: 'the event version is not known',
    section: '§3',
    meaning: 'The event is of a version whose rules this version does not know.',
    cause: 'The event was written for a later version.',
    remedy: 'Verify with a northroot that knows the version; this one knows "1".',
  }),
  PAYLOAD_DIGEST_MISMATCH: invalid({
    title: 'payload_digest is not the digest of the payload',
    section: '§3',
    meaning: 'The event was changed after its digest was made, or the digest was.',
    cause: 'The event was edited, or its producer hashes something else.',
    remedy: 'The content cannot be trusted as it stands; compare with a copy.',
  }),
  EVENT_ID_MISMATCH: invalid({
    title: 'event_id is not the id of the payload',
    section: '§3',
    meaning: 'An id is the digest of the content; this content has another id.',
    cause: 'The event was edited, or its producer makes ids in another way.',
    remedy: 'The content cannot be trusted as it stands; compare with a copy.',
  }),
  GENESIS_MISSING: invalid({
    title: 'the ledger does not start with a genesis record',
    section: '§3.3',
    meaning:
      'The first record must be a genesis event: it names the origin, the keys and what must be signed.',
    cause: 'The head of the file was cut off, or the first segment of a folder is missing.',
    remedy: 'Find the missing head. Without it nothing says which keys may sign.',
  }),
  GENESIS_MISPLACED: invalid({
    title: 'a genesis record stands where none may',
    section: '§3.3',
    meaning: 'Only the first record may be a genesis event.',
    cause: 'Two ledgers were joined, or somebody tried to declare new keys.',
    remedy: 'Verify the two ledgers apart.',
  }),
  SEQ_GAP: invalid({
    title: 'seq does not go on by one',
    section: '§4',
    meaning:
      'Records are numbered 0, 1, 2, … without gaps; this one has another number than its place demands.',
    cause: 'Records before it were dropped, doubled, or put in another order.',
    remedy: 'Find the missing records in a copy: the numbers say which they are.',
  }),
  PREV_MISMATCH: invalid({
    title: 'prev is not the hash of the line before',
    section: '§4',
    meaning: 'The record was chained to another line than the one that now stands before it.',
    cause: 'The line before was changed, dropped or moved, or the chain was forked.',
    remedy: 'Look at the line before this one first.',
  }),
  EVENT_DUPLICATE: invalid({
    title: 'the event stands in the ledger already',
    section: '§4',
    meaning: 'Each event id appears once in a ledger.',
    cause: 'A record was copied, or two writers appended the same event past each other.',
    remedy: 'Append through northroot, which makes a second append of the same event a no-op.',
  }),
  PREV_EVENT_NOT_FOUND: invalid({
    title: 'prev_event_id names no earlier event',
    section: '§3',
    meaning: "The producer's own causal link must name an event that stands earlier in the same ledger.",
    cause: 'The earlier event was dropped, comes later, or is in another ledger.',
    remedy: 'Append the earlier event first, or find out where it went.',
  }),
  SIGNATURE_MISSING: invalid({
    title: 'the record is not signed',
    section: '§5, §7',
    meaning: 'The ledger or the trust policy requires a signature, and the record has none.',
    cause: 'The signature was stripped, or the producer had no key.',
    remedy: 'Find the signed record in a copy.',
  }),
  SIGNATURE_INVALID: invalid({
    title: 'a signature is not valid',
    section: '§5',
    meaning: 'The key named did not make this signature over this event.',
    cause: 'The event or the signature was changed, or the signature was copied from another record.',
    remedy: 'Treat the record as forged.',
  }),
  KEY_UNKNOWN: invalid({
    title: 'the signing key is not known',
    section: '§7',
    meaning:
      'No key with this keyid is trusted here, so the signature could not be checked: it is neither valid nor invalid. A warning where signatures are optional.',
    cause: 'The key is missing from the trust policy or from genesis, or a stranger signed.',
    remedy: 'If you know the key, add it to the trust policy.',
  }),
  KEY_NOT_FOR_PRINCIPAL: invalid({
    title: 'the signing key may not speak for this principal',
    section: '§7',
    meaning:
      "The signature is right, but none of the key's principal patterns matches the event's principal_id.",
    cause: "One producer signed in another's name, or the key's patterns are too narrow.",
    remedy:
      'Correct the patterns if the key should speak for this principal; otherwise treat the record as forged.',
  }),
  KEY_NOT_FOR_ROLE: invalid({
    title: 'the signing key does not have the role for this',
    section: '§7',
    meaning: 'The signature is right, but the key lacks the role that records of this type need.',
    cause: 'A key was used for something that it was not made for.',
    remedy: 'Sign with a key of the right role, or give the key the role.',
  }),
  KEY_NOT_VALID_HERE: invalid({
    title: 'the signing key is not valid at this position',
    section: '§7',
    meaning: 'The signature is right, but the key is not yet, or no longer, valid where the record stands.',
    cause: 'An expired key was still in use, or a record was back-dated.',
    remedy: 'Sign with a key that is valid; extend valid_until if it was set too early.',
  }),
  ORIGIN_MISMATCH: invalid({
    title: 'the ledger is not one that the trust policy is for',
    section: '§7',
    meaning: "genesis names an origin that is not among the policy's origins.",
    cause: 'The wrong ledger, the wrong policy, or a ledger put in place of another.',
    remedy: 'Check which ledger this is.',
  }),
  EVENT_TYPE_UNKNOWN: {
    class: 'none',
    severity: 'info',
    title: 'the event type is not known',
    section: '§3',
    meaning:
      'The event was carried, hashed, chained and its signature checked, but nothing is known of what it means.',
    cause: 'An event type of a later version, or an extension not named `x.…`.',
    remedy: 'Name extension types `x.…`.',
  },
} as const satisfies Record<string, CodePage>;

/** A code of SPEC §8 that this version can find. */
export type FindingCode = keyof typeof pages;

/** Every code with its page, in the order of SPEC §8. */
export const CODE_PAGES: Readonly<Record<FindingCode, CodePage>> = pages;

/** Whether `text` is one of the codes. */
export function isFindingCode(text: string): text is FindingCode {
  return Object.hasOwn(CODE_PAGES, text);
}
