/** What a verification did not check (SPEC §9): in every report, so that "ok" is not read as more than it is. */

import { printable } from '../../base/bytes/printable.js';
import { toDigestText } from '../../base/value/digest.js';
import type { ReportJson } from '../../format/schema/generated/types.js';
import { OTHER_SYSTEMS } from '../bounds/grant.js';
import type { SourceGrowth } from '../source/ledger-source.js';
import { isPinned, isSignedByLog } from '../trust/checkpoint-judge.js';
import { describeSkipped } from '../trust/witness-policy.js';
import { isOfLedger } from '../verify/anchors.js';
import type { VerificationResult } from '../verify/run-verification.js';
import { listRevoked } from './revoked.js';

/** The codes, in the order of reports. */
export const NOT_CHECKED_CODES = [
  'CHAIN',
  'SIGNATURES',
  'TRUST',
  'SIGNATURES_UNVERIFIED',
  'SIGNATURES_MISSING',
  'PARTS',
  'TRUNCATION',
  'ANCHOR_UNVERIFIED',
  'CHECKPOINTS',
  'UNSEALED',
  'WITNESSES',
  'NOTE_SIGNATURES_UNVERIFIED',
  'WITNESS_POLICY_KEYS',
  'AUTHORITY',
  'IMPORTED_AUTHORITY',
  'PREDECESSOR',
  'SLICES',
  'GROWTH',
  'REVOKED_KEYS',
  'DECISIONS',
  'PRICES',
] as const;

export type NotCheckedCode = (typeof NOT_CHECKED_CODES)[number];

interface NotChecked {
  readonly code: NotCheckedCode;
  readonly message: string;
  /** Where it is shown for the records before this seq only. */
  readonly shown_before_seq?: number;
}

type Given = Pick<VerificationResult, 'state' | 'ending' | 'growth' | 'further'>;

/** Lists everything that a verification did not check, most important first. */
export function listNotChecked(result: Given): NotChecked[] {
  return [
    ...listKeyGaps(result),
    ...listTruncationGaps(result),
    ...listCheckpointGaps(result),
    ...listWitnessGaps(result),
    ...listAuthorityGaps(result),
    ...listSourceGaps(result),
    ...listRevokedKeys(result),
    ...(result.further ?? []).flatMap(({ notChecked }) => notChecked),
  ];
}

function when(isOpen: boolean, code: NotCheckedCode, message: string): NotChecked[] {
  return isOpen ? [{ code, message }] : [];
}

/** Which signatures were not checked, and against whose keys. */
function listKeyGaps({ state }: Given): NotChecked[] {
  const { signatures, mode } = state;
  const isBare = state.layout === 'bare';
  // A policy may pin no key: the ledger's own do not count then.
  const isKeyless = mode === 'none' || state.keyring.size === 0;
  return [
    ...when(
      isBare,
      'CHAIN',
      'these are bare events with no records around them: there is no chain, no order and no signature to check',
    ),
    ...when(!isBare && isKeyless, 'SIGNATURES', 'no keys are known, so no signature was checked'),
    ...when(
      mode === 'self-declared',
      'TRUST',
      "the keys are the ledger's own claim (self-declared): whoever wrote the ledger chose them; a trust policy pins those that you know",
    ),
    ...when(
      !isKeyless && signatures.unverified > 0,
      'SIGNATURES_UNVERIFIED',
      `signatures by unknown keys, which could not be checked: ${signatures.unverified}`,
    ),
    ...when(
      !isBare && signatures.missing > 0 && !state.signaturesRequired,
      'SIGNATURES_MISSING',
      `records without a signature, where none is required: ${signatures.missing}`,
    ),
    ...when(
      state.believesParts,
      'PARTS',
      'which signatures are valid is what the parts of this run say: but for a sample it was believed, so that a forged part would hardly be found',
    ),
  ];
}

/** Whether a checkpoint that the user holds shows that nothing was cut off. */
function listTruncationGaps({ state, ending }: Given): NotChecked[] {
  const anchors = ending.anchors.filter(({ isPublished }) => !isPublished);
  const held = anchors.filter(({ relation }) => relation === 'extends');
  // Every ledger extends the empty tree.
  const reach = Math.max(0, ...held.map(({ note }) => note.checkpoint.size));
  const lack =
    anchors.length === 0
      ? 'no checkpoint kept elsewhere was given'
      : 'the checkpoint that you hold covers no record';
  const list = when(
    state.layout !== 'bare' && reach === 0 && held.length === anchors.length,
    'TRUNCATION',
    `nothing shows that no records were cut off at the end: ${lack}`,
  );
  if (reach > 0 && reach < state.records)
    list.push({
      code: 'TRUNCATION',
      message: `your checkpoint covers the records before seq ${reach}: of those from there on nothing shows that none were changed or cut off`,
      shown_before_seq: reach,
    });
  for (const { name, signatures } of held)
    list.push(
      ...when(
        !isSignedByLog(signatures.signers),
        'ANCHOR_UNVERIFIED',
        `${printable(name)} has no signature of the log by a known key: the ledger extends it, but who made it was not checked`,
      ),
    );
  return list;
}

function listCheckpointGaps({ state, ending }: Given): NotChecked[] {
  return [
    ...when(
      state.layout !== 'bare' && state.checkpoints === 0 && !ending.anchors.some(isOfLedger),
      'CHECKPOINTS',
      'there is no checkpoint: signatures cover events and not their places, so that whoever can write the file could have dropped or moved records and rebuilt the chain',
    ),
    ...when(
      state.checkpoints > 0 && state.seals.signed === undefined,
      'CHECKPOINTS',
      `checkpoints that no known key signed, or that are wrong: ${state.checkpoints}; they seal nothing`,
    ),
    ...when(
      ending.sealedSize !== null && ending.afterSealed > 0,
      'UNSEALED',
      `records after the last checkpoint, of which some could have been dropped or moved: ${ending.afterSealed}`,
    ),
  ];
}

function listWitnessGaps(result: Given): NotChecked[] {
  const { state, ending } = result;
  const witnesses = listWitnesses(result);
  const skipped = state.witnessPolicy === undefined ? [] : describeSkipped(state.witnessPolicy);
  return [
    ...when(
      ending.sealedSize !== null && !witnesses.some((witness) => witness.isPinned),
      'WITNESSES',
      `no witness that you pinned cosigned a checkpoint${witnesses.length === 0 ? '' : ' (the ledger declares some itself)'}: nothing shows that everybody is shown the same ledger`,
    ),
    ...when(
      state.seals.unknown > 0,
      'NOTE_SIGNATURES_UNVERIFIED',
      `signature lines of checkpoints by unknown keys, which could not be checked: ${state.seals.unknown}`,
    ),
    ...when(
      skipped.length > 0,
      'WITNESS_POLICY_KEYS',
      `keys of the witness policy that are of unknown types, and so never count: ${skipped.join('; ')}`,
    ),
  ];
}

function listAuthorityGaps({ state }: Given): NotChecked[] {
  return [
    ...when(
      state.layout !== 'bare' && state.selfIssuable > 0,
      'AUTHORITY',
      `no key with the role authority was known, so that whoever acts may have issued their own grants: ${state.selfIssuable}`,
    ),
    ...when(state.importedSystems.size > 0, 'IMPORTED_AUTHORITY', describeImported(state)),
  ];
}

/** What was not read: an earlier ledger, or what came meanwhile. */
function listSourceGaps({ state, ending, growth }: Given): NotChecked[] {
  const continues = state.genesis?.continues;
  return [
    ...when(
      continues !== undefined && ending.predecessor === undefined,
      'PREDECESSOR',
      `the ledger goes on from ${toDigestText(continues?.ledger_id.b64 ?? '')}, which was not given: whether that one ended as genesis says was not checked`,
    ),
    ...listSliceGaps(state),
    ...(growth === undefined ? [] : [describeGrowth(growth)]),
  ];
}

/** What other ledgers say of slices: of those that this one spends, and of those that it set aside (SPEC §8 rule 17). */
export function listSliceGaps({
  slicesSpent,
  slicesEnded,
  parents,
  ledgerId,
}: VerificationResult['state']): NotChecked[] {
  const missing = parents === undefined ? slicesSpent : parents.missing;
  const { unsealed = 0, invalid = [], parts = [] } = parents ?? {};
  const ungranted = parents?.countUngranted({ ledgerId }) ?? 0;
  const gaps = [
    missing > 0 && `grants that spend slices of ledgers that were not given: ${missing}`,
    ...[...invalid].map((name) => `${printable(name)}, from which slices are spent, is itself invalid`),
    ...[...parts].map(
      (name) =>
        `${printable(name)} has only some records of its ledger: whether the slice was within its cap there, and what later records say of it, is not known`,
    ),
    unsealed > 0 &&
      `slices that no checkpoint of their ledger seals, so that they could have been added to a copy: ${unsealed}`,
    ungranted > 0 &&
      `slices that were settled for this ledger, and that it has no grant of: ${ungranted}; it was cut, or is an old copy`,
    slicesEnded > 0 &&
      `slices for other ledgers that were settled or given back: ${slicesEnded}; what those used is not known here`,
  ].filter((gap) => gap !== false);
  return when(gaps.length > 0, 'SLICES', gaps.join('; '));
}

function describeGrowth({ byteOffset, file }: SourceGrowth): NotChecked {
  const message = `the ledger was being written to: reading ended at byte ${byteOffset} of ${printable(file)}, and what came after was not read`;
  return { code: 'GROWTH', message };
}

function listRevokedKeys(result: Given): NotChecked[] {
  const own = listRevoked(result).filter(({ restsOn }) => restsOn === 'own_checkpoints');
  return when(
    own.length > 0,
    'REVOKED_KEYS',
    `keys that were revoked, and whose records only checkpoints by revoked keys, or by keys that these added, cover: ${own.length}`,
  );
}

/** Describes the foreign systems of a ledger (SPEC §8, "Imported authority"). */
export function describeImported({ importedSystems }: VerificationResult['state']): string {
  const systems = [...importedSystems]
    .map((system) => (system === OTHER_SYSTEMS ? 'others' : printable(system, 64)))
    .sort();
  return `what was allowed or done rests on authority that was taken over from other logs, whose writers were not checked: ${systems.join(', ')}`;
}

/**
 * Marks the required checks that were not made: `decideExitStatus` then returns 2 instead of 0. A checkpoint that the user holds, that
 * covers a record and that the ledger extends meets `TRUNCATION`, whatever was appended since: `shown_before_seq` is its reach.
 */
export function requireChecks<T extends Pick<ReportJson, 'checkpoints' | 'not_checked'>>(
  report: T,
  codes: Iterable<NotCheckedCode>,
): T {
  const required: ReadonlySet<string> = new Set(codes);
  const isHeld = (report.checkpoints.anchors ?? []).some(
    ({ relation, tree_size: size }) => relation === 'extends' && size > 0,
  );
  return {
    ...report,
    not_checked: report.not_checked.map((item) =>
      required.has(item.code) && !(item.code === 'TRUNCATION' && isHeld) ? { ...item, required: true } : item,
    ),
  };
}

/** The witnesses with valid cosignatures. One that only the ledger declares is its own claim. */
function listWitnesses({ state, ending }: Given): { readonly isPinned: boolean }[] {
  const held = ending.anchors.filter(isOfLedger).flatMap(({ signatures }) => signatures.signers);
  return [
    ...[...state.seals.tallies.values()].filter(({ role }) => role === 'witness'),
    ...held.filter(({ role }) => role === 'witness').map((signer) => ({ isPinned: isPinned(signer) })),
  ];
}
