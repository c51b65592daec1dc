/**
 * What verification remembers between two lines. It grows by some 45 bytes an event and not with the file; the
 * rules that read and change it are in the files beside this one, one for each step of SPEC §8.
 */

import type { UnitAmounts } from '../../format/event/outline.js';
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
import { emptySeals, type RecordPlace, type Seals } from './seals.js';
import type { Table } from './table.js';

/** How far the keys are to be believed (SPEC §7). */
export type TrustMode = 'policy' | 'self-declared' | 'none';

/** What a signer did. */
export interface SignerTally {
  readonly keyid: string;
  readonly principals: readonly string[];
  records: number;
  /** The place, counted from 0, of the last record that it signed and that needs a checkpoint's cover once it is revoked; -1 for none. */
  last: number;
}

/** The chain's expectations of the next line. */
export interface ChainState {
  /** base64url leaf hash of the line before; for the first line the empty tree's hash. */
  prev: string;
  /** The `seq` that the next record should have. */
  seq: number;
  /** The `seq` that it would have if the last record's own, already reported, was the wrong one. */
  otherSeq: number;
}

/** The genesis record, as far as the end asks for it. */
export interface KnownGenesis {
  readonly place: RecordPlace;
  readonly continues: Predecessor | undefined;
  verdict: EventVerdict;
}

/** Few enough to be counted. */
export interface FoldRoots extends Table<string, Finding> {
  readonly size: number;
}

/** The state of one verification. Made by {@link startVerification}, changed by `verifyLine`; `log/read/event-history.ts` changes one of its own. */
export interface VerifyState {
  /** The foreign systems on whose word something rests that was allowed or done (SPEC §7, "Taken over"). */
  readonly importedSystems: Set<string>;
  /** What the last event that counts use without stating it has added to the accounts, as estimated use; and which event that is. */
  unstated: { readonly id: string; readonly amounts: UnitAmounts } | undefined;
  /** Whether others said which signatures are valid, of which only a sample was computed again (`LedgerSource.given`). */
  believesParts: boolean;
  readonly policy: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
  /** What both policies pin for checkpoints, and demand of them. */
  readonly requirements: CheckpointRequirements;
  readonly keyring: Keyring;
  mode: TrustMode;
  layout: Layout | undefined;
  /** Lines that take a place in the ledger: the tree's leaves, readable or not. */
  records: number;
  /** Lines seen, those included that take no place. */
  lines: number;
  bytes: number;
  origin: string | undefined;
  /** Undefined where the first record is no well-formed genesis. */
  genesis: KnownGenesis | undefined;
  /** Whether every record must be signed; settled by genesis or by the policy. */
  signaturesRequired: boolean;
  /** Whether there must be checkpoints; settled by genesis or by the policies. */
  checkpointsRequired: boolean;
  /** The id that the first record claims, base64url: what events are bound to (SPEC §3). Of bare events the first `ledger_id`. */
  ledgerId: string | undefined;
  /** Whether every event but genesis must carry `ledger_id`; settled by genesis. */
  bindingRequired: boolean;
  /** Allowed grants, allowed actions without a grant, and credits, recorded when no key with the role `authority` was known. */
  selfIssuable: number;
  /** The latest `occurred_at` of genesis and of dating checkpoints (SPEC §7): the clock by which keys are judged. */
  clock: string | undefined;
  readonly chain: ChainState;
  readonly tree: CompactRange;
  readonly events: EventTable;
  readonly links: Links;
  tipEventId: string | undefined;
  checkpoints: number;
  /** The last well-formed checkpoint, right or not: its place, counted from 0, and its time. */
  lastCheckpoint: { readonly seq: number; readonly occurredAt: string } | undefined;
  readonly seals: Seals;
  /** What keeps others from building on what was read, and no rule asks for. */
  readonly damage: {
    /** `lines`, as it was after the last line that is no record. */
    at: number;
    /** The same, after the last blank line. */
    blank: number;
    /** How many lines have no event id. */
    lines: number;
    /** How many files before the last end within a line, and the last of them. */
    files: number;
    file: string | undefined;
    /** The first segment that does not begin where the one before it ends. */
    segment: { readonly file: string; readonly expected: number } | undefined;
  };
  /** Where the last line ended. */
  end: { file: string; line: number; byteOffset: number };
  /**
   * Which signatures by known keys are taken as right without being computed; whether the key was entitled is asked all the same.
   * For a writer: `ordinary` (of executions and extension events, on which nothing hangs) where it reads a ledger that it goes on
   * with, and is then no verification; `all` for a record whose signatures it has just made or verified.
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
  /** The findings under which later ones of the same cause fold, by cause. */
  readonly foldRoots: FoldRoots;
  /** Told of every line. */
  observer?: LineObserver;
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
    importedSystems: new Set(),
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

/** Whether the user's policies demand a checkpoint, whatever genesis says. */
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
