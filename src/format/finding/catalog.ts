/**
 * Every code that verification can give (SPEC §8): what it means, what usually causes it and what to do. Codes never
 * change their meaning within a major version. What to do is said to programs; the command line says it with its commands
 * (`cli/remedies.ts`), as docs/spec/codes.md does.
 */

/** How much a finding matters. */
export type Severity = 'error' | 'warning' | 'info';

/** What a finding does to the verdict: broken evidence, intact evidence of a broken bound, or nothing. */
export type FindingClass = 'invalid' | 'violation' | 'none';

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

function violation(page: Omit<CodePage, 'class' | 'severity'>): CodePage {
  return { class: 'violation', severity: 'error', ...page };
}

function warning(page: Omit<CodePage, 'class' | 'severity'>): CodePage {
  return { class: 'none', severity: 'warning', ...page };
}

const pages = {
  LINE_TORN: invalid({
    title: 'the last line is torn',
    section: '§4',
    meaning: 'The file does not end in a newline, so its last line is not a whole record.',
    cause:
      'A writer was killed or the machine stopped while it was writing. Such a record was never acknowledged. A copy that was cut off looks the same.',
    remedy:
      'Open the ledger for appending: the torn bytes are saved beside it and cut off. If the file is a copy, copy it again.',
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
    remedy: 'Compare the place named with the schema.',
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
  LEDGER_MISMATCH: invalid({
    title: 'the event is for another ledger',
    section: '§3, §3.3',
    meaning:
      "ledger_id names another ledger's genesis event; or a successor does not continue the ledger that it names.",
    cause: 'An event that was signed for another ledger was copied into this one.',
    remedy:
      'Treat the record as replayed: it authorizes nothing here. Sign events for the ledger they go to.',
  }),
  LEDGER_UNBOUND: invalid({
    title: 'the event does not say which ledger it is for',
    section: '§3',
    meaning:
      'A key event, and any event of a ledger whose genesis requires binding, must carry ledger_id. Without it a signed event means the same in every ledger.',
    cause: 'The producer does not know of binding, or the event was signed for no ledger in particular.',
    remedy: 'Set ledger_id to the event_id of genesis before signing; northroot does so for drafts.',
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
    meaning:
      'The signature is right, but the key is not yet, or no longer, valid where the record stands; or it was revoked later, and no checkpoint covers the record.',
    cause:
      'An expired or revoked key was still in use, a record was back-dated, or a key was revoked before what it had signed was sealed.',
    remedy:
      'Sign with a key that is valid. What a key signed before it was revoked is mended by a checkpoint that another key signs.',
  }),
  ORIGIN_MISMATCH: invalid({
    title: 'the origin is another one',
    section: '§6, §7',
    meaning:
      "Genesis names an origin that is not among the policy's; or a checkpoint, in the ledger or held by you, is of another log.",
    cause: 'The wrong ledger, the wrong policy, or a ledger put in place of another.',
    remedy: 'Check which ledger this is.',
  }),
  CHECKPOINT_ROOT_MISMATCH: invalid({
    title: 'the checkpoint is not one of this ledger',
    section: '§3.4, §6',
    meaning:
      'The root of the tree over the records before the checkpoint, or the event before it, is not what the checkpoint says.',
    cause: 'A record before the checkpoint was changed, dropped or put in after the checkpoint was made.',
    remedy: 'Compare with a copy, record by record, and find the first that differs.',
  }),
  CHECKPOINT_SIZE_MISMATCH: invalid({
    title: 'the checkpoint covers another number of records than stand before it',
    section: '§3.4, §6',
    meaning: 'tree_size, the size in the note and the place of the record must be the same number.',
    cause: 'Records before the checkpoint were dropped or put in, or the checkpoint was moved.',
    remedy: 'Compare with a copy, record by record, and find the first that differs.',
  }),
  CHECKPOINT_NOTE_MALFORMED: invalid({
    title: 'the note of the checkpoint is malformed',
    section: '§6',
    meaning:
      'The note is not a C2SP signed note with a checkpoint as its text; or the note of an attestation has another text than that of its checkpoint.',
    cause: 'The note was changed, or its producer does not follow the format.',
    remedy: 'Compare the note with the C2SP specifications of signed notes and checkpoints.',
  }),
  CHECKPOINT_SIGNATURE_INVALID: invalid({
    title: 'a signature of the checkpoint is not valid',
    section: '§5, §6',
    meaning: 'A signature line names a known key, and that key did not make it over this text.',
    cause: 'The note was changed, or the signature was copied from another note.',
    remedy: 'Treat the checkpoint as forged.',
  }),
  CHECKPOINT_MISSING: invalid({
    title: 'a checkpoint is missing',
    section: '§3.3, §6, §7',
    meaning:
      'The ledger or the trust policy promises checkpoints, and where one must be there is none that is right; or an attestation names none.',
    cause: 'The checkpoint was cut off or dropped, or none was made in time.',
    remedy: 'Whoever keeps the ledger makes one.',
  }),
  WITNESS_QUORUM: invalid({
    title: 'not enough witnesses cosigned the checkpoint',
    section: '§6, §7',
    meaning: 'The cosignatures that are right do not make up the quorum that the policy demands.',
    cause: 'Witnesses could not be reached, refused to cosign, or their cosignatures were dropped.',
    remedy: 'Collect them; a witness that refuses may have seen another history.',
  }),
  TRUNCATED: invalid({
    title: 'records are missing from the end',
    section: '§6',
    meaning:
      'The checkpoint that you hold covers more records than the ledger has; or the predecessor that you gave has fewer than genesis says.',
    cause: 'The end of the ledger was cut off, or this is an older copy.',
    remedy: 'Find the missing records; until then nothing says what they were.',
  }),
  FORKED: invalid({
    title: 'the ledger is not the one that your checkpoint is of',
    section: '§6',
    meaning:
      'Among the records that the checkpoint covers, or of a predecessor those that genesis speaks of, at least one is another one than it was then.',
    cause: 'History was rewritten, or two histories are shown to different people.',
    remedy: 'Keep both. Compare with the ledger as it was then, and find the first record that differs.',
  }),
  TAIL_UNSEALED: {
    class: 'invalid',
    severity: 'info',
    title: 'records stand after the last checkpoint',
    section: '§6',
    meaning: 'No checkpoint covers them, so whoever can write to the ledger could still change or drop them.',
    cause: 'They were appended since the last checkpoint.',
    remedy: 'Make a checkpoint.',
  },
  TILE_MISSING: invalid({
    title: 'a tile or an entry bundle is missing',
    section: '§6',
    meaning: 'The tree that the checkpoint states needs this file, and it is not there.',
    cause: 'The tree was copied in part, or the file was removed.',
    remedy: 'Copy the tree again, or write it anew.',
  }),
  TILE_MISMATCH: invalid({
    title: 'a tile or an entry bundle is not what it must be',
    section: '§6',
    meaning:
      "The file has not the form it must have, or not the hashes that the entries have. Which of the two was changed, the checkpoint's root says.",
    cause: 'The file was changed or damaged, or is of another tree.',
    remedy: 'Compare with the ledger that the tree was written from.',
  }),
  TILE_UNEXPECTED: warning({
    title: 'a file does not belong to the tree',
    section: '§6',
    meaning: 'The tree that the checkpoint states has no such tile; the file was not looked into.',
    cause: 'It is left from an interrupted update, or was put there.',
    remedy: 'Remove it, or publish the next checkpoint.',
  }),
  AUTH_NOT_FOUND: invalid({
    title: 'the authorization is not in the ledger',
    section: '§8 linkage',
    meaning: 'An execution names an authorization that stands nowhere in the ledger.',
    cause: 'The authorization was dropped, was never recorded, or is in another ledger.',
    remedy: 'Find the record with this id. Without it nothing shows that the execution was allowed.',
  }),
  AUTH_AFTER_EXECUTION: invalid({
    title: 'the authorization was recorded after the execution',
    section: '§8 linkage',
    meaning:
      'The authorization that an execution names stands in the ledger, but later: it cannot have permitted it.',
    cause: 'The decision was recorded late, or made up afterwards.',
    remedy: 'Record each decision before acting on it.',
  }),
  AUTH_NOT_AN_AUTHORIZATION: invalid({
    title: 'what the execution names as its authorization is none',
    section: '§8 linkage',
    meaning: 'auth_event_id names an event of another type, or an authorization that is not well-formed.',
    cause: "A producer's mistake, or the authorization was damaged.",
    remedy: 'Look at the record named.',
  }),
  GRANT_NOT_FOUND: invalid({
    title: 'the grant is not in the ledger before this event',
    section: '§8 linkage',
    meaning: 'grant_event_id must name an earlier record.',
    cause: 'The grant was dropped, comes later, or is in another ledger.',
    remedy: 'Find the record with this id. Without it no bounds can be checked.',
  }),
  GRANT_NOT_A_GRANT: invalid({
    title: 'what the event names as its grant is none',
    section: '§8 linkage',
    meaning: 'grant_event_id names an event that is not a grant, or one that is not well-formed.',
    cause: "A producer's mistake, or the grant was damaged.",
    remedy: 'Look at the record named.',
  }),
  INTENT_MISMATCH: invalid({
    title: 'the execution was for another intent than was authorized',
    section: '§8 linkage',
    meaning: "An execution's intent_digest must be that of the authorization that it names.",
    cause: 'The intent was changed after the decision, or the execution names the wrong authorization.',
    remedy: 'Ask for a decision on the intent that is executed.',
  }),
  TOOL_MISMATCH: invalid({
    title: 'another tool was executed than was authorized',
    section: '§8 linkage',
    meaning: "An execution's tool_name must be its action's.",
    cause: 'The execution names the wrong authorization, or another tool was called.',
    remedy: 'Compare the two records.',
  }),
  TOOL_PARAMS_MISMATCH: invalid({
    title: 'the tool was called with other parameters than were authorized',
    section: '§8 linkage',
    meaning: "An execution's tool_params_digest, where it has one, must be its action's.",
    cause: 'The parameters were changed after the decision.',
    remedy: 'Authorize the parameters that are used.',
  }),
  EVIDENCE_MISSING: invalid({
    title: 'what a bound needs is absent',
    section: '§8 rule 7, §3.2',
    meaning:
      'Under a concurrency limit an execution must say when it started and when it ended; of an action, which parameters it was executed with.',
    cause: 'The producer does not record both times, or leaves tool_params_digest out.',
    remedy: 'Record started_at, ended_at and tool_params_digest.',
  }),
  EXECUTION_NOT_FOUND: invalid({
    title: 'the adjustment names no earlier execution',
    section: '§8 rule 11',
    meaning: 'execution_event_id must name an execution that stands earlier in the ledger.',
    cause: 'The execution was dropped, comes later, or the id is of another event.',
    remedy: 'Append the execution first, or leave execution_event_id out.',
  }),
  EXECUTION_NOT_UNDER_GRANT: invalid({
    title: 'the execution does not count under the grant that is adjusted',
    section: '§8 rule 11',
    meaning:
      'The execution must count under the named grant: directly, by an action, or by a grant delegated from it.',
    cause: 'The adjustment names the wrong grant or the wrong execution.',
    remedy: 'Adjust the grant that the execution was made under.',
  }),
  PRINCIPAL_MISMATCH: violation({
    title: 'another principal acted than was authorized',
    section: '§8 rule 10',
    meaning: "An action's principal must be its grant's, an execution's its authorization's.",
    cause: "A principal used another's authorization.",
    remedy: 'Delegate a grant to the principal that acts.',
  }),
  TOOL_NOT_ALLOWED: violation({
    title: 'the tool is not one that the grant allows',
    section: '§8 rule 4',
    meaning: 'The tool matches no pattern of the grant, or of a grant that it was delegated from.',
    cause: 'The policy allowed more than the grant does.',
    remedy: 'Widen the grant, or deny the action.',
  }),
  EXECUTION_UNDER_DENY: violation({
    title: 'something was executed under a deny',
    section: '§8 rule 1',
    meaning: 'The authorization was denied, and the execution is not a failed attempt that used nothing.',
    cause: 'The deny was not enforced.',
    remedy: 'Find out why the boundary let it through.',
  }),
  GRANT_DENIED: violation({
    title: 'the grant was denied',
    section: '§8 linkage',
    meaning: 'An allow rests on a grant that was itself denied.',
    cause: 'The policy did not look at the decision on the grant.',
    remedy: 'Allow only under grants that were allowed.',
  }),
  AUTHORIZATION_REUSED: violation({
    title: 'the action was executed before',
    section: '§8 rule 2',
    meaning: 'An allowed action authorizes one execution.',
    cause: 'A retry without a new decision, or a replay.',
    remedy: 'Ask for a decision for each execution.',
  }),
  EXECUTION_BEFORE_AUTHORIZATION: violation({
    title: 'the execution happened before it was authorized',
    section: '§8 rule 3',
    meaning: "The execution's time lies before its authorization's, though it was recorded after it.",
    cause: 'The decision came too late, or the clocks of two machines differ.',
    remedy: 'Compare the clocks; decide before acting.',
  }),
  AUTHORIZATION_BEFORE_GRANT: violation({
    title: 'the authorization is dated before its grant',
    section: '§8 rule 3',
    meaning: 'An action or a delegated grant has a time before that of the grant that it rests on.',
    cause: 'The authorization was back-dated, or the clocks of two machines differ.',
    remedy: 'Compare the clocks; grant before authorizing.',
  }),
  ACTION_EXPIRED: violation({
    title: 'the action had expired',
    section: '§8 rule 3',
    meaning: 'The execution began at or after expires_at of its action.',
    cause: 'The action waited too long, or its expiry was not enforced.',
    remedy: 'Ask for a new decision, or give decisions a longer time to live.',
  }),
  REQUEST_REPEATED: violation({
    title: 'the request key was used before',
    section: '§8 rule 18',
    meaning:
      'An earlier allowed action of the same principal under the same root grant has this request_key: one request was allowed twice.',
    cause: 'A decider did not know an earlier answer, or a producer uses one key for two requests.',
    remedy: 'Answer a retry with the decision that it has; use another key for another request.',
  }),
  GRANT_EXPIRED: violation({
    title: 'the grant had expired',
    section: '§8 rule 3',
    meaning:
      "The event's time is not before expires_at of its grant, or of a grant that it was delegated from.",
    cause: 'The expiry was not enforced.',
    remedy: 'Renew the grant before it expires.',
  }),
  GRANT_NOT_YET_VALID: violation({
    title: 'the grant was not yet valid',
    section: '§8 rule 3',
    meaning: "The event's time is before not_before of its grant, or of a grant that it was delegated from.",
    cause: 'The start of the grant was not enforced.',
    remedy: 'Wait until the grant is valid, or grant from an earlier time.',
  }),
  DELEGATION_EXCEEDED: violation({
    title: 'the delegated grant goes beyond its parent',
    section: '§8 rule 9',
    meaning:
      'Tools, caps, expiry and limits of a delegated grant must lie within those of the grant it comes from.',
    cause: 'A grant was delegated without its bounds being compared.',
    remedy: 'Narrow the delegated grant.',
  }),
  METER_CAP_EXCEEDED: violation({
    title: 'more was used than the grant caps',
    section: '§8 rule 5',
    meaning:
      'With this execution, use and outstanding reservations of the unit exceed the cap of the grant, or of one it was delegated from.',
    cause: 'The budget was not enforced, or the action reserved too little.',
    remedy: 'Look at the accounts of the grant: what was used before, and by which executions.',
  }),
  ACTION_CAP_EXCEEDED: violation({
    title: 'one action reserved or used more than the grant allows for one',
    section: '§8 rule 14',
    meaning:
      "An action's reservation or an execution's use is over an action cap of the grant, or of one that it was delegated from.",
    cause: 'The cap on single actions was not enforced.',
    remedy: 'Split the work, or grant a larger action cap.',
  }),
  ADJUSTMENT_EXCEEDED: violation({
    title: 'more is credited than counts as used',
    section: '§8 rule 11',
    meaning:
      'A credit may not exceed what counts as used under the grant, nor under any ancestor that caps the unit. No part of it is applied.',
    cause: 'A refund was recorded twice, or under the wrong grant or unit.',
    remedy: 'Credit at most what counts as used.',
  }),
  SELF_CREDIT: violation({
    title: 'a principal credits its own grant',
    section: '§8 rule 11',
    meaning:
      'Nobody refunds itself: a credit by the principal of the grant, or of one above it, is not applied.',
    cause: 'The party that spends also records the refunds.',
    remedy: 'Have the credit recorded and signed by the authority that granted.',
  }),
  RESERVATION_EXCEEDED: violation({
    title: 'more was used than was reserved',
    section: '§8 rule 5',
    meaning: "The execution used more of a unit than its action's reservation.",
    cause: 'The estimate was too low.',
    remedy: 'Reserve what the action may use at most.',
  }),
  RESERVATION_OVER_CAP: violation({
    title: 'more was reserved than the grant caps',
    section: '§8 rule 5',
    meaning:
      'With this action, use and outstanding reservations of the unit exceed the cap of the grant, or of one it was delegated from.',
    cause: 'The budget was not looked at when the action was allowed.',
    remedy: 'Release reservations that are not needed.',
  }),
  RATE_LIMIT_EXCEEDED: violation({
    title: 'the rate limit was exceeded',
    section: '§8 rule 6',
    meaning:
      'Within one window that ends at an execution, more was used (or executed, for calls) than the limit.',
    cause: 'The limit was not enforced.',
    remedy: 'Look at the executions in the window.',
  }),
  CONCURRENCY_EXCEEDED: violation({
    title: 'too many executions ran at once',
    section: '§8 rule 7',
    meaning: 'At some instant of this execution more executions of the grant ran than its limit.',
    cause: 'The limit was not enforced.',
    remedy: 'Look at the executions that overlap with it.',
  }),
  OUTPUT_MODE_EXCEEDED: violation({
    title: 'more of the output was given out than the grant allows',
    section: '§3.1',
    meaning: 'Under digest_only an execution may not refer to its output.',
    cause: 'The producer records output_ref without looking at the grant.',
    remedy: 'Record output_digest only.',
  }),
  ALLOW_WITH_FAILED_CHECK: violation({
    title: 'an allow has a check that failed',
    section: '§8',
    meaning: 'A decision cannot be an allow when one of the checks that it lists failed.',
    cause: 'The policy engine allows in spite of its own checks.',
    remedy: 'Find out what the check means to the policy.',
  }),
  HYGIENE_NOT_OK: violation({
    title: 'an allow rests on invalid input',
    section: '§1, §8',
    meaning: 'The hygiene report of the input that was decided on is Invalid.',
    cause: 'The policy was given input without a single meaning.',
    remedy: 'Deny what cannot be read safely.',
  }),
  METER_UNCAPPED: {
    class: 'none',
    severity: 'info',
    title: 'a unit was used that nothing caps',
    section: '§8 rule 5',
    meaning:
      'Neither the reservation nor any grant says how much of this unit may be used. Told once for a grant and unit.',
    cause: 'A producer meters more than the grant names.',
    remedy: 'Cap the unit if its use should be bounded.',
  },
  METER_UNREPORTED: warning({
    title: 'a reserved unit was not metered',
    section: '§8 rule 5',
    meaning:
      'The execution says nothing of a unit that its action reserved, so what was reserved counts as used, as estimated use. Reported once for a grant and unit.',
    cause: 'The producer does not meter the unit, or lost its usage record.',
    remedy: 'Record what was used of each reserved unit; record 0 where nothing was used.',
  }),
  RELEASE_OF_STARTED: warning({
    title: 'a started action was released',
    section: '§8 rule 8',
    meaning:
      'A start of this action is recorded before the release. Nothing is given back: what was reserved counts as used, as estimated use.',
    cause: 'A recorder that had begun the action was taken for one that had not.',
    remedy:
      'Settle a started action with an execution that says what was used, or with outcome unknown where nobody knows.',
  }),
  INTENT_UNLINKED: warning({
    title: "the intent is not linked to the grant's",
    section: '§8 rule 13',
    meaning:
      "An action or delegated grant has another intent than its grant, and does not name the grant's as its user_intent_digest.",
    cause: 'The producer does not record what the step was for.',
    remedy: "Set user_intent_digest to the grant's user_intent_digest, else to its intent_digest.",
  }),
  TIME_INCONSISTENT: warning({
    title: 'the event says that it started after it occurred',
    section: '§8 rule 3',
    meaning: 'started_at lies after occurred_at, the time at which the event was recorded.',
    cause: 'Clocks that differ, or a start that was computed.',
    remedy: 'Record the times as they were measured.',
  }),
  RESOURCE_NOT_GRANTED: warning({
    title: 'a resource was touched that the grant does not name',
    section: '§3.1',
    meaning: 'Resources are opaque: this one is not among those of the grant, character by character.',
    cause: 'The grant names resources in another way than the producer, or another resource was touched.',
    remedy: 'Compare the two names.',
  }),
  QUANTITY_LOSSY: warning({
    title: 'an amount is a binary floating-point number',
    section: '§2',
    meaning: 'The amount is exact as recorded, but was probably rounded before.',
    cause: 'A producer recorded an f64.',
    remedy: 'Record amounts as int or dec, from their decimal text.',
  }),
  TIME_REGRESSION: {
    class: 'none',
    severity: 'info',
    title: 'the event occurred before one that stands earlier',
    section: '§8',
    meaning: 'Timestamps go back. The order of the ledger decides, so this breaks no rule.',
    cause: 'Several producers, or clocks that differ.',
    remedy: 'Compare the clocks if the difference is large.',
  },
  HYGIENE_LOSSY: warning({
    title: 'the input that was decided on was not clean',
    section: '§1',
    meaning: 'The hygiene report of the input is Lossy or Ambiguous.',
    cause: 'Numbers were converted, or keys were doubled.',
    remedy: 'Have the input written in canonical form.',
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
