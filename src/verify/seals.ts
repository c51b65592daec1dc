/**
 * What checkpoints and attestations have shown so far (SPEC §6, §7): which of them are right, who signed and cosigned each, up to
 * where the ledger is sealed, and what the records after that rest on. Plain data: it can be saved.
 */

import type { RelatedRecord } from '../finding/finding.js';
import type { TrustPolicy } from '../schema/generated/types.js';
import { meetsQuorum, namesLogs, type WitnessPolicy } from '../trust/witness-policy.js';
import type { EventVerdict } from './state.js';

/** Where a record stands, as findings name it. */
export interface RecordPlace extends RelatedRecord {
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** Who signed a checkpoint's text, of those that are known and entitled. */
export interface Endorsers {
  /** Keyids of the ring that signed as the log. */
  readonly logKeys: Set<string>;
  /** Numbers of logs of the witness policy. */
  readonly policyLogs: Set<number>;
  /** Keyids of the ring that cosigned as witnesses. */
  readonly witnessKeys: Set<string>;
  /** Numbers of witnesses of the witness policy. */
  readonly policyWitnesses: Set<number>;
}

/** A checkpoint record. */
export interface KnownCheckpoint {
  readonly place: RecordPlace;
  readonly occurredAt: string;
  /** Whether a known key with the role `checkpoint` signed its record, and so its time. */
  readonly isDated: boolean;
  /** The SHA-256 of the text of its note, which may be long; undefined for one that is malformed. */
  readonly textHash: string | undefined;
  readonly treeSize: number;
  /** Its size, root and note are right; somebody known and entitled must have signed it too, for it to seal anything. */
  readonly isRight: boolean;
  /** Attestations replace it by one of more; never changed itself, because checkpoints that the same keys signed share it. */
  endorsers: Endorsers;
}

/** Records after the last seal, and between two checkpoints, that rest on the signatures of the same keys. */
export interface UnsealedRecords {
  readonly keyids: readonly string[];
  readonly first: RecordPlace;
  /** The place of the last one, counted from 0. */
  last: number;
  readonly counts: Record<EventVerdict, number>;
}

/** The largest tree that a key signed as the log, or cosigned as a witness. */
export interface EndorserTally {
  readonly keyid: string;
  /** Under which it signed. */
  readonly name: string;
  readonly role: 'log' | 'witness';
  readonly treeSize: number;
}

/** See the head of this file. */
export interface Seals {
  /** Checkpoints by event id, for attestations. */
  readonly known: Map<string, KnownCheckpoint>;
  /** The last checkpoint that is right and signed by the log. */
  signed: KnownCheckpoint | undefined;
  /** The last one that also meets what the policies demand of a checkpoint. */
  sealing: KnownCheckpoint | undefined;
  /** Records since the last signed checkpoint, by the stretch that they are in and who signed them; earlier stretches first. */
  readonly unsealed: Map<string, UnsealedRecords>;
  /** Where the stretch begins that no checkpoint, signed or not, ends yet: whatever seals late seals whole stretches. */
  stretch: number;
  /** By role and keyid. */
  readonly tallies: Map<string, EndorserTally>;
  /** Those of the last checkpoint. */
  lastEndorsers: Endorsers;
  /** Signature lines in notes by keys that are not known. */
  unknown: number;
  /** Attestations of `sealing`, which stand after it and are no tail. */
  attestations: number;
}

export function emptySeals(): Seals {
  return {
    known: new Map(),
    signed: undefined,
    sealing: undefined,
    unsealed: new Map(),
    stretch: 0,
    tallies: new Map(),
    lastEndorsers: noEndorsers(),
    unknown: 0,
    attestations: 0,
  };
}

export function noEndorsers(): Endorsers {
  return { logKeys: new Set(), policyLogs: new Set(), witnessKeys: new Set(), policyWitnesses: new Set() };
}

const PARTS = ['logKeys', 'policyLogs', 'witnessKeys', 'policyWitnesses'] as const;

/** Both together: `a` itself where `b` has none that are new. */
export function mergeEndorsers(a: Endorsers, b: Endorsers): Endorsers {
  if (includesEndorsers(a, b)) return a;
  return {
    logKeys: new Set([...a.logKeys, ...b.logKeys]),
    policyLogs: new Set([...a.policyLogs, ...b.policyLogs]),
    witnessKeys: new Set([...a.witnessKeys, ...b.witnessKeys]),
    policyWitnesses: new Set([...a.policyWitnesses, ...b.policyWitnesses]),
  };
}

/** Whether they are the same keys. */
export function sameEndorsers(a: Endorsers, b: Endorsers): boolean {
  return includesEndorsers(a, b) && PARTS.every((part) => a[part].size === b[part].size);
}

function includesEndorsers(a: Endorsers, b: Endorsers): boolean {
  return PARTS.every((part) => {
    const known: ReadonlySet<unknown> = a[part];
    return [...b[part]].every((each) => known.has(each));
  });
}

/** What a user demands of a checkpoint. */
export interface Demands {
  readonly policy: TrustPolicy | undefined;
  readonly witnessPolicy: WitnessPolicy | undefined;
}

/** Whether the log itself signed. */
export function isSignedByLog({ logKeys, policyLogs }: Endorsers): boolean {
  return logKeys.size > 0 || policyLogs.size > 0;
}

/** How many of the witnesses that the policy pins cosigned. Keys that the ledger added later do not count: they are its own word. */
export function countPinnedWitnesses({ witnessKeys }: Endorsers, policy: TrustPolicy): number {
  return policy.keys.filter(({ keyid, roles }) => roles.includes('witness') && witnessKeys.has(keyid)).length;
}

/** Whether enough keys of the log signed, among them one of the logs that the witness policy names. */
export function meetsLogDemands(endorsers: Endorsers, { policy, witnessPolicy }: Demands): boolean {
  if (!isSignedByLog(endorsers)) return false;
  if (witnessPolicy !== undefined && namesLogs(witnessPolicy) && endorsers.policyLogs.size === 0)
    return false;
  // A key of the ring and one of the witness policy may be the same key; a quorum counts those of the ring.
  return endorsers.logKeys.size >= (policy?.require?.checkpoint_quorum ?? 0);
}

/** Whether enough witnesses cosigned. */
export function meetsWitnessDemands(endorsers: Endorsers, { policy, witnessPolicy }: Demands): boolean {
  const threshold = policy?.require?.witness_threshold ?? 0;
  if (policy !== undefined && countPinnedWitnesses(endorsers, policy) < threshold) return false;
  if (witnessPolicy === undefined) return true;
  const { witnesses } = witnessPolicy;
  const cosigned = new Set([...endorsers.policyWitnesses].map((index) => witnesses[index]?.name));
  return meetsQuorum(witnessPolicy, (name) => cosigned.has(name));
}
