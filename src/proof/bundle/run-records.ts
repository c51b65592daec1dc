/**
 * Verifies the records of a bundle by the rules of ledgers. A selection goes through the same step function
 * (`rules/verify/verify-line.ts`); findings that missing records could explain are not made.
 */

import { allocateBytes } from '../../base/bytes/concat.js';
import { defined } from '../../base/defined.js';
import type { FindingCode } from '../../format/finding/catalog.js';
import { type Finding, type FindingRank, rankOf, RANKS } from '../../format/finding/finding.js';
import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import { examineLine } from '../../format/record/examine-line.js';
import type { TrustPolicy } from '../../format/schema/generated/types.js';
import { defaultBackend } from '../../format/signature/default-backend.js';
import { hashToBase64url, leafHash } from '../../format/tree/compact-range.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import type { NoteVerdict } from '../../rules/trust/checkpoint-judge.js';
import { findRevocationProblem, findRoleProblem } from '../../rules/trust/keyring.js';
import type { Anchor } from '../../rules/verify/anchors.js';
import { settlePending } from '../../rules/verify/authorizations.js';
import { judgeLedgerNote } from '../../rules/verify/checkpoint-note.js';
import type { EventVerdict } from '../../rules/verify/line-result.js';
import { SliceWatch } from '../../rules/verify/parents.js';
import {
  DEFAULT_MAX_FINDINGS,
  type VerificationResult,
  type VerifyOptions,
  verifyParent,
} from '../../rules/verify/run-verification.js';
import { startVerification, type VerifyState } from '../../rules/verify/state.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { verifyLine } from '../../rules/verify/verify-line.js';
import type { Bundle, BundledRecord } from './bundle-file.js';

export type RunOptions = Pick<
  VerifyOptions,
  'trust' | 'witnessPolicy' | 'checkpoints' | 'now' | 'backend' | 'signal'
>;

export interface RecordsRun {
  readonly state: VerifyState;
  /** Worst first, at most as many as a report lists. */
  readonly findings: readonly Finding[];
  /** How many findings there are, listed or not. */
  readonly total: number;
  readonly hasInvalid: boolean;
  readonly hasViolation: boolean;
  readonly counts: Readonly<Record<EventVerdict, number>>;
  /** The verdict on the signatures of the checkpoint, if there is one. */
  readonly noteVerdict: NoteVerdict | undefined;
  /** Links from linked records to records that are not included. */
  readonly openLinks: number;
  /** Records of a selection signed only by keys that were revoked later. */
  readonly byRevoked: number;
  /** The verification of the whole ledger, if every record is included. */
  readonly whole: VerificationResult | undefined;
}

/** The name of the bundle's checkpoint in findings. */
const NOTE_NAME = 'checkpoint of the bundle';

/** Whether a bundle holds every record of the tree. */
export function holdsAll({ records, tree }: Bundle): boolean {
  return records.length === tree.size;
}

type TakeRecord = (record: VerifiedRecord, bundled: BundledRecord) => Promise<void> | undefined;

/**
 * Verifies the records.
 *
 * @param name - The name of the ledger in findings.
 * @param note - The bundle's checkpoint, if it matches the tree.
 * @param take - Called with each record; the next record waits for its promise.
 */
export async function runRecords(
  bundle: Bundle,
  name: string,
  note: SignedCheckpoint | undefined,
  options: RunOptions,
  take: TakeRecord,
): Promise<RecordsRun> {
  return holdsAll(bundle)
    ? runWhole(bundle, name, note, options, take)
    : runSelection(bundle, name, note, options, take);
}

async function runWhole(
  { records, note: noteBytes }: Bundle,
  name: string,
  note: SignedCheckpoint | undefined,
  options: RunOptions,
  take: TakeRecord,
): Promise<RecordsRun> {
  // It came with the records, so it cannot show a truncation.
  const own =
    note === undefined || noteBytes === undefined ? undefined : { name: NOTE_NAME, note: noteBytes };
  const { result: whole } = await verifyParent(sourceOf(records, name, own), {
    ...options,
    ...(options.trust === undefined ? {} : { trust: withoutAge(options.trust) }),
    onRecord: (record) => {
      const bundled = records[record.ordinal];
      return bundled && take(record, bundled);
    },
  });
  const { state, ending } = whole;
  const counts = { ...state.countsByVerdict };
  for (const verdict of ['ok', 'denied', 'violation'] as const) {
    counts[verdict] -= ending.uncovered[verdict];
    counts.invalid += ending.uncovered[verdict];
  }
  const noteVerdict = own === undefined ? undefined : ending.anchors[0]?.signatures;
  return {
    state,
    findings: whole.findings,
    total: whole.total,
    hasInvalid: whole.hasInvalid,
    hasViolation: state.hasViolation,
    counts,
    noteVerdict,
    openLinks: 0,
    byRevoked: 0,
    whole,
  };
}

/** The age of the checkpoint is unknown: its dated record comes after the tree. */
function withoutAge(policy: TrustPolicy): TrustPolicy {
  const demands = { ...policy.require };
  delete demands.checkpoint_max_age_seconds;
  return { ...policy, require: demands };
}

/** Findings that missing records could explain. */
const NEEDS_ALL: ReadonlySet<FindingCode> = new Set([
  'CHECKPOINT_ROOT_MISMATCH',
  // A missing credit, or execution that settled a reservation.
  'METER_CAP_EXCEEDED',
  'RESERVATION_OVER_CAP',
  'ADJUSTMENT_EXCEEDED',
]);

async function runSelection(
  { records, leaves, tree }: Bundle,
  name: string,
  note: SignedCheckpoint | undefined,
  { trust, witnessPolicy, backend = defaultBackend, signal }: RunOptions,
  take: TakeRecord,
): Promise<RecordsRun> {
  const state = startVerification(trust, backend, witnessPolicy);
  state.sliceWatch = new SliceWatch();
  const hashes = new Map(leaves.map(({ index, leafHash: hash }) => [index, hash]));
  const findings = new WorstFindings();
  const counts = { ok: 0, denied: 0, violation: 0, invalid: 0 };
  let openLinks = 0;
  let isSelected = true;
  let isOpen = false;
  state.isExplained = (code, pointer) => {
    if (code === 'PREV_EVENT_NOT_FOUND' && !isSelected) {
      openLinks += 1;
      isOpen = true;
      return true;
    }
    // The record that is not here may be the start that lets an execution finish.
    if (code === 'GRANT_REVOKED' && pointer === '/event/auth_event_id' && isOpen) return true;
    // The limit of records without a checkpoint needs all records.
    if (code === 'CHECKPOINT_MISSING' && pointer === undefined) return true;
    return NEEDS_ALL.has(code);
  };
  for (const bundled of records) {
    signal?.throwIfAborted();
    const { seq, line: bytes } = bundled;
    ({ isSelected } = bundled);
    isOpen = false;
    const examined = examineLine(bytes, 'records');
    const before = hashes.get(seq - 1);
    // The step function counts lines; here the positions are given, and proven.
    state.records = seq;
    state.chain.seq = state.chain.otherSeq = seq;
    if (seq > 0) state.chain.prev = before === undefined ? (examined.prev ?? '') : hashToBase64url(before);
    const line = {
      bytes,
      length: bytes.length,
      offset: 0,
      number: seq + 1,
      terminated: true,
      longLeafHash: undefined,
    };
    const result = verifyLine(state, line, { file: name, firstSeq: undefined }, examined);
    hashes.set(seq, leafHash(bytes));
    const verdict = result.waiting === undefined ? result.verdict : 'invalid';
    counts[verdict] += 1;
    findings.add(result.own);
    const waited = take(
      {
        ordinal: seq,
        file: name,
        line: seq + 1,
        byteOffset: 0,
        byteLength: bytes.length,
        bytes,
        examined: result.examined,
        verdict,
        findings: result.own,
        signatures: result.signatures,
        grantIds: result.context.grantIds ?? [],
        state,
      },
      bundled,
    );
    if (waited !== undefined) await waited;
  }
  findings.add(settlePending(state));
  const noteVerdict =
    note &&
    judgeLedgerNote(
      state,
      note,
      (key, as) =>
        (as === 'log' ? findRoleProblem(key, ['checkpoint']) : undefined) ??
        findRevocationProblem(key, tree.size),
      tree.size,
    );
  return {
    state,
    findings: findings.list(),
    total: findings.total,
    hasInvalid: findings.has('invalid'),
    hasViolation: findings.has('violation'),
    counts,
    noteVerdict,
    openLinks,
    byRevoked: countByRevoked(state),
    whole: undefined,
  };
}

function countByRevoked({ keyring, seals }: VerifyState): number {
  const isRevoked = (keyid: string): boolean => keyring.find(keyid)?.revokedBy !== undefined;
  return [...seals.unsealed.values()]
    .filter(({ keyids }) => keyids.every(isRevoked))
    .reduce((sum, { counts: { ok, denied, violation } }) => sum + ok + denied + violation, 0);
}

/** Findings by rank, per rank at most as many as a report lists. */
class WorstFindings {
  readonly #byRank = new Map<FindingRank, Finding[]>(RANKS.map((rank) => [rank, []]));
  readonly #classes = new Set<Finding['class']>();
  total = 0;

  add(findings: readonly Finding[]): void {
    this.total += findings.length;
    for (const finding of findings) {
      this.#classes.add(finding.class);
      const list = this.#byRank.get(rankOf(finding)) as Finding[];
      if (list.length < DEFAULT_MAX_FINDINGS) list.push(finding);
    }
  }

  has(kind: 'invalid' | 'violation'): boolean {
    return this.#classes.has(kind);
  }

  list(): Finding[] {
    return [...this.#byRank.values()].flat().slice(0, DEFAULT_MAX_FINDINGS);
  }
}

const NEWLINE = 0x0a;

/** All records, as a ledger. */
function sourceOf(
  records: readonly BundledRecord[],
  name: string,
  published: Anchor | undefined,
): LedgerSource {
  async function* chunks(): AsyncGenerator<Uint8Array, void, void> {
    for (const { line } of records) {
      const bytes = allocateBytes(line.length + 1);
      bytes.set(line);
      bytes[line.length] = NEWLINE;
      yield await Promise.resolve(bytes);
    }
  }
  async function* segments(): AsyncGenerator<
    { file: string; firstSeq: undefined; chunks: AsyncIterable<Uint8Array> },
    void,
    void
  > {
    yield await Promise.resolve({ file: name, firstSeq: undefined, chunks: chunks() });
  }
  return {
    paths: [name],
    size: undefined,
    segments: segments(),
    ...defined({ published }),
  };
}
