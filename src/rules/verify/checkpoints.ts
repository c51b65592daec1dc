/** Step 10 of SPEC §8, checkpoints (§3.4, §6): is each checkpoint one of this ledger, and signed by whoever may seal it? */

import { sha256Base64url } from '../../base/bytes/sha256.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import { toDigestText } from '../../base/value/digest.js';
import { compareTimestamps } from '../../base/value/timestamp.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { decodeCheckpoint, type SignedCheckpoint } from '../../format/note/checkpoint.js';
import type { ExaminedLine, WellFormedLine } from '../../format/record/examine-line.js';
import type { CheckpointEvent } from '../../format/schema/generated/types.js';
import { hashToBase64url, rangeRoot } from '../../format/tree/compact-range.js';
import {
  type CheckpointSigners,
  isPinned,
  isSignedByLog,
  listSigners,
  mergeSigners,
  type NoteVerdict,
  sameSigners,
} from '../trust/checkpoint-judge.js';
import { findCheckpointKeyProblem, findValidityProblem } from '../trust/keyring.js';
import { judgeLedgerNote } from './checkpoint-note.js';
import type { LineFindings } from './line-findings.js';
import type { EventVerdict } from './line-result.js';
import type { KnownCheckpoint, RecordPlace, Seals, UnsealedRecords } from './seals.js';
import { instantOf } from './signatures.js';
import type { VerifyState } from './state.js';

const NOTE = '/note';

/**
 * Judges a checkpoint or attestation record, before it takes its place in the tree; other records are passed over. What is
 * learned is kept in `state.seals`.
 */
export function checkCheckpoint(
  state: VerifyState,
  line: ExaminedLine,
  place: RecordPlace,
  findings: LineFindings,
): void {
  if (line.layout !== 'records') return;
  if (line.type === 'checkpoint') judgeCheckpoint(state, line, place, findings);
  if (line.type === 'attestation') judgeAttestation(state, line, findings);
}

function judgeCheckpoint(
  state: VerifyState,
  line: WellFormedLine<'checkpoint'>,
  place: RecordPlace,
  findings: LineFindings,
): void {
  const event = line.event();
  const treeProblems = findTreeProblems(state, event);
  for (const problem of treeProblems) findings.addToEvent(problem);
  const note = readNoteOf(event.note, findings);
  const noteProblems = note === undefined ? [] : findNoteProblems(state, event, note);
  for (const problem of noteProblems) findings.addToEvent(problem);
  const verdict = note && judgeSignatures(state, line, note);
  for (const problem of verdict?.problems ?? []) findings.addToEvent({ ...problem, pointer: NOTE });
  const signers = verdict?.signers ?? [];
  // Most checkpoints of a ledger have the same signers, and share one list of them.
  if (!sameSigners(signers, state.seals.lastSigners)) state.seals.lastSigners = signers;
  const matchesTree = note !== undefined && treeProblems.length === 0 && noteProblems.length === 0;
  const checkpoint: KnownCheckpoint = {
    place,
    verdict: 'ok',
    occurredAt: event.occurred_at,
    hasSignedTime: findings.signers.some((keyid) => isCheckpointKey(state, keyid)),
    textHash: note && hashText(note),
    treeSize: event.tree_size,
    matchesTree,
    signers: state.seals.lastSigners,
  };
  if (
    note !== undefined &&
    verdict !== undefined &&
    !isSignedByLog(verdict.signers) &&
    verdict.problems.length === 0
  ) {
    reportUnsigned(state, note, findings);
  }
  state.seals.known.set(line.eventId, checkpoint);
  updateSeals(state, checkpoint, checkpoint.signers);
}

/** The ledger's root at the size that a note states, where a right checkpoint of the ledger states the same. */
export function findStatedRoot(seals: Seals, note: SignedCheckpoint): string | undefined {
  const { size, root } = note.checkpoint;
  const textHash = hashText(note);
  for (const known of seals.known.values()) {
    if (known.matchesTree && known.treeSize === size && known.textHash === textHash) return root;
  }
  return undefined;
}

function hashText({ text }: SignedCheckpoint): string {
  return sha256Base64url(encodeUtf8(text));
}

/** Whether what the event says of the tree is so. Its root can only be held against the tree where the sizes agree. */
function findTreeProblems(state: VerifyState, event: CheckpointEvent): RuleFinding[] {
  const { tree_size: size, root, chain_tip_event_id: tip } = event;
  if (size !== state.records) {
    const expected = `${state.records}, the records before this one`;
    // Records that were dropped, or put in, are missed by every later checkpoint too.
    const cause = `by ${size - state.records}`;
    return [{ code: 'CHECKPOINT_SIZE_MISMATCH', pointer: '/tree_size', expected, actual: `${size}`, cause }];
  }
  const problems: RuleFinding[] = [];
  const code: FindingCode = 'CHECKPOINT_ROOT_MISMATCH';
  const actualRoot = hashToBase64url(rangeRoot(state.tree));
  if (root.b64 !== actualRoot) {
    const expected = `${toDigestText(actualRoot)}, the root of the ${size} records before this one`;
    // A record that was changed has every later root changed with it.
    problems.push({ code, pointer: '/root', expected, actual: toDigestText(root.b64), cause: 'root' });
  }
  if (tip.b64 !== state.tipEventId) {
    const expected = `${toDigestText(state.tipEventId ?? '')}, the event before this one`;
    problems.push({ code, pointer: '/chain_tip_event_id', expected, actual: toDigestText(tip.b64) });
  }
  return problems;
}

function readNoteOf(text: string, findings: LineFindings): SignedCheckpoint | undefined {
  const decoded = decodeCheckpoint(encodeUtf8(text), { mayRepeat: false });
  if (decoded.ok) return decoded.value;
  findings.addToEvent({ ...decoded.fault, code: 'CHECKPOINT_NOTE_MALFORMED', pointer: NOTE });
  return undefined;
}

/** Whether the note states the same tree as the event, of this ledger. */
function findNoteProblems(
  state: VerifyState,
  event: CheckpointEvent,
  { checkpoint }: SignedCheckpoint,
): RuleFinding[] {
  const problems: RuleFinding[] = [];
  const pointer = NOTE;
  if (state.origin !== undefined && checkpoint.origin !== state.origin) {
    problems.push({ code: 'ORIGIN_MISMATCH', pointer, expected: state.origin, actual: checkpoint.origin });
  }
  if (checkpoint.size !== event.tree_size) {
    const expected = `the event's tree_size, ${event.tree_size}`;
    problems.push({ code: 'CHECKPOINT_SIZE_MISMATCH', pointer, expected, actual: `${checkpoint.size}` });
  }
  const root = hashToBase64url(checkpoint.root);
  if (root !== event.root.b64) {
    const expected = `the event's root, ${toDigestText(event.root.b64)}`;
    problems.push({ code: 'CHECKPOINT_ROOT_MISMATCH', pointer, expected, actual: toDigestText(root) });
  }
  return problems;
}

function judgeSignatures(
  state: VerifyState,
  line: WellFormedLine,
  note: SignedCheckpoint,
): NoteVerdict | undefined {
  // One of another log is refused already, whoever signed it.
  if (state.origin !== undefined && note.checkpoint.origin !== state.origin) return undefined;
  const instant = instantOf(state, line);
  const verdict = judgeLedgerNote(
    state,
    note,
    (key, as) => (as === 'log' ? findCheckpointKeyProblem(key, instant) : findValidityProblem(key, instant)),
    Infinity,
  );
  state.seals.unknown += verdict.unknown;
  return verdict;
}

/** A note that no known key of the log signed seals nothing: an error only where there must be checkpoints. */
function reportUnsigned(state: VerifyState, note: SignedCheckpoint, findings: LineFindings): void {
  const { origin } = note.checkpoint;
  const own = note.signatures.find(({ name }) => name === origin);
  const actual = own === undefined ? `none named ${origin}` : `${own.name}+${own.keyId}`;
  findings.addToEvent({
    code: 'KEY_UNKNOWN',
    pointer: NOTE,
    expected: `a signature by a known key with role checkpoint, named ${origin}`,
    actual,
    cause: `note ${actual}`,
    ...(state.checkpointsRequired ? {} : { severity: 'warning' }),
  });
}

/** An attestation brings further signature lines on a checkpoint's own text. */
function judgeAttestation(
  state: VerifyState,
  line: WellFormedLine<'attestation'>,
  findings: LineFindings,
): void {
  const event = line.event();
  const { seals } = state;
  const id = event.checkpoint_event_id.b64;
  const checkpoint = seals.known.get(id);
  if (checkpoint === undefined) {
    findings.addToEvent({
      code: 'CHECKPOINT_MISSING',
      pointer: '/checkpoint_event_id',
      expected: 'the id of an earlier checkpoint',
      actual: toDigestText(id),
    });
  }
  const note = readNoteOf(event.note, findings);
  if (note === undefined) return;
  if (checkpoint?.textHash !== undefined && hashText(note) !== checkpoint.textHash) {
    findings.addToEvent({
      code: 'CHECKPOINT_NOTE_MALFORMED',
      pointer: NOTE,
      expected: "the text of the checkpoint's note",
      actual: 'another text',
      related: [relatedTo(checkpoint.place)],
    });
    return;
  }
  const verdict = judgeSignatures(state, line, note);
  // Anybody may attest: a line in another's name that does not verify says nothing of who bears that name.
  for (const problem of verdict?.problems ?? [])
    findings.addToEvent({ ...problem, pointer: NOTE, severity: 'warning' });
  if (checkpoint === undefined || verdict === undefined) return;
  const wasSigned = isSignedByLog(checkpoint.signers);
  checkpoint.signers = mergeSigners(checkpoint.signers, verdict.signers);
  seals.known.set(id, checkpoint);
  updateSeals(state, checkpoint, wasSigned ? verdict.signers : checkpoint.signers);
  if (seals.sealing === checkpoint) seals.attestations += 1;
}

/** A record that only a producer signed dates nothing: its time is the producer's word. */
function isCheckpointKey({ keyring }: VerifyState, keyid: string): boolean {
  return keyring.find(keyid)?.key.roles.includes('checkpoint') === true;
}

/** Draws the conclusions from what is known of a checkpoint, each time that more is known; `fresh` was not drawn on yet. */
function updateSeals(state: VerifyState, checkpoint: KnownCheckpoint, fresh: CheckpointSigners): void {
  const { seals, requirements } = state;
  const { signers, treeSize, matchesTree } = checkpoint;
  if (!matchesTree || !isSignedByLog(signers)) return;
  const { hasSignedTime, occurredAt } = checkpoint;
  if (hasSignedTime && (state.clock === undefined || compareTimestamps(occurredAt, state.clock) > 0))
    state.clock = occurredAt;
  for (const signer of listSigners(fresh)) {
    const { keyid, name, role } = signer;
    const key = `${role} ${keyid}`;
    if (treeSize > (seals.tallies.get(key)?.treeSize ?? -1))
      seals.tallies.set(key, { keyid, name, role, isPinned: isPinned(signer), treeSize });
  }
  if (treeSize > (seals.signed?.treeSize ?? -1)) {
    seals.signed = checkpoint;
    // An attestation may seal late what other records have followed since.
    for (const [name, { last }] of seals.unsealed) {
      if (last > treeSize) break;
      seals.unsealed.delete(name);
    }
  }
  const isNewer = treeSize > (seals.sealing?.treeSize ?? -1);
  if (
    isNewer &&
    requirements.findMissingLogKeys(signers) === undefined &&
    requirements.findMissingWitnesses(signers) === undefined
  ) {
    seals.sealing = checkpoint;
    seals.attestations = 0;
  }
}

/**
 * Where a policy says how many records there may be without a checkpoint: is one overdue at this record? A line that is no
 * readable object may be what is left of one.
 */
export function checkCheckpointDue(
  state: VerifyState,
  line: ExaminedLine | undefined,
  findings: LineFindings,
): void {
  const limit = state.policy?.require?.checkpoint_max_records;
  if (limit === undefined || line?.layout === undefined || line.eventType === 'checkpoint') return;
  const since = state.seals.signed?.treeSize ?? -1;
  const count = state.records - since;
  if (count <= limit) return;
  findings.add('CHECKPOINT_MISSING', {
    expected: `a checkpoint after at most ${limit} records`,
    actual: `${count} records without one`,
    cause: `due since ${since}`,
  });
}

/**
 * Keeps in mind what the records after the last signed checkpoint rest on: a key may be revoked yet. A checkpoint that seals rests
 * on its note; and a revocation takes only, so that nothing is won by forging one that was made.
 */
export function trackUnsealedSigners(
  { seals, signers, records }: VerifyState,
  line: ExaminedLine | undefined,
  place: RecordPlace,
  verdict: EventVerdict,
  keyids: readonly string[],
): void {
  const { intervalStart } = seals;
  if (line?.eventType === 'checkpoint') seals.intervalStart = records + 1;
  if (keyids.length === 0 || verdict === 'invalid') return;
  const isRevocation = line?.type === 'key' && line.event().action === 'revoke';
  if (seals.signed?.treeSize === records || isRevocation) return;
  for (const keyid of keyids) {
    const tally = signers.get(keyid);
    if (tally === undefined) continue;
    tally.last = records;
    signers.set(keyid, tally);
  }
  const name = nameGroup(intervalStart, keyids);
  let group = seals.unsealed.get(name);
  if (group === undefined) {
    const counts = { ok: 0, denied: 0, violation: 0, invalid: 0 };
    group = { keyids, first: place, begin: records, last: records, counts };
  }
  group.last = records;
  group.counts[verdict] += 1;
  seals.unsealed.set(name, group);
}

/** The records of the present interval that rest on the signatures of these keys, where there are any. */
export function findUnsealed(
  { unsealed, intervalStart }: Seals,
  keyids: readonly string[],
): UnsealedRecords | undefined {
  return unsealed.get(nameGroup(intervalStart, keyids));
}

/** The records that these signed and that no checkpoint seals were changed in place. */
export function touchUnsealed({ unsealed, intervalStart }: Seals, keyids: readonly string[]): void {
  const name = nameGroup(intervalStart, keyids);
  const group = unsealed.get(name);
  if (group !== undefined) unsealed.set(name, group);
}

let lastGroup = { intervalStart: -1, keyid: '', name: '' };

/** One after the other are nearly always of one group. */
function nameGroup(intervalStart: number, keyids: readonly string[]): string {
  const [keyid = ''] = keyids;
  if (keyids.length > 1) return `${intervalStart} ${[...keyids].sort().join(' ')}`;
  if (lastGroup.intervalStart !== intervalStart || lastGroup.keyid !== keyid)
    lastGroup = { intervalStart, keyid, name: `${intervalStart} ${keyid}` };
  return lastGroup.name;
}

export function relatedTo({ file, line, seq, eventId }: RecordPlace): {
  file: string;
  line: number;
  seq: number;
  eventId: string;
} {
  return { file, line, seq, eventId };
}
