/**
 * Every code that verification can give (SPEC §8), with its meaning, usual cause and remedy. A code never changes its
 * meaning within a major version. Remedies here name no command: `cli/remedies.ts` has those of the command line.
 */

export type Severity = 'error' | 'warning' | 'info';

/** The effect on the verdict: broken evidence, intact evidence of a broken bound, or none. */
export type FindingClass = 'invalid' | 'violation' | 'none';

export interface CodePage {
  /** A few words; every message of the finding starts with them. */
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
    meaning: 'The file does not end in a newline.',
    cause: 'A writer was stopped while writing, so the record was never acknowledged; or a copy was cut off.',
    remedy:
      'Open the ledger for appending: the torn bytes are saved beside it and cut off. Fetch a copy again.',
  }),
  LINE_TOO_LONG: invalid({
    title: 'the line is too long',
    section: '§4',
    meaning: 'A line has at most 65,535 bytes, the largest entry of a tiled log.',
    cause: 'Content was put into an event, or the file is not a ledger.',
    remedy: 'Store large content elsewhere and refer to its digest.',
  }),
  LINE_BLANK: invalid({
    title: 'the line is blank',
    section: '§4',
    meaning: 'Each line must hold one record.',
    cause: 'The file was edited or joined with another.',
    remedy: 'Restore the file from a copy.',
  }),
  INVALID_UTF8: invalid({
    title: 'the line is not valid UTF-8',
    section: '§1',
    meaning: 'A line must be UTF-8 (RFC 3629).',
    cause: 'The file was changed, damaged or re-encoded.',
    remedy: 'Restore the file from a copy, byte for byte.',
  }),
  BYTE_ORDER_MARK: invalid({
    title: 'the line starts with a byte order mark',
    section: '§1',
    meaning: 'U+FEFF precedes the JSON.',
    cause: 'An editor saved the file as "UTF-8 with BOM".',
    remedy: 'Restore the file from a copy.',
  }),
  NOT_JSON: invalid({
    title: 'the line is not JSON',
    section: '§1',
    meaning: 'A line must be one JSON text (RFC 8259).',
    cause: 'The line was changed, or the file is not a ledger.',
    remedy: 'Check that this is the right file, or restore it from a copy.',
  }),
  DUPLICATE_KEY: invalid({
    title: 'an object has the same key twice',
    section: '§1',
    meaning: 'Readers differ in which member they see, so the line has no single meaning.',
    cause: 'The line was crafted, or a tool concatenated JSON.',
    remedy: 'Treat the line as forged until you know which tool wrote it.',
  }),
  LONE_SURROGATE: invalid({
    title: 'a string has a lone surrogate',
    section: '§1',
    meaning: 'An escape such as \\ud800 without its other half denotes no character.',
    cause: 'A producer cut a string inside a character.',
    remedy: 'Cut strings between characters.',
  }),
  NESTING_TOO_DEEP: invalid({
    title: 'JSON is nested too deeply',
    section: '§1',
    meaning: 'Objects and arrays may be nested 64 deep.',
    cause: 'Content was put into an event, or the line was crafted.',
    remedy: 'Refer to such content by its digest.',
  }),
  NUMBER_NOT_CANONICAL: invalid({
    title: 'a number is not in its canonical form',
    section: '§1',
    meaning: 'A number must be its ECMAScript text, not -0, and as an integer within ±(2^53−1).',
    cause: 'A producer wrote `1.0`, `1E3` or a 64-bit integer.',
    remedy: 'Write amounts as quantities and lines as RFC 8785 JSON.',
  }),
  NOT_CANONICAL: invalid({
    title: 'the line is not canonical JSON',
    section: '§1',
    meaning: 'White space, key order or escapes differ from RFC 8785.',
    cause: 'The line was reformatted, or written without canonicalization.',
    remedy: 'Restore the file; write RFC 8785 JSON.',
  }),
  SCHEMA: invalid({
    title: 'a member does not match its schema',
    section: '§3, §4, §7',
    meaning: 'A member is missing, unknown or of the wrong form.',
    cause: 'The producer does not follow the format, or the line was changed.',
    remedy: 'Compare the named place with the schema.',
  }),
  TIMESTAMP_INVALID: invalid({
    title: 'a timestamp is not valid',
    section: '§2',
    meaning: 'A timestamp must be a real UTC time, YYYY-MM-DDThh:mm:ss[.f]Z, with at most 9 fraction digits.',
    cause: 'Another time zone, a leap second or an impossible date.',
    remedy: 'Write UTC with a final Z.',
  }),
  QUANTITY_INVALID: invalid({
    title: 'a quantity is not valid',
    section: '§2',
    meaning: 'A quantity must be a canonical int, dec, rat (lowest terms) or f64 (finite).',
    cause: 'Leading zeros, an unreduced fraction, more than 39 digits or a NaN.',
    remedy: 'Build quantities with the API.',
  }),
  METER_UNIT_DUPLICATE: invalid({
    title: 'a meter vector names a unit twice',
    section: '§2',
    meaning: 'A meter vector may name each unit once.',
    cause: 'A producer did not add up amounts.',
    remedy: 'Add the amounts of one unit together.',
  }),
  METER_NEGATIVE: invalid({
    title: 'a meter vector has a negative amount',
    section: '§2',
    meaning: 'Amounts in meter vectors are never negative.',
    cause: 'A refund was recorded as negative use.',
    remedy: 'Record a refund as an adjustment.',
  }),
  PROFILE_UNKNOWN: invalid({
    title: 'the canonical profile is not known',
    section: '§1',
    meaning: 'Only northroot-jcs-v1 is known; profiles are never guessed.',
    cause: 'Another version or system wrote the event.',
    remedy: 'Use a verifier that knows the profile.',
  }),
  EVENT_VERSION_UNKNOWN: invalid({
    title: 'the event version is not known',
    section: '§3',
    meaning: 'Only version "1" is known.',
    cause: 'The event was written for a later version.',
    remedy: 'Use a verifier that knows the version.',
  }),
  PAYLOAD_DIGEST_MISMATCH: invalid({
    title: 'payload_digest is not the digest of the payload',
    section: '§3',
    meaning: 'The event or its digest was changed.',
    cause: 'The event was edited, or its producer hashes other bytes.',
    remedy: 'Do not trust the content; compare with a copy.',
  }),
  EVENT_ID_MISMATCH: invalid({
    title: 'event_id is not the id of the payload',
    section: '§3',
    meaning: 'The content has another id.',
    cause: 'The event was edited, or its producer makes ids in another way.',
    remedy: 'Do not trust the content; compare with a copy.',
  }),
  LEDGER_MISMATCH: invalid({
    title: 'the event is for another ledger',
    section: '§3, §3.3',
    meaning: 'ledger_id names another genesis event, or a successor does not continue the named ledger.',
    cause: 'An event of another ledger was copied into this one.',
    remedy: 'Treat the record as replayed; sign events for their own ledger.',
  }),
  LEDGER_UNBOUND: invalid({
    title: 'the event does not say which ledger it is for',
    section: '§3',
    meaning:
      'Key events, and all events where genesis requires binding, must carry ledger_id: an unbound event can be replayed elsewhere.',
    cause: 'The producer does not bind events.',
    remedy: 'Set ledger_id to the event_id of genesis before signing.',
  }),
  GENESIS_MISSING: invalid({
    title: 'the ledger does not start with a genesis record',
    section: '§3.3',
    meaning: 'Genesis names the origin, the keys and what must be signed.',
    cause: 'The head of the file, or the first segment, is missing.',
    remedy: 'Find the missing head.',
  }),
  GENESIS_MISPLACED: invalid({
    title: 'a genesis record is not the first record',
    section: '§3.3',
    meaning: 'Only the first record may be a genesis event.',
    cause: 'Two ledgers were joined, or someone tried to declare keys.',
    remedy: 'Verify the two ledgers apart.',
  }),
  SEQ_GAP: invalid({
    title: 'seq is not the next number',
    section: '§4',
    meaning: 'Records are numbered 0, 1, 2, … without gaps.',
    cause: 'Earlier records were dropped, doubled or reordered.',
    remedy: 'Find the missing numbers in a copy.',
  }),
  PREV_MISMATCH: invalid({
    title: 'prev is not the hash of the line before',
    section: '§4',
    meaning: 'The record was chained to another line.',
    cause: 'The previous line was changed, dropped or moved, or the chain was forked.',
    remedy: 'Inspect the previous line first.',
  }),
  EVENT_DUPLICATE: invalid({
    title: 'the event is already in the ledger',
    section: '§4',
    meaning: 'Each event id may appear once.',
    cause: 'A record was copied, or two writers did not lock.',
    remedy: 'Append through northroot, which ignores a repeated event.',
  }),
  PREV_EVENT_NOT_FOUND: invalid({
    title: 'prev_event_id names no earlier event',
    section: '§3',
    meaning: 'The causal link must name an earlier event of this ledger.',
    cause: 'The earlier event was dropped, comes later or is elsewhere.',
    remedy: 'Append the earlier event first.',
  }),
  SIGNATURE_MISSING: invalid({
    title: 'the record is not signed',
    section: '§5, §7',
    meaning: 'The ledger or the trust policy requires a signature.',
    cause: 'The signature was stripped, or the producer had no key.',
    remedy: 'Find the signed record in a copy.',
  }),
  SIGNATURE_INVALID: invalid({
    title: 'a signature is not valid',
    section: '§5',
    meaning: 'The named key did not sign this event.',
    cause: 'The event or the signature was changed or copied.',
    remedy: 'Treat the record as forged.',
  }),
  KEY_UNKNOWN: invalid({
    title: 'the signing key is not known',
    section: '§7',
    meaning:
      'The signature could not be checked, as no trusted key has this keyid. A warning where signatures are optional.',
    cause: 'The key is missing from the trust policy or genesis, or a stranger signed.',
    remedy: 'Add the key to the trust policy if you know it.',
  }),
  KEY_NOT_FOR_PRINCIPAL: invalid({
    title: 'the signing key may not speak for this principal',
    section: '§7',
    meaning: 'The signature is right, but no principal pattern of the key matches.',
    cause: "A producer signed in another's name, or the patterns are too narrow.",
    remedy: 'Correct the patterns, or treat the record as forged.',
  }),
  KEY_NOT_FOR_ROLE: invalid({
    title: 'the signing key does not have the role for this',
    section: '§7',
    meaning: 'The signature is right, but the key lacks the required role.',
    cause: 'A key was used outside its purpose.',
    remedy: 'Sign with a key of the right role.',
  }),
  KEY_NOT_VALID_HERE: invalid({
    title: 'the signing key is not valid at this position',
    section: '§7',
    meaning:
      'The signature is right, but the key is expired, not yet valid or revoked at this record; or revoked later, with no checkpoint covering the record.',
    cause: 'An expired or revoked key was used, or a record was back-dated.',
    remedy: 'Sign with a valid key; have another key sign a checkpoint before you revoke one.',
  }),
  ORIGIN_MISMATCH: invalid({
    title: 'the origin does not match',
    section: '§6, §7',
    meaning: 'Genesis names an origin outside the policy, or a checkpoint is of another log.',
    cause: 'The wrong ledger or policy, or a substituted ledger.',
    remedy: 'Check which ledger this is.',
  }),
  CHECKPOINT_ROOT_MISMATCH: invalid({
    title: 'the checkpoint is not one of this ledger',
    section: '§3.4, §6',
    meaning: 'The root, or the event before the checkpoint, differs from the checkpoint.',
    cause: 'A covered record was changed, dropped or inserted.',
    remedy: 'Compare with a copy and find the first record that differs.',
  }),
  CHECKPOINT_SIZE_MISMATCH: invalid({
    title: 'the checkpoint states another number of records than precede it',
    section: '§3.4, §6',
    meaning: 'tree_size, the size in the note and the place of the record must agree.',
    cause: 'Earlier records were dropped or inserted, or the checkpoint was moved.',
    remedy: 'Compare with a copy and find the first record that differs.',
  }),
  CHECKPOINT_NOTE_MALFORMED: invalid({
    title: 'the note of the checkpoint is malformed',
    section: '§6',
    meaning: "The note is not a C2SP checkpoint; or an attestation's text differs from its checkpoint's.",
    cause: 'The note was changed, or its producer does not follow C2SP.',
    remedy: 'Compare the note with the C2SP specifications.',
  }),
  CHECKPOINT_SIGNATURE_INVALID: invalid({
    title: 'a signature of the checkpoint is not valid',
    section: '§5, §6',
    meaning: 'A signature line names a known key that did not make it.',
    cause: 'The note was changed, or the line was copied.',
    remedy: 'Treat the checkpoint as forged.',
  }),
  CHECKPOINT_MISSING: invalid({
    title: 'a checkpoint is missing',
    section: '§3.3, §6, §7',
    meaning: 'Checkpoints are required and none fits; or an attestation names none.',
    cause: 'The checkpoint was dropped, or none was made in time.',
    remedy: 'Have the operator of the ledger make one.',
  }),
  WITNESS_QUORUM: invalid({
    title: 'not enough witnesses cosigned the checkpoint',
    section: '§6, §7',
    meaning: 'Too few valid cosignatures meet the policy.',
    cause: 'Witnesses were unreachable or refused, or cosignatures were dropped.',
    remedy: 'Collect them; a witness that refuses may have seen another history.',
  }),
  TRUNCATED: invalid({
    title: 'records are missing from the end',
    section: '§6',
    meaning:
      'Your checkpoint covers more records than the ledger has; or the predecessor has fewer than genesis says.',
    cause: 'The end was cut off, or this is an older copy.',
    remedy: 'Find the missing records.',
  }),
  FORKED: invalid({
    title: 'the ledger does not extend your checkpoint',
    section: '§6',
    meaning: 'A record covered by the checkpoint, or stated for the predecessor, has changed.',
    cause: 'History was rewritten, or two histories are shown.',
    remedy: 'Keep both copies and find the first record that differs.',
  }),
  TAIL_UNSEALED: {
    class: 'invalid',
    severity: 'info',
    title: 'records follow the last checkpoint',
    section: '§6',
    meaning: 'No checkpoint covers them, so a writer could still change or drop them.',
    cause: 'They were appended since the last checkpoint.',
    remedy: 'Make a checkpoint.',
  },
  TILE_MISSING: invalid({
    title: 'a tile or an entry bundle is missing',
    section: '§6',
    meaning: "The checkpoint's tree needs this file.",
    cause: 'The tree was copied in part, or the file was removed.',
    remedy: 'Copy the tree again, or write it anew.',
  }),
  TILE_MISMATCH: invalid({
    title: 'a tile or an entry bundle has the wrong content',
    section: '§6',
    meaning:
      "The file's form or hashes do not match the entries; the checkpoint's root decides which is right.",
    cause: 'The file was changed, damaged or taken from another tree.',
    remedy: 'Compare with the ledger that was published.',
  }),
  TILE_UNEXPECTED: warning({
    title: 'a file does not belong to the tree',
    section: '§6',
    meaning: "The checkpoint's tree has no such tile; the file was not read.",
    cause: 'An update was interrupted, or the file was added.',
    remedy: 'Remove it, or publish the next checkpoint.',
  }),
  AUTH_NOT_FOUND: invalid({
    title: 'the authorization is not in the ledger',
    section: '§8 linkage',
    meaning: 'No record has the id that the execution names.',
    cause: 'The authorization was dropped, never recorded or is elsewhere.',
    remedy: 'Find the record; without it the execution has no permission.',
  }),
  AUTH_AFTER_EXECUTION: invalid({
    title: 'the authorization was recorded after the execution',
    section: '§8 linkage',
    meaning: 'A later authorization cannot have permitted the execution.',
    cause: 'The decision was recorded late or made up.',
    remedy: 'Record each decision before acting.',
  }),
  AUTH_NOT_AN_AUTHORIZATION: invalid({
    title: 'auth_event_id names no authorization',
    section: '§8 linkage',
    meaning: 'The named event has another type, or is malformed.',
    cause: "A producer's mistake, or damage.",
    remedy: 'Inspect the named record.',
  }),
  GRANT_NOT_FOUND: invalid({
    title: 'the grant is not in the ledger before this event',
    section: '§8 linkage',
    meaning: 'grant_event_id must name an earlier record.',
    cause: 'The grant was dropped, comes later or is elsewhere.',
    remedy: 'Find the record; without it no bounds can be checked.',
  }),
  GRANT_NOT_A_GRANT: invalid({
    title: 'grant_event_id names no grant',
    section: '§8 linkage',
    meaning: 'The named event has another type, or is malformed.',
    cause: "A producer's mistake, or damage.",
    remedy: 'Inspect the named record.',
  }),
  INTENT_MISMATCH: invalid({
    title: 'the execution was for another intent than was authorized',
    section: '§8 linkage',
    meaning: 'intent_digest must be that of the authorization, and user_intent_digest that of the grant.',
    cause: 'The intent was changed after the decision, or the wrong record is named.',
    remedy: 'Ask for a decision on the executed intent.',
  }),
  TOOL_MISMATCH: invalid({
    title: 'another tool was executed than was authorized',
    section: '§8 linkage',
    meaning: "An execution's tool_name must be its action's.",
    cause: 'Another tool was called, or the wrong authorization is named.',
    remedy: 'Compare the two records.',
  }),
  TOOL_PARAMS_MISMATCH: invalid({
    title: 'the tool was called with other parameters than were authorized',
    section: '§8 linkage',
    meaning: "tool_params_digest must be its action's.",
    cause: 'The parameters were changed after the decision.',
    remedy: 'Authorize the parameters that are used.',
  }),
  EVIDENCE_MISSING: invalid({
    title: 'evidence for a bound is missing',
    section: '§8 rule 7, §3.2',
    meaning: "A concurrency limit needs both times of an execution; an action needs its parameters' digest.",
    cause: 'The producer omits started_at, ended_at or tool_params_digest.',
    remedy: 'Record all three.',
  }),
  SLICE_NOT_FOUND: invalid({
    title: 'the slice was not found',
    section: '§8 rule 17',
    meaning:
      'The ledger that the grant names is given, and has no such slice: an action that it allowed, without a fault in its record, and that was begun there.',
    cause:
      'The given copy is older than the slice, the grant names the wrong action, or the slice was made up.',
    remedy: 'Verify against a newer copy of that ledger; otherwise treat the grant as forged.',
  }),
  EXECUTION_NOT_FOUND: invalid({
    title: 'the adjustment names no earlier execution',
    section: '§8 rule 11',
    meaning: 'execution_event_id must name an earlier execution.',
    cause: 'The execution was dropped, comes later, or the id is of another event.',
    remedy: 'Append the execution first, or omit the member.',
  }),
  EXECUTION_NOT_UNDER_GRANT: invalid({
    title: 'the execution does not count under the grant that is adjusted',
    section: '§8 rule 11',
    meaning: 'The execution must count under the named grant: directly, by an action or by delegation.',
    cause: 'The adjustment names the wrong grant or execution.',
    remedy: 'Adjust the grant that the execution used.',
  }),
  PRINCIPAL_MISMATCH: violation({
    title: 'another principal acted than was authorized',
    section: '§8 rule 10',
    meaning: "An action's principal must be its grant's, an execution's its authorization's.",
    cause: "A principal used another's authorization.",
    remedy: 'Delegate a grant to the acting principal.',
  }),
  TOOL_NOT_ALLOWED: violation({
    title: 'the tool is not one that the grant allows',
    section: '§8 rule 4',
    meaning: 'The tool matches no pattern of the grant, or of one above it.',
    cause: 'The policy allowed more than the grant does.',
    remedy: 'Widen the grant, or deny the action.',
  }),
  EXECUTION_UNDER_DENY: violation({
    title: 'something was executed under a deny',
    section: '§8 rule 1',
    meaning: 'The authorization was denied, and the execution is more than a blocked attempt.',
    cause: 'The deny was not enforced.',
    remedy: 'Find out why the boundary let it through.',
  }),
  APPROVAL_NOT_FOUND: invalid({
    title: 'the approval is not in the ledger',
    section: '§8 linkage',
    meaning: 'An id of approval_event_ids names no earlier record.',
    cause: 'The approval was never appended, or came later.',
    remedy: 'Append the approval before the action that it is for.',
  }),
  APPROVAL_NOT_AN_APPROVAL: invalid({
    title: 'the event is not an approval',
    section: '§8 linkage',
    meaning: 'An id of approval_event_ids names another event, or an approval that is not well-formed.',
    cause: 'The id of the request was taken for that of its approval.',
    remedy: 'Name the ids of approvals.',
  }),
  GRANT_DENIED: violation({
    title: 'the grant was denied',
    section: '§8 linkage',
    meaning: 'An allow or an adjustment names a denied grant.',
    cause: 'The policy ignored the decision on the grant.',
    remedy: 'Use allowed grants only.',
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
    meaning: "The execution's time precedes its authorization's.",
    cause: 'The decision came late, or clocks differ.',
    remedy: 'Compare the clocks; decide before acting.',
  }),
  AUTHORIZATION_BEFORE_GRANT: violation({
    title: 'the authorization is dated before its grant',
    section: '§8 rule 3',
    meaning: 'An action or delegated grant is dated before its grant.',
    cause: 'It was back-dated, or clocks differ.',
    remedy: 'Compare the clocks; grant before authorizing.',
  }),
  ACTION_EXPIRED: violation({
    title: 'the action had expired',
    section: '§8 rule 3',
    meaning: "The execution began at or after its action's expires_at.",
    cause: 'The action waited too long, or its expiry was not enforced.',
    remedy: 'Ask for a new decision.',
  }),
  SLICE_EXCEEDED: violation({
    title: 'the grant exceeds its slice',
    section: '§8 rule 17',
    meaning:
      'The grant caps a unit higher than the slice reserves it, leaves one uncapped that the slice or its grants limit, or is valid for longer.',
    cause: 'The grant was made before the slice was decided, or was written by hand.',
    remedy: 'Revoke the grant, and make one whose caps and expiry are those of the slice.',
  }),
  SLICE_MISMATCH: violation({
    title: 'the slice is not what its ledger says',
    section: '§8 rule 17',
    meaning:
      'The slice is for another ledger or principal than the grant that names it; or it was settled by a checkpoint that is not in this ledger, at which it could still be spent, or with another use.',
    cause:
      'The settlement was written by hand, the ledger was cut off or forked, or the grant names the wrong slice.',
    remedy:
      'Compare both ledgers: a slice is settled up to a checkpoint at which its grant is revoked with stop and nothing is open.',
  }),
  SLICE_REUSED: violation({
    title: 'the slice was spent by an earlier grant',
    section: '§8 rule 17',
    meaning:
      'An earlier allowed grant of this ledger names the same slice, so that its amounts would count twice.',
    cause: 'A grant was written again instead of being found in the ledger.',
    remedy: 'Revoke one of the grants; set a new slice aside where more is needed.',
  }),
  REQUEST_REPEATED: violation({
    title: 'the request key was used before',
    section: '§8 rule 18',
    meaning: 'An earlier allowed action of the same principal and root grant has this request_key.',
    cause: 'A decider missed an earlier answer, or a key was reused.',
    remedy: 'Answer a retry with its earlier decision; give each request its own key.',
  }),
  APPROVAL_MISSING: violation({
    title: 'an approval is missing',
    section: '§8 rule 15',
    meaning:
      'A rule of its grant, or of one above it, needs approvals of this call that the action does not name.',
    cause:
      'Nobody approved; or an approval was expired, used up, withdrawn, for another call, or by the agent itself.',
    remedy: 'Record the request, have it approved, and name the approvals in the action.',
  }),
  APPROVAL_REUSED: violation({
    title: 'the approval was used before',
    section: '§8 rule 15',
    meaning: 'An approval is for one action; an earlier one used it up.',
    cause: 'A retry without a new approval, or a replay.',
    remedy: 'Have each call approved.',
  }),
  APPROVAL_EXCEEDED: violation({
    title: 'more than was approved',
    section: '§8 rule 15',
    meaning: 'The action reserves, or its execution used, more of a unit than meter_limit of an approval.',
    cause: 'The limit of the approval was not enforced.',
    remedy: 'Reserve at most what is approved, or have more approved.',
  }),
  GRANT_REVOKED: violation({
    title: 'the grant was revoked or suspended',
    section: '§8 rule 16',
    meaning: 'Its grant, or one above it, was withdrawn before; or a stop met the action before it began.',
    cause: 'A revocation was not enforced.',
    remedy:
      'Ask for each decision after the revocation is on disk; name the start of what was begun before it.',
  }),
  GRANT_EXPIRED: violation({
    title: 'the grant had expired',
    section: '§8 rule 3',
    meaning: "The event's time is not before expires_at of its grant, or of one above it.",
    cause: 'The expiry was not enforced.',
    remedy: 'Renew the grant before it expires.',
  }),
  GRANT_NOT_YET_VALID: violation({
    title: 'the grant was not yet valid',
    section: '§8 rule 3',
    meaning: "The event's time is before not_before of its grant, or of one above it.",
    cause: 'The start was not enforced.',
    remedy: 'Wait, or grant from an earlier time.',
  }),
  DELEGATION_EXCEEDED: violation({
    title: 'the delegated grant goes beyond its parent',
    section: '§8 rule 9',
    meaning: "A delegated grant's bounds must lie within its parent's.",
    cause: 'A grant was delegated without comparing bounds.',
    remedy: 'Narrow the delegated grant.',
  }),
  METER_CAP_EXCEEDED: violation({
    title: 'more was used than the grant caps',
    section: '§8 rule 5',
    meaning: 'Use and outstanding reservations exceed the cap of the grant, or of one above it.',
    cause: 'The budget was not enforced, or the action reserved too little.',
    remedy: 'Inspect the accounts of the grant.',
  }),
  ACTION_CAP_EXCEEDED: violation({
    title: 'an action reserved or used more than its grant allows for one',
    section: '§8 rule 14',
    meaning: 'The amount is over an action cap of the grant, or of one above it.',
    cause: 'The action cap was not enforced.',
    remedy: 'Split the work, or raise the action cap.',
  }),
  ADJUSTMENT_EXCEEDED: violation({
    title: 'more is credited than counts as used',
    section: '§8 rule 11',
    meaning: 'A credit may not exceed the use under the grant or a grant above it; none of it is applied.',
    cause: 'A refund was recorded twice, or under the wrong grant.',
    remedy: 'Credit at most the recorded use.',
  }),
  SELF_CREDIT: violation({
    title: 'a principal credits its own grant',
    section: '§8 rule 11',
    meaning: 'A credit by the principal of the grant, or of one above it, is not applied.',
    cause: 'The spending party also records refunds.',
    remedy: 'Have the granting authority sign the credit.',
  }),
  RESERVATION_EXCEEDED: violation({
    title: 'more was used than was reserved',
    section: '§8 rule 5',
    meaning: 'The execution used more of a unit than its action reserved.',
    cause: 'The estimate was too low.',
    remedy: 'Reserve the most that the action may use.',
  }),
  RESERVATION_OVER_CAP: violation({
    title: 'more was reserved than the grant caps',
    section: '§8 rule 5',
    meaning: 'Use and outstanding reservations exceed the cap of the grant, or of one above it.',
    cause: 'The budget was not checked when the action was allowed.',
    remedy: 'Release reservations that are not needed.',
  }),
  RATE_LIMIT_EXCEEDED: violation({
    title: 'the rate limit was exceeded',
    section: '§8 rule 6',
    meaning: 'More was used (for calls: executed) within one window than the limit.',
    cause: 'The limit was not enforced.',
    remedy: 'Inspect the executions in the window.',
  }),
  CONCURRENCY_EXCEEDED: violation({
    title: 'too many executions ran at once',
    section: '§8 rule 7',
    meaning: 'At some instant more executions of the grant ran than its limit.',
    cause: 'The limit was not enforced.',
    remedy: 'Inspect the overlapping executions.',
  }),
  OUTPUT_MODE_EXCEEDED: violation({
    title: 'more output was recorded than the grant allows',
    section: '§3.1',
    meaning: 'Under digest_only an execution may not carry output_ref.',
    cause: 'The producer ignores output_mode.',
    remedy: 'Record output_digest only.',
  }),
  ALLOW_WITH_FAILED_CHECK: violation({
    title: 'an allow has a check that failed',
    section: '§8',
    meaning: 'A decision cannot be allow when a listed check failed.',
    cause: 'The policy engine overrules its own checks.',
    remedy: 'Find out what the check means to the policy.',
  }),
  HYGIENE_NOT_OK: violation({
    title: 'an allow rests on invalid input',
    section: '§1, §8',
    meaning: "The input's hygiene report is Invalid.",
    cause: 'The policy decided on input without a single meaning.',
    remedy: 'Deny input that cannot be read safely.',
  }),
  METER_UNCAPPED: {
    class: 'none',
    severity: 'info',
    title: 'a used unit has no cap',
    section: '§8 rule 5',
    meaning: 'Neither the reservation nor any grant bounds this unit. Reported once per grant and unit.',
    cause: 'A producer meters more than the grant names.',
    remedy: 'Cap the unit to bound its use.',
  },
  METER_UNREPORTED: warning({
    title: 'a reserved unit was not metered',
    section: '§8 rule 5',
    meaning:
      'The execution omits a reserved unit, so its reservation counts as estimated use. Reported once per grant and unit.',
    cause: 'The producer does not meter the unit, or lost its usage record.',
    remedy: 'Record each reserved unit, 0 included.',
  }),
  RELEASE_OF_STARTED: warning({
    title: 'a started action was released',
    section: '§8 rule 8',
    meaning: 'A recorded start precedes the release, so the reservation counts as estimated use.',
    cause: 'The recorder had begun the action before the release.',
    remedy: 'Settle a started action with an execution; use outcome unknown if the use is not known.',
  }),
  INTENT_UNLINKED: warning({
    title: "the intent is not linked to the grant's",
    section: '§8 rule 13',
    meaning: "The intent differs from the grant's, and user_intent_digest does not name the grant's.",
    cause: 'The producer does not record what the step was for.',
    remedy: "Set user_intent_digest to the grant's user_intent_digest, else to its intent_digest.",
  }),
  TIME_INCONSISTENT: warning({
    title: 'the event started after it occurred',
    section: '§8 rule 3',
    meaning: 'started_at is later than occurred_at, the time of recording.',
    cause: 'Clocks differ, or a start was computed.',
    remedy: 'Record times as measured.',
  }),
  RESOURCE_NOT_GRANTED: warning({
    title: 'a resource was touched that the grant does not name',
    section: '§3.1',
    meaning: 'The grant lists no identical kind and reference.',
    cause: 'Names differ, or another resource was touched.',
    remedy: 'Compare the two names.',
  }),
  QUANTITY_LOSSY: warning({
    title: 'an amount is a binary floating-point number',
    section: '§2',
    meaning: 'The amount is exact as recorded, but was probably rounded before.',
    cause: 'A producer recorded an f64.',
    remedy: 'Record int or dec from the decimal text.',
  }),
  TIME_REGRESSION: {
    class: 'none',
    severity: 'info',
    title: 'the event is dated before an earlier record',
    section: '§8',
    meaning: 'The order of the ledger decides, so this breaks no rule.',
    cause: 'Several producers, or clocks that differ.',
    remedy: 'Compare the clocks if the difference is large.',
  },
  HYGIENE_LOSSY: warning({
    title: 'the input of the decision was not clean',
    section: '§1',
    meaning: "The input's hygiene report is Lossy or Ambiguous.",
    cause: 'Numbers were converted, or keys were doubled.',
    remedy: 'Have the input written in canonical form.',
  }),
  PRICE_MISMATCH: warning({
    title: 'the amount is not what the price file says',
    section: '§3.2',
    meaning:
      'The usd of an execution differ from what its tokens cost by the price file that it names. Found only where price files are given.',
    cause:
      'The amount was changed, holds other costs too, or is of several calls that have different prices.',
    remedy: 'Compute it again from the usage that the provider stated.',
  }),
  DENIAL_UNFOUNDED: {
    class: 'none',
    severity: 'info',
    title: 'the grants would have allowed what was denied',
    section: '§8 rule 1',
    meaning:
      'Decided again at its place, the denied action is within its grant, and no check of the record says who else refused it. Found only where decisions are checked.',
    cause: 'The gate refused for a reason that it did not record, or wrongly.',
    remedy: 'Ask the owner of the gate why it was refused.',
  },
  EVENT_TYPE_UNKNOWN: {
    class: 'none',
    severity: 'info',
    title: 'the event type is not known',
    section: '§3',
    meaning: 'The event was hashed, chained and its signature checked, but not interpreted.',
    cause: 'A type of a later version, or an extension not named `x.…`.',
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
