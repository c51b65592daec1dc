/**
 * What checkpoints and attestations have shown so far (SPEC §6, §7): which of them are right, who signed and cosigned each, up to
 * where the ledger is sealed, and what the records after that rest on. Plain data: it can be saved.
 */

import type { RelatedRecord } from '../../format/finding/finding.js';
import type { CheckpointRole, CheckpointSigners } from '../trust/checkpoint-judge.js';
import type { EventVerdict } from './line-result.js';
import type { Table } from './table.js';

/** Where a record stands, as findings name it. */
export interface RecordPlace extends RelatedRecord {
  /** The record's `seq`, where it could be read; `seq` is its place where not. */
  readonly ownSeq: number | undefined;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** A checkpoint record. */
export interface KnownCheckpoint {
  readonly place: RecordPlace;
  /** Of its record, once that has taken its place. */
  verdict: EventVerdict;
  readonly occurredAt: string;
  /** Whether a known key with the role `checkpoint` signed its record, and so its time. */
  readonly hasSignedTime: boolean;
  /** The SHA-256 of the text of its note, which may be long; undefined for one that is malformed. */
  readonly textHash: string | undefined;
  readonly treeSize: number;
  /** Its size, root and note are right; somebody known and entitled must have signed it too, for it to seal anything. */
  readonly matchesTree: boolean;
  /** Attestations replace it by one of more; never changed itself, because checkpoints that the same keys signed share it. */
  signers: CheckpointSigners;
}

/** Records after the last seal, and between two checkpoints, that rest on the signatures of the same keys. */
export interface UnsealedRecords {
  readonly keyids: readonly string[];
  readonly first: RecordPlace;
  /** The place of the first one, counted from 0. */
  readonly begin: number;
  /** The place of the last one, counted from 0. */
  last: number;
  readonly counts: Record<EventVerdict, number>;
}

/** The largest tree that a key signed as the log, or cosigned as a witness. */
export interface CheckpointTally {
  readonly keyid: string;
  /** Under which it signed. */
  readonly name: string;
  readonly role: CheckpointRole;
  /** Whether the user pins the key; the ledger alone declares it otherwise. */
  readonly isPinned: boolean;
  readonly treeSize: number;
}

/** See the head of this file. */
export interface Seals {
  /** Checkpoints by event id, for attestations. */
  readonly known: Table<string, KnownCheckpoint>;
  /** The last checkpoint that is right and signed by the log. */
  signed: KnownCheckpoint | undefined;
  /** The last one that also meets what the policies demand of a checkpoint. */
  sealing: KnownCheckpoint | undefined;
  /** Records since the last signed checkpoint, by the interval that they are in and who signed them; earlier intervals first. */
  readonly unsealed: Map<string, UnsealedRecords>;
  /**
   * The first record of the interval that no checkpoint ends yet, signed or not, in the ledger or held by the user: whatever seals late
   * seals whole intervals.
   */
  intervalStart: number;
  /** By role and keyid. */
  readonly tallies: Map<string, CheckpointTally>;
  /** Those who signed the last checkpoint. */
  lastSigners: CheckpointSigners;
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
    intervalStart: 0,
    tallies: new Map(),
    lastSigners: [],
    unknown: 0,
    attestations: 0,
  };
}
