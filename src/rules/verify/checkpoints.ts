/** Step 10 of SPEC §8, checkpoints (§3.4, §6): is each checkpoint of this ledger, and signed by a key that may seal it? */

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
 * Judges a checkpoint or attestation, before its leaf is appended to the tree; ignores other records. Updates `state.seals`.
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
  // Checkpoints with the same signers share one list.
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
  )
    reportUnsigned(state, note, findings);
  state.seals.known.set(line.eventId, checkpoint);
  updateSeals(state, checkpoint, checkpoint.signers);
  // In a selection of records its root cannot be compared. It dates nonetheless: else what had expired would look current.
  const isUnseen =
    treeProblems.length > 0 && treeProblems.every(({ code }) => state.isExplained?.(code, NOTE));
  if (isUnseen && note !== undefined && noteProblems.length === 0) advanceClock(state, checkpoint);
}

/** The ledger's root at the size of a note, where a right checkpoint of the ledger states the same. */
export function findStatedRoot(seals: Seals, note: SignedCheckpoint): string | undefined {
  const { size, root } = note.checkpoint;
  const textHash = hashText(note);
  for (const known of seals.known.values())
    if (known.matchesTree && known.treeSize === size && known.textHash === textHash) return root;
  return undefined;
}

function hashText({ text }: SignedCheckpoint): string {
  return sha256Base64url(encodeUtf8(text));
}

/** Whether the event states the right tree. Its root is compared only if the size is right. */
function findTreeProblems(state: VerifyState, event: CheckpointEvent): RuleFinding[] {
  const { tree_size: size, root, chain_tip_event_id: tip } = event;
  if (size !== state.records) {
    const expected = `${state.records}, the records before this one`;
    // Records that were dropped or inserted make every later size wrong too.
    const cause = `by ${size - state.records}`;
    return [{ code: 'CHECKPOINT_SIZE_MISMATCH', pointer: '/tree_size', expected, actual: `${size}`, cause }];
  }
  const problems: RuleFinding[] = [];
  const code: FindingCode = 'CHECKPOINT_ROOT_MISMATCH';
  const actualRoot = hashToBase64url(rangeRoot(state.tree));
  if (root.b64 !== actualRoot) {
    const expected = `${toDigestText(actualRoot)}, the root of the ${size} records before this one`;
    // A changed record makes every later root wrong too.
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
  if (state.origin !== undefined && checkpoint.origin !== state.origin)
    problems.push({ code: 'ORIGIN_MISMATCH', pointer, expected: state.origin, actual: checkpoint.origin });
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
  // A note of another log is refused already.
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

/** A note without a signature by a known key of the log seals nothing: an error only where checkpoints are required. */
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

/** An attestation adds signature lines to a checkpoint's text. */
function judgeAttestation(
  state: VerifyState,
  line: WellFormedLine<'attestation'>,
  findings: LineFindings,
): void {
  const event = line.event();
  const { seals } = state;
  const id = event.checkpoint_event_id.b64;
  const checkpoint = seals.known.get(id);
  if (checkpoint === undefined)
    findings.addToEvent({
      code: 'CHECKPOINT_MISSING',
      pointer: '/checkpoint_event_id',
      expected: 'the id of an earlier checkpoint',
      actual: toDigestText(id),
    });
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
  // Anyone may attest: an invalid line in another's name proves nothing about that key.
  for (const problem of verdict?.problems ?? [])
    findings.addToEvent({ ...problem, pointer: NOTE, severity: 'warning' });
  if (checkpoint === undefined || verdict === undefined) return;
  const wasSigned = isSignedByLog(checkpoint.signers);
  checkpoint.signers = mergeSigners(checkpoint.signers, verdict.signers);
  seals.known.set(id, checkpoint);
  updateSeals(state, checkpoint, wasSigned ? verdict.signers : checkpoint.signers);
  if (seals.sealing === checkpoint) seals.attestations += 1;
}

/** A record that only a producer signed dates nothing: its time is the producer's claim. */
function isCheckpointKey({ keyring }: VerifyState, keyid: string): boolean {
  return keyring.find(keyid)?.key.roles.includes('checkpoint') === true;
}

/** A checkpoint whose record and note keys of the log signed is dating (SPEC §7). */
function advanceClock(state: VerifyState, { signers, hasSignedTime, occurredAt }: KnownCheckpoint): void {
  if (!hasSignedTime || !isSignedByLog(signers)) return;
  if (state.clock === undefined || compareTimestamps(occurredAt, state.clock) > 0) state.clock = occurredAt;
}

/** Applies a checkpoint to the seals, each time that it has more signers. @param fresh - The new ones. */
function updateSeals(state: VerifyState, checkpoint: KnownCheckpoint, fresh: CheckpointSigners): void {
  const { seals, requirements } = state;
  const { signers, treeSize, matchesTree } = checkpoint;
  if (!matchesTree || !isSignedByLog(signers)) return;
  advanceClock(state, checkpoint);
  for (const signer of listSigners(fresh)) {
    const { keyid, name, role } = signer;
    const key = `${role} ${keyid}`;
    if (treeSize > (seals.tallies.get(key)?.treeSize ?? -1))
      seals.tallies.set(key, { keyid, name, role, isPinned: isPinned(signer), treeSize });
  }
  if (treeSize > (seals.signed?.treeSize ?? -1)) {
    seals.signed = checkpoint;
    // An attestation may seal a checkpoint that other records have followed.
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
 * Whether a checkpoint is overdue at this record, where a policy limits the records without one. An unreadable line may have been a
 * checkpoint.
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
 * Remembers the signers of records after the last signed checkpoint: a key may be revoked later. A sealing checkpoint rests on its note,
 * and nothing is gained by forging a revocation that was made.
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

/** The records of the current interval that these keys signed, if any. */
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

/** Consecutive records nearly always share a group. */
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
