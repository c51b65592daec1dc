/**
 * The findings that are known only at the end of a ledger (SPEC §6 to §8): links to events that never came, how far it is sealed and
 * what the policies require of that, and the checkpoints that the user holds. The state is not changed, so that it can be saved and
 * resumed.
 */

import type { FileFault } from '../../base/fault.js';
import { toDigestText } from '../../base/value/digest.js';
import { parseTimestamp } from '../../base/value/timestamp.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import type { RuleFinding } from '../../format/finding/rule-finding.js';
import { hashToBase64url } from '../../format/tree/compact-range.js';
import type { TileFaultCode } from '../source/ledger-source.js';
import { type CheckpointSigners, isSignedByLog } from '../trust/checkpoint-judge.js';
import type { Grant } from '../bounds/grant.js';
import { type AnchorOutcome, type AnchorWatch, isOfLedger } from './anchors.js';
import { settlePending } from './authorizations.js';
import { type FindingPlace, makeFinding } from './line-findings.js';
import type { EventVerdict } from './line-result.js';
import {
  findPredecessorProblem,
  type PredecessorRelation,
  type PredecessorView,
  relationTo,
} from './predecessor.js';
import type { KnownCheckpoint, RecordPlace, UnsealedRecords } from './seals.js';
import { demandsCheckpoints, type KnownGenesis, type VerifyState } from './state.js';

/** Options of {@link finishVerification}. */
export interface EndOptions {
  /** The checkpoints that the user holds. They MUST have observed the whole tree. */
  readonly anchors?: AnchorWatch;
  /** Faults of the ledger's files. */
  readonly sourceFaults?: readonly FileFault<TileFaultCode>[];
  /** The ledger that the user gives as predecessor. */
  readonly predecessor?: PredecessorView;
  /** The time of verification, for policies that bound the age of checkpoints: a timestamp of SPEC §2. */
  readonly now?: string;
}

export interface Ending {
  readonly findings: readonly Finding[];
  readonly anchors: readonly AnchorOutcome[];
  /** The largest tree size of a signed checkpoint, in the ledger or published with it; null for none. */
  readonly lastTreeSize: number | null;
  /** How many records are after it. */
  readonly unsealed: number;
  /** The same, with the checkpoints that the user holds. */
  readonly sealedSize: number | null;
  readonly afterSealed: number;
  /** Whether the given predecessor is the one that genesis names; undefined where either is missing. */
  readonly predecessor: PredecessorRelation | undefined;
  /**
   * Records whose verdict is now invalid, by their earlier verdict: a key was revoked and no checkpoint covers them, or a finding of the
   * end is at them.
   */
  readonly uncovered: Readonly<Record<EventVerdict, number>>;
  /** Records whose verdict was ok and is a violation now: grants whose slices were settled otherwise. */
  readonly violating: number;
}

/** Verdicts of records that a checkpoint may need to cover. */
const COVERABLE = ['ok', 'denied', 'violation'] as const;

interface Seal {
  readonly treeSize: number;
  /** The records up to it: those it covers, and its own. */
  readonly reach: number;
  readonly signers: CheckpointSigners;
  readonly checkpoint: KnownCheckpoint | undefined;
  /** Whether the user holds it. */
  readonly isHeld: boolean;
}

/** Ends a verification. */
export function finishVerification(state: VerifyState, options: EndOptions = {}): Ending {
  const anchors = options.anchors?.judge(state) ?? [];
  const seals = sealsOf(state, anchors);
  const signed = largest(seals);
  const own = largest(seals.filter(({ isHeld }) => !isHeld));
  const sealing = largest(
    seals.filter(
      ({ signers }) =>
        state.requirements.findMissingLogKeys(signers) === undefined &&
        state.requirements.findMissingWitnesses(signers) === undefined,
    ),
  );
  const uncovered = findUncovered(state, signed);
  const slices = state.parents?.judge().filter((each) => each.findings.length > 0) ?? [];
  const findings = [
    ...settlePending(state),
    ...uncovered.map((group) => describeUncovered(state, group)),
    ...findMissingSeal(state, signed, sealing),
    ...findOldSeal(state, sealing, options.now),
    ...findTail(state, signed, sealing),
    ...anchors.flatMap((anchor) => findAnchorProblems(state, anchor)),
    ...(options.sourceFaults ?? []).map(describeFault),
    ...findPredecessor(state, options.predecessor),
    ...slices.flatMap((each) => each.findings),
  ];
  const { predecessor } = options;
  const continues = state.genesis?.continues;
  return {
    findings,
    anchors,
    lastTreeSize: own?.treeSize ?? null,
    unsealed: state.records - (own?.reach ?? 0),
    sealedSize: signed?.treeSize ?? null,
    afterSealed: state.records - (signed?.reach ?? 0),
    predecessor: continues && predecessor && relationTo(continues, predecessor),
    uncovered: sumUp(uncovered, listFallen(state, seals, uncovered, findings)),
    violating: slices.filter(({ grant }) => grant.isSound && !isUncovered(state, grant, signed)).length,
  };
}

/** The seals in the ledger, and those that the user holds. */
function sealsOf(state: VerifyState, anchors: readonly AnchorOutcome[]): Seal[] {
  const { signed, sealing } = state.seals;
  const own = [signed, sealing].flatMap((checkpoint) =>
    checkpoint === undefined || checkpoint.treeSize === 0
      ? []
      : [
          {
            treeSize: checkpoint.treeSize,
            reach: checkpoint.treeSize + 1,
            signers: checkpoint.signers,
            checkpoint,
            isHeld: false,
          },
        ],
  );
  const held = anchors
    .filter((anchor) => isOfLedger(anchor) && isSignedByLog(anchor.signatures.signers))
    .map(({ note, signatures, isPublished }) => {
      const { size } = note.checkpoint;
      const { signers } = signatures;
      return { treeSize: size, reach: size, signers, checkpoint: undefined, isHeld: !isPublished };
    });
  return [...own, ...held];
}

function largest(seals: readonly Seal[]): Seal | undefined {
  return seals.reduce<Seal | undefined>(
    (best, seal) => (best !== undefined && best.reach >= seal.reach ? best : seal),
    undefined,
  );
}

/** Records that only revoked keys signed and no checkpoint covers: they could have been made at any time. */
function findUncovered({ keyring, seals }: VerifyState, signed: Seal | undefined): UnsealedRecords[] {
  const covered = signed?.reach ?? 0;
  const isRevoked = (keyid: string): boolean => keyring.find(keyid)?.revokedBy !== undefined;
  const bySigners = new Map<string, UnsealedRecords>();
  for (const { keyids, first, begin, last, counts } of seals.unsealed.values()) {
    if (last < covered || !keyids.every(isRevoked)) continue;
    const name = [...keyids].sort().join(' ');
    const group = bySigners.get(name);
    if (group === undefined) bySigners.set(name, { keyids, first, begin, last, counts: { ...counts } });
    else for (const verdict of COVERABLE) group.counts[verdict] += counts[verdict];
  }
  return [...bySigners.values()];
}

/** Whether a grant's record is one of those. */
function isUncovered({ keyring }: VerifyState, { place, signers }: Grant, signed: Seal | undefined): boolean {
  const isRevoked = (keyid: string): boolean => keyring.find(keyid)?.revokedBy !== undefined;
  return place.seq >= (signed?.reach ?? 0) && signers.length > 0 && signers.every(isRevoked);
}

function describeUncovered(state: VerifyState, { keyids, first, counts }: UnsealedRecords): Finding {
  const by = state.keyring.find(keyids[0] as string)?.revokedBy;
  const folded = counts.ok + counts.denied + counts.violation - 1;
  const finding = makeFinding(
    'KEY_NOT_VALID_HERE',
    {
      pointer: '/signatures/0',
      expected: 'a checkpoint over the record, or a signature by a key that is not revoked',
      actual: `only a signature by ${keyids.join(' and ')}, revoked later`,
      ...(by === undefined ? {} : { related: [by] }),
    },
    placeOfRecord(first),
  );
  return folded > 0 ? { ...finding, folded } : finding;
}

/** Whether a checkpoint is missing that the ledger or the policies require. */
function findMissingSeal(state: VerifyState, signed: Seal | undefined, sealing: Seal | undefined): Finding[] {
  // Genesis requires checkpoints of the records after it, the user of all.
  const isDue = state.records > (demandsCheckpoints(state.policy, state.witnessPolicy) ? 0 : 1);
  const isWanting = sealing === undefined && state.checkpointsRequired && isDue;
  if (signed === undefined) {
    const detail = { expected: 'a checkpoint that is right and signed by a known key', actual: 'none' };
    return isWanting ? [atEnd(state, 'CHECKPOINT_MISSING', detail)] : [];
  }
  if (!isWanting && (sealing === undefined || sealing.reach >= signed.reach)) return [];
  // An earlier checkpoint meets the policies: this one still may.
  const severity = isWanting ? {} : { severity: 'warning' as const };
  const { signers } = signed;
  const { requirements } = state;
  const missing = requirements.findMissingLogKeys(signers) ?? requirements.findMissingWitnesses(signers);
  if (missing === undefined) return [];
  const { code, ...detail } = missing;
  return [atSeal(state, signed, code, { ...detail, ...severity })];
}

/** Whether the last checkpoint is too old; or so far in the future that it would never be. */
function findOldSeal(state: VerifyState, sealing: Seal | undefined, now: string | undefined): Finding[] {
  const limit = state.policy?.require?.checkpoint_max_age_seconds;
  if (limit === undefined || now === undefined || sealing === undefined) return [];
  const { sealing: checkpoint } = state.seals;
  // A note has no time. Its record's counts if it is signed.
  const dated = checkpoint?.hasSignedTime === true ? checkpoint.occurredAt : undefined;
  const age = dated === undefined ? undefined : parseTimestamp(now) - parseTimestamp(dated);
  const most = BigInt(limit) * 1_000_000_000n;
  if (age !== undefined && age <= most && age >= -most) return [];
  const expected = `a checkpoint made within ${limit} seconds of ${now}`;
  const actual = dated ?? (checkpoint === undefined ? 'none' : 'one in a record that no known key signed');
  return [atSeal(state, sealing, 'CHECKPOINT_MISSING', { expected, actual })];
}

function findTail(state: VerifyState, signed: Seal | undefined, sealing: Seal | undefined): Finding[] {
  const limit = state.policy?.require?.max_unsealed_records;
  // Attestations add to the checkpoint: cutting them off loses no record.
  const isOwn = sealing !== undefined && sealing.checkpoint === state.seals.sealing;
  const attestations = isOwn ? state.seals.attestations : 0;
  const unsealed = state.records - (sealing?.reach ?? 0) - attestations;
  if (limit !== undefined && unsealed > limit) {
    const detail = { expected: `at most ${limit}`, actual: `${unsealed}`, severity: 'error' as const };
    return [atSeal(state, sealing, 'TAIL_UNSEALED', detail)];
  }
  const tail = state.records - (signed?.reach ?? 0);
  return signed === undefined || tail === 0
    ? []
    : [atSeal(state, signed, 'TAIL_UNSEALED', { actual: `${tail}` })];
}

function findAnchorProblems(state: VerifyState, anchor: AnchorOutcome): Finding[] {
  const { name, note, relation, root, signatures } = anchor;
  const { origin, size, root: expectedRoot } = note.checkpoint;
  const inNote: FindingPlace = { file: name, line: 1, byteOffset: 0, byteLength: 0 };
  const findings = signatures.problems.map(({ code, ...detail }) => makeFinding(code, detail, inNote));
  if (anchor.isPublished) return [...findings, ...findPublishedProblems(state, anchor, inNote)];
  const of = (hash: string): string => toDigestText(hashToBase64url(hash));
  switch (relation) {
    case 'extends':
      return findings;
    case 'other-origin':
      return [
        ...findings,
        makeFinding('ORIGIN_MISMATCH', { expected: state.origin ?? '', actual: origin }, inNote),
      ];
    case 'truncated': {
      const expected = `at least ${size} records, as ${name} says`;
      return [...findings, atEnd(state, 'TRUNCATED', { expected, actual: `${state.records}` })];
    }
    case 'forked': {
      const expected = `root ${of(expectedRoot)} over the first ${size} records, as ${name} says`;
      return [...findings, atEnd(state, 'FORKED', { expected, actual: of(root as string) })];
    }
  }
}

/** A published checkpoint has to meet the same rules as one among the records. */
function findPublishedProblems(state: VerifyState, anchor: AnchorOutcome, inNote: FindingPlace): Finding[] {
  const { note, relation, root, signatures } = anchor;
  const { origin, size, root: stated } = note.checkpoint;
  const of = (hash: string): string => toDigestText(hashToBase64url(hash));
  switch (relation) {
    case 'other-origin':
      return [makeFinding('ORIGIN_MISMATCH', { expected: state.origin ?? '', actual: origin }, inNote)];
    case 'truncated': {
      const detail = { expected: `${size} records, as it says`, actual: `${state.records}` };
      return [makeFinding('CHECKPOINT_SIZE_MISMATCH', detail, inNote)];
    }
    case 'forked': {
      const detail = { expected: of(root as string), actual: of(stated) };
      return [makeFinding('CHECKPOINT_ROOT_MISMATCH', detail, inNote)];
    }
    case 'extends': {
      if (isSignedByLog(signatures.signers) || signatures.problems.length > 0) return [];
      const expected = `a signature by a known key with role checkpoint, named ${origin}`;
      const severity = state.checkpointsRequired ? {} : { severity: 'warning' as const };
      return [makeFinding('KEY_UNKNOWN', { expected, actual: 'none', ...severity }, inNote)];
    }
  }
}

/** A finding at a seal's checkpoint, or at the end where it has no record. */
function atSeal(
  state: VerifyState,
  seal: Seal | undefined,
  code: FindingCode,
  detail: Omit<RuleFinding, 'code'>,
): Finding {
  const place = seal?.checkpoint?.place;
  return place === undefined ? atEnd(state, code, detail) : makeFinding(code, detail, placeOfRecord(place));
}

function atEnd({ end }: VerifyState, code: FindingCode, detail: Omit<RuleFinding, 'code'>): Finding {
  return makeFinding(code, detail, { ...end, byteLength: 0 });
}

function describeFault({ code, file, expected, actual }: FileFault<TileFaultCode>): Finding {
  return makeFinding(code, { expected, actual }, { file, line: 1, byteOffset: 0, byteLength: 0 });
}

function findPredecessor(state: VerifyState, view: PredecessorView | undefined): Finding[] {
  const problem = view && findPredecessorProblem(state.genesis?.continues, view);
  if (problem === undefined) return [];
  const { code, pointer, ...detail } = problem;
  const { genesis } = state;
  return genesis === undefined
    ? [atEnd(state, code, detail)]
    : [makeFinding(code, { ...detail, pointer: `/event${pointer}` }, placeOfRecord(genesis.place))];
}

/** The place of a finding at a record, with the record's own `seq`. */
function placeOfRecord(place: RecordPlace): FindingPlace {
  return { ...place, seq: place.ownSeq };
}

/** The records that a finding of the end makes invalid. */
function listFallen(
  state: VerifyState,
  seals: readonly Seal[],
  uncovered: readonly UnsealedRecords[],
  findings: readonly Finding[],
): (KnownCheckpoint | KnownGenesis)[] {
  const invalid = findings.filter((finding) => finding.class === 'invalid');
  const records = new Set([...seals.map(({ checkpoint }) => checkpoint), state.genesis]);
  return [...records]
    .filter((record) => record !== undefined)
    .filter(
      ({ place }) =>
        invalid.some(({ at, eventId }) => isSamePlace(place, { ...at, eventId })) &&
        // Counted with their group.
        !uncovered.some(({ first }) => isSamePlace(place, first)),
    );
}

function isSamePlace(a: RecordPlace, b: FindingPlace): boolean {
  return a.file === b.file && a.line === b.line && a.eventId === b.eventId;
}

function sumUp(
  groups: readonly UnsealedRecords[],
  fallen: readonly { readonly verdict: EventVerdict }[],
): Record<EventVerdict, number> {
  const sum = { ok: 0, denied: 0, violation: 0, invalid: 0 };
  for (const { verdict } of fallen) if (verdict !== 'invalid') sum[verdict] += 1;
  for (const { counts } of groups) for (const verdict of COVERABLE) sum[verdict] += counts[verdict];
  return sum;
}
