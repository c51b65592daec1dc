/**
 * The state of a verification between two lines. It grows by about 45 bytes per event. The files beside this one have the rules, one for
 * each step of SPEC §8.
 */

import type { UnitAmounts } from '../../format/event/outline.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import type { Finding } from '../../format/finding/finding.js';
import type { Layout } from '../../format/record/examine-line.js';
import type { Predecessor, TrustPolicy } from '../../format/schema/generated/types.js';
import type { SignatureBackend } from '../../format/signature/backend.js';
import {
  type CompactRange,
  emptyRange,
  hashToBase64url,
  rangeRoot,
} from '../../format/tree/compact-range.js';
import { CheckpointRequirements } from '../trust/checkpoint-judge.js';
import { Keyring } from '../trust/keyring.js';
import { namesLogs, type WitnessPolicy } from '../trust/witness-policy.js';
import { EventIndex, type EventTable } from './event-index.js';
import type { LineObserver } from './line-observer.js';
import type { EventVerdict } from './line-result.js';
import { emptyLinks, type Links } from './links.js';
import type { Parents, SliceWatch } from './parents.js';
import { emptySeals, type RecordPlace, type Seals } from './seals.js';
import type { Table } from './table.js';

/** Where the keys come from (SPEC §7). */
export type TrustMode = 'policy' | 'self-declared' | 'none';

export interface SignerTally {
  readonly keyid: string;
  readonly principals: readonly string[];
  records: number;
  /** The ordinal of its last record that a checkpoint must cover if the key is revoked; -1 for none. */
  last: number;
}

/** What the chain expects of the next line. */
interface ChainState {
  /** base64url leaf hash of the line before; for the first line the empty tree's hash. */
  prev: string;
  /** The `seq` that the next record should have. */
  seq: number;
  /** The `seq` that it may have instead, after a wrong one, already reported. */
  otherSeq: number;
}

export interface KnownGenesis {
  readonly place: RecordPlace;
  readonly continues: Predecessor | undefined;
  verdict: EventVerdict;
}

/** A bounded table. */
export interface FoldRoots extends Table<string, Finding> {
  readonly size: number;
}

/** The state of one verification, made by {@link startVerification} and changed by `verifyLine`. */
export interface VerifyState {
  /** The foreign systems whose authority was taken over (SPEC §8, "Imported authority"). */
  readonly importedSystems: Set<string>;
  /** Allowed grants that spend slices of other ledgers (SPEC §8 rule 17). */
  slicesSpent: number;
  /** Slices for other ledgers that were settled or released. */
  slicesEnded: number;
  /** The last event that counts use without stating it, and the estimated use that it added to the accounts. */
  unstated: { readonly id: string; readonly amounts: UnitAmounts } | undefined;
  /** Whether the verdicts of signatures are from parts, and only a sample was computed again (`LedgerSource.given`). */
  believesParts: boolean;
  readonly policy: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  /** What both policies require of checkpoints. */
  readonly requirements: CheckpointRequirements;
  readonly keyring: Keyring;
  mode: TrustMode;
  layout: Layout | undefined;
  /** The leaves of the tree: lines, readable or not. */
  records: number;
  /** All lines, also those that are no leaves. */
  lines: number;
  bytes: number;
  origin: string | undefined;
  /** Undefined without a well-formed genesis. */
  genesis: KnownGenesis | undefined;
  /** Whether every record must be signed, by genesis or the policy. */
  signaturesRequired: boolean;
  /** Whether checkpoints are required, by genesis or the policies. */
  checkpointsRequired: boolean;
  /** The id that events are bound to, base64url (SPEC §3): that of the first record; of bare events the first `ledger_id`. */
  ledgerId: string | undefined;
  /** Whether every event but genesis must carry `ledger_id`, by genesis. */
  bindingRequired: boolean;
  /** Allowed grants, allowed actions without a grant, and credits, recorded when no key with the role `authority` was known. */
  selfIssuable: number;
  /** Of `links.lost`, those without a late report. No rule reads it. */
  unreported: number;
  /** The latest `occurred_at` of genesis and of dating checkpoints (SPEC §7): the clock by which keys are judged. */
  clock: string | undefined;
  readonly chain: ChainState;
  readonly tree: CompactRange;
  readonly events: EventTable;
  readonly links: Links;
  tipEventId: string | undefined;
  checkpoints: number;
  /** The last well-formed checkpoint, right or not: its ordinal and time. */
  lastCheckpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
  readonly seals: Seals;
  /** Damage that prevents appending to the ledger. No rule reads it. */
  readonly damage: {
    /** `lines` after the last line that is no record. */
    at: number;
    /** The same, after the last blank line. */
    blank: number;
    /** How many lines have no event id. */
    lines: number;
    /** How many files, except the last, end within a line, and the last of these. */
    files: number;
    file: string | undefined;
    /** The first segment that does not begin where the one before it ends. */
    segment: { readonly file: string; readonly expected: number } | undefined;
  };
  /** Where the last line ended. */
  end: { file: string; line: number; byteOffset: number };
  /**
   * Which signatures by known keys are assumed valid; that the key is entitled is always checked. For a writer only: `ordinary`
   * (executions and extension events, which affect nothing else) while it reads a ledger to append to, `all` for a record whose
   * signatures it has just made or verified.
   */
  assumedSignatures: 'none' | 'ordinary' | 'all';
  readonly signatures: { valid: number; invalid: number; unverified: number; missing: number };
  readonly signers: Table<string, SignerTally>;
  readonly countsByType: Map<string, number>;
  readonly countsByVerdict: Record<EventVerdict, number>;
  findings: number;
  /** Findings that are warnings, folded ones included. */
  warnings: number;
  hasInvalid: boolean;
  hasViolation: boolean;
  /** The first finding of each cause, under which later ones fold. */
  readonly foldRoots: FoldRoots;
  /**
   * Whether a finding at the next line is not made, since records that are not there could explain it; it then makes nothing invalid. For
   * a selection of records only.
   */
  isExplained?: (code: FindingCode, pointer: string | undefined) => boolean;
  /** Notified of every line. */
  observer?: LineObserver;
  /** The ledgers whose slices this one spends, as far as they are given. */
  parents?: Parents;
  /** Notes the slices that this ledger sets aside. */
  sliceWatch?: SliceWatch;
}

/** The state before the first line. */
export function startVerification(
  policy: TrustPolicy | undefined,
  backend: SignatureBackend,
  witnessPolicy?: WitnessPolicy,
): VerifyState {
  const keyring = new Keyring(backend);
  for (const key of policy?.keys ?? []) {
    const problem = keyring.add(key);
    if (problem !== undefined)
      throw new TypeError(`key ${key.keyid} of the trust policy is not usable: ${problem.pointer}`);
  }
  const tree = emptyRange();
  return {
    policy,
    witnessPolicy,
    requirements: new CheckpointRequirements(policy, witnessPolicy, backend),
    keyring,
    mode: policy === undefined ? 'none' : 'policy',
    layout: undefined,
    records: 0,
    lines: 0,
    bytes: 0,
    damage: { at: 0, blank: 0, lines: 0, files: 0, file: undefined, segment: undefined },
    origin: undefined,
    genesis: undefined,
    signaturesRequired: policy?.require?.event_signatures === 'required',
    checkpointsRequired: demandsCheckpoints(policy, witnessPolicy),
    ledgerId: undefined,
    bindingRequired: false,
    selfIssuable: 0,
    unreported: 0,
    importedSystems: new Set(),
    slicesSpent: 0,
    slicesEnded: 0,
    unstated: undefined,
    believesParts: false,
    clock: undefined,
    chain: { prev: hashToBase64url(rangeRoot(tree)), seq: 0, otherSeq: 0 },
    tree,
    events: new EventIndex(),
    links: emptyLinks(),
    tipEventId: undefined,
    checkpoints: 0,
    lastCheckpoint: undefined,
    seals: emptySeals(),
    end: { file: '', line: 1, byteOffset: 0 },
    assumedSignatures: 'none',
    signatures: { valid: 0, invalid: 0, unverified: 0, missing: 0 },
    signers: new Map(),
    countsByType: new Map(),
    countsByVerdict: { ok: 0, denied: 0, violation: 0, invalid: 0 },
    findings: 0,
    warnings: 0,
    hasInvalid: false,
    hasViolation: false,
    foldRoots: new Map(),
  };
}

/** Whether the user's policies require checkpoints. */
export function demandsCheckpoints(
  policy: TrustPolicy | undefined,
  witnessPolicy: WitnessPolicy | undefined,
): boolean {
  const { checkpoints, checkpoint_quorum: quorum, witness_threshold: threshold } = policy?.require ?? {};
  const { checkpoint_max_age_seconds: age } = policy?.require ?? {};
  return (
    checkpoints === 'required' ||
    quorum !== undefined ||
    threshold !== undefined ||
    age !== undefined ||
    (witnessPolicy !== undefined && (namesLogs(witnessPolicy) || witnessPolicy.quorum !== undefined))
  );
}
