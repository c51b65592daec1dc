/**
 * Makes proofs from a ledger (SPEC §6): of inclusion, and of consistency with an older checkpoint.
 *
 * The ledger is read several times in constant memory: to find the record and the checkpoint, then to hash the subtrees of the proof. The
 * last pass recomputes the root, so every proof verifies. Signatures are left to the verifier.
 */

import { printable } from '../base/bytes/printable.js';
import { encodeUtf8 } from '../base/bytes/text.js';
import { NorthrootError } from '../base/error.js';
import { checkOptions, checkString, type OptionTypes } from '../base/options.js';
import { toDigestText } from '../base/value/digest.js';
import { type Checkpoint, parseCheckpoint } from '../format/note/checkpoint.js';
import { examineLine } from '../format/record/examine-line.js';
import { hashToBase64url, leafHash } from '../format/tree/compact-range.js';
import {
  consistencyRanges,
  inclusionRanges,
  type LeafRange,
  verifyConsistency,
  verifyInclusion,
} from '../format/tree/proof.js';
import type { ReadRecord } from '../log/read/read-records.js';
import type { OpenLedger } from '../rules/source/read-lines.js';
import { formatConsistencyProof } from './consistency-proof.js';
import { ledgerBasis, type ProofBasis } from './proof-basis.js';
import { formatTlogProof } from './tlog-proof.js';

export interface ProofOptions {
  /** The note of the checkpoint to prove against. Default: the ledger's last checkpoint. */
  readonly checkpoint?: Uint8Array | undefined;
  readonly signal?: AbortSignal | undefined;
}

export const PROOF_OPTIONS: OptionTypes<ProofOptions> = { checkpoint: 'bytes', signal: 'signal' };

export interface RecordProofOptions extends ProofOptions {
  /**
   * Whether the file carries the record as its extra data. Default: true. A record of more than 49,146 bytes makes a line longer than
   * 64 KiB, which some tools cannot read.
   */
  readonly extra?: boolean | undefined;
}

/** An inclusion proof of a record. */
export interface MadeProof {
  /** The tlog-proof file. */
  readonly bytes: Uint8Array;
  /** The proven record: its line without the newline. */
  readonly entry: Uint8Array;
  /** `sha-256:…` */
  readonly eventId: string;
  readonly index: number;
  readonly checkpoint: Checkpoint;
}

export interface MadeConsistencyProof {
  /** The file, in the form of tlog-witness' add-checkpoint. */
  readonly bytes: Uint8Array;
  readonly oldCheckpoint: Checkpoint;
  readonly checkpoint: Checkpoint;
}

/**
 * Proves that a record is in the ledger, as a tlog-proof file.
 *
 * @param from - Opens the ledger, which is read up to three times; or the index to use instead.
 * @param wanted - The record's seq, its event id, or a prefix of it.
 * @throws NorthrootError as `findRecord`; `NOT_A_LEDGER` for bare events; `CHECKPOINT_MISSING` when no checkpoint covers
 *   the record; `NOTE_MALFORMED` for a malformed given note; `SEQ_GAP` if the record's seq is not its position;
 *   `TRUNCATED` and `FORKED` if the ledger does not match the given note; `CHECKPOINT_ROOT_MISMATCH` and `CHECKPOINT_SIZE_MISMATCH` if it
 *   does not match its own; and the code of a fault of the record.
 */
export async function makeProof(
  from: OpenLedger | ProofBasis,
  wanted: string,
  options: RecordProofOptions = {},
): Promise<MadeProof> {
  checkOptions('makeProof', options, { ...PROOF_OPTIONS, extra: 'boolean' });
  checkString('makeProof', 'the record', wanted);
  const { record, hashes, base } = await proveInclusion(from, wanted, options);
  const { bytes: entry, eventId, seq: index } = record;
  const extra = options.extra === false ? undefined : entry;
  const bytes = formatTlogProof({ extra, index, hashes, note: base.note });
  return { bytes, entry, eventId, index, checkpoint: base.checkpoint };
}

/** The position of a record in the tree of a checkpoint. */
interface Inclusion {
  readonly record: Pick<ReadRecord, 'bytes' | 'eventId' | 'seq'>;
  /** From the leaf's sibling up. */
  readonly hashes: readonly string[];
  readonly base: StatedCheckpoint;
}

/** Finds the record and its path to the root of a checkpoint. @throws as {@link makeProof} */
export async function proveInclusion(
  from: OpenLedger | ProofBasis,
  wanted: string,
  { checkpoint: given, signal }: ProofOptions,
): Promise<Inclusion> {
  const basis = typeof from === 'function' ? ledgerBasis(from, signal) : from;
  const stated = given === undefined ? undefined : readGiven(given);
  const record = await basis.findRecord(wanted);
  const { layout, faults } = examineLine(record.bytes, undefined);
  if (layout !== 'records')
    throw new NorthrootError('NOT_A_LEDGER', 'bare events have no records around them to prove', {
      hint: 'append them to a ledger first',
    });
  const [fault] = faults;
  if (fault !== undefined) {
    const { code, pointer, expected, actual } = fault;
    const where = `at ${printable(record.file)}:${record.line}${printable(pointer)}`;
    throw new NorthrootError(code, `the record ${where} is broken: expected ${expected}, found ${actual}`, {
      hint: 'verify the ledger: its findings say all that is wrong',
    });
  }
  const index = record.seq;
  const base = stated ?? (await findOwn(basis));
  if (base === undefined) throw missing('the ledger has no checkpoint');
  const { size, root } = base.checkpoint;
  if (size <= index) throw missing(`the checkpoint covers ${size} records, not the one at seq ${index}`);
  const hashes = await hashRanges(basis, inclusionRanges(index, size), [base]);
  if (!verifyInclusion({ index, size, leafHash: leafHash(record.bytes), root, proof: hashes }))
    throw new NorthrootError('SEQ_GAP', `the record says seq ${index}, and another stands in that place`, {
      hint: 'verify the ledger: its findings say where records are missing or were put in',
    });
  return { record, hashes, base };
}

/**
 * Proves that a ledger extends an older checkpoint.
 *
 * @param from - As for {@link makeProof}.
 * @param oldNote - The note of the older checkpoint.
 * @throws NorthrootError `NOTE_MALFORMED`; `CHECKPOINT_MISSING` when there is no newer checkpoint;
 *   `ORIGIN_MISMATCH` (checkpoints of two logs), `TRUNCATED`, `FORKED`, `CHECKPOINT_ROOT_MISMATCH` as {@link makeProof}.
 */
export async function makeConsistencyProof(
  from: OpenLedger | ProofBasis,
  oldNote: Uint8Array,
  options: ProofOptions = {},
): Promise<MadeConsistencyProof> {
  checkOptions('makeConsistencyProof', options, PROOF_OPTIONS);
  const { checkpoint: given, signal } = options;
  const basis = typeof from === 'function' ? ledgerBasis(from, signal) : from;
  const old = readGiven(oldNote);
  const base = given === undefined ? await findOwn(basis) : readGiven(given);
  const { size: size1, root: root1, origin } = old.checkpoint;
  if (base !== undefined && base.checkpoint.origin !== origin) {
    const [is, was] = [base.checkpoint.origin, origin].map((name) => printable(name));
    throw new NorthrootError('ORIGIN_MISMATCH', `the checkpoints are of two logs, ${was} and ${is}`);
  }
  if (base === undefined || size1 > base.checkpoint.size) {
    // Distinguishes a ledger whose checkpoints are behind from one that was truncated.
    await hashRanges(basis, [], [old]);
    throw missing(`the ledger has no checkpoint that covers as many records as the older one, ${size1}`);
  }
  const { size: size2, root: root2 } = base.checkpoint;
  const ranges = consistencyRanges(size1, size2);
  const hashes = await hashRanges(basis, ranges, [old, base]);
  if (!verifyConsistency({ size1, root1, size2, root2, proof: hashes }))
    throw new Error('a consistency proof that was just made does not verify');
  const bytes = formatConsistencyProof({ oldSize: size1, hashes, note: base.note });
  return { bytes, oldCheckpoint: old.checkpoint, checkpoint: base.checkpoint };
}

/** A checkpoint with its note, which is the ledger's own, or given. */
interface StatedCheckpoint {
  readonly checkpoint: Checkpoint;
  readonly note: Uint8Array;
  readonly isOwn: boolean;
}

function readGiven(note: Uint8Array): StatedCheckpoint {
  return { checkpoint: parseCheckpoint(note).checkpoint, note, isOwn: false };
}

async function findOwn(basis: ProofBasis): Promise<StatedCheckpoint | undefined> {
  const found = await basis.findCheckpoint();
  if (found === undefined) return undefined;
  const note = encodeUtf8(found.note);
  const { checkpoint } = parseCheckpoint(note);
  if (checkpoint.size !== found.seq) {
    const message = `the ledger's last checkpoint covers ${checkpoint.size} records and stands at seq ${found.seq}`;
    throw new NorthrootError('CHECKPOINT_SIZE_MISMATCH', message);
  }
  return { checkpoint, note, isOwn: true };
}

/**
 * The roots of ranges, after checking the roots that the checkpoints state.
 *
 * @throws NorthrootError `TRUNCATED`, `FORKED`, `CHECKPOINT_ROOT_MISMATCH`
 */
async function hashRanges(
  basis: ProofBasis,
  ranges: readonly LeafRange[],
  stated: readonly StatedCheckpoint[],
): Promise<readonly string[]> {
  const sizes = [...new Set(stated.map(({ checkpoint }) => checkpoint.size))].sort((a, b) => a - b);
  const { size, trees, roots } = await basis.hashTree(sizes, ranges);
  for (const [i, root] of trees.entries()) {
    const other = stated.find(({ checkpoint }) => checkpoint.size === sizes[i] && checkpoint.root !== root);
    if (other !== undefined) throw otherRoot(other, root);
  }
  if (roots === undefined) throw truncated(sizes.at(-1) ?? 0, size);
  return roots;
}

function otherRoot({ checkpoint, isOwn }: StatedCheckpoint, actual: string): NorthrootError {
  const { size } = checkpoint;
  const [expected, found] = [checkpoint.root, actual].map((hash) => toDigestText(hashToBase64url(hash)));
  const whose = isOwn ? "the ledger's own checkpoint" : 'the note';
  return new NorthrootError(
    isOwn ? 'CHECKPOINT_ROOT_MISMATCH' : 'FORKED',
    `${whose} states the root ${expected} for ${size} records, the ledger has ${found}`,
    {
      hint: 'records that the checkpoint covers were changed; a comparison with an older copy says which was first',
    },
  );
}

function truncated(size: number, actual: number): NorthrootError {
  return new NorthrootError('TRUNCATED', `the note covers ${size} records, the ledger has ${actual}`, {
    hint: 'records were cut off, or this is an older copy or another ledger',
  });
}

function missing(message: string): NorthrootError {
  return new NorthrootError('CHECKPOINT_MISSING', message, {
    hint: 'make a checkpoint, or give a later note',
  });
}
