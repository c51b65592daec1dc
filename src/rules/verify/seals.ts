/**
 * The state of checkpoints and attestations (SPEC §6, §7): which are right, who signed and cosigned each, up to where the ledger is
 * sealed, and who signed the records after that. Plain data: it can be saved.
 */

import type { RelatedRecord } from '../../format/finding/finding.js';
import type { CheckpointRole, CheckpointSigners } from '../trust/checkpoint-judge.js';
import type { EventVerdict } from './line-result.js';
import type { Table } from './table.js';

export interface RecordPlace extends RelatedRecord {
  /** The record's `seq`, where it could be read; else `seq` is its ordinal. */
  readonly ownSeq: number | undefined;
  readonly byteOffset: number;
  readonly byteLength: number;
}

export interface KnownCheckpoint {
  readonly place: RecordPlace;
  /** The verdict of its record, once that is appended. */
  verdict: EventVerdict;
  readonly occurredAt: string;
  /** Whether a known key with the role `checkpoint` signed its record, and so its time. */
  readonly hasSignedTime: boolean;
  /** The SHA-256 of the text of its note, which may be long; undefined for one that is malformed. */
  readonly textHash: string | undefined;
  readonly treeSize: number;
  /** Its size, root and note are right. It seals only with a signature by a known and entitled key. */
  readonly matchesTree: boolean;
  /** Checkpoints with the same signers share it: attestations MUST replace it, not change it. */
  signers: CheckpointSigners;
}

/** Records after the last seal, between two checkpoints, signed by the same keys. */
export interface UnsealedRecords {
  readonly keyids: readonly string[];
  readonly first: RecordPlace;
  /** The ordinal of the first one. */
  readonly begin: number;
  last: number;
  readonly counts: Record<EventVerdict, number>;
}

/** The largest tree that a key signed as the log, or cosigned as a witness. */
export interface CheckpointTally {
  readonly keyid: string;
  /** The name under which it signed. */
  readonly name: string;
  readonly role: CheckpointRole;
  /** Whether the user pins the key; the ledger alone declares it otherwise. */
  readonly isPinned: boolean;
  readonly treeSize: number;
}

export interface Seals {
  /** Checkpoints by event id, for attestations. */
  readonly known: Table<string, KnownCheckpoint>;
  /** The last checkpoint that is right and signed by the log. */
  signed: KnownCheckpoint | undefined;
  /** The last one that also meets the policies. */
  sealing: KnownCheckpoint | undefined;
  /** Records since the last signed checkpoint, by interval and signers; earlier intervals first. */
  readonly unsealed: Map<string, UnsealedRecords>;
  /**
   * The first record of the current interval. A checkpoint, signed or not, in the ledger or held by the user, ends an interval: late seals
   * cover whole intervals.
   */
  intervalStart: number;
  /** By role and keyid. */
  readonly tallies: Map<string, CheckpointTally>;
  lastSigners: CheckpointSigners;
  /** Signature lines of notes by unknown keys. */
  unknown: number;
  /** Attestations of `sealing`, which are after it and no tail. */
  attestations: number;
}

export function emptySeals(): Seals {
  return {
    known: new Map(),
    signed: undefined,
    sealing: undefined,
    unsealed: new Map(),
    intervalStart: 0,
    tallies: new Map(),
    lastSigners: [],
    unknown: 0,
    attestations: 0,
  };
}
