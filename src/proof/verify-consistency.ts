/** Verifies a consistency proof offline (SPEC §6): that the log only grew since an older checkpoint. Pure: no files, no clock. */

import type { Result } from '../base/fault.js';
import { checkOptions } from '../base/options.js';
import { toDigestText } from '../base/value/digest.js';
import { decodeCheckpoint, type SignedCheckpoint } from '../format/note/checkpoint.js';
import { hashToBase64url } from '../format/tree/compact-range.js';
import { verifyConsistency } from '../format/tree/proof.js';
import { decodeConsistencyProof } from './consistency-proof.js';
import {
  type CheckpointSigners,
  PROOF_TRUST,
  ProofKeyring,
  type ProofProblem,
  type ProofTrust,
  toProblem,
} from './proof-keys.js';
import {
  listAgeGap,
  NO_SIGNERS,
  NO_WITNESS,
  type ProofOutcome,
  type StatedTree,
  verdictOf,
} from './verify-proof.js';

/** The result in its wire form. Members of this type repeat what the files say, proven only if the verdict is `ok`. */
export interface ConsistencyResult extends ProofOutcome {
  readonly origin: string | null;
  readonly old_tree: StatedTree | null;
  readonly tree: StatedTree | null;
  readonly old_checkpoint_signers: CheckpointSigners;
  readonly checkpoint_signers: CheckpointSigners;
}

/**
 * Verifies that the checkpoint in a consistency proof's file extends an older one.
 *
 * @param bytes - The file. The result reports faults with the codes `PROOF_MALFORMED`, `NOTE_MALFORMED`,
 *   `ORIGIN_MISMATCH`, `CHECKPOINT_SIGNATURE_INVALID`, `KEY_UNKNOWN`, `WITNESS_QUORUM` and `PROOF_INVALID`.
 * @param oldNote - The note of the older checkpoint.
 * @param trust - The result is `ok` only if known keys signed both checkpoints.
 */
export function verifyConsistencyProof(
  bytes: Uint8Array,
  oldNote: Uint8Array,
  trust: ProofTrust,
): ConsistencyResult {
  checkOptions('verifyConsistencyProof: trust', trust, PROOF_TRUST);
  const keyring = new ProofKeyring(trust);
  const problems: ProofProblem[] = [];
  const keep = <T>(decoded: Result<T>): T | undefined => {
    if (decoded.ok) return decoded.value;
    problems.push(toProblem(decoded.fault));
    return undefined;
  };
  const proof = keep(decodeConsistencyProof(bytes));
  const signed = proof && keep(decodeCheckpoint(proof.note));
  const old = keep(decodeCheckpoint(oldNote));
  const judge = (note: SignedCheckpoint | undefined): CheckpointSigners => {
    if (note === undefined) return NO_SIGNERS;
    const judged = keyring.judgeCheckpoint(note);
    problems.push(...judged.problems);
    return judged.signers;
  };
  const oldSigners = judge(old);
  const signers = judge(signed);
  if (proof !== undefined && signed !== undefined && old !== undefined)
    problems.push(...compare(old, signed, proof.oldSize, proof.hashes));
  const hasWitness = oldSigners.witnesses.length > 0 && signers.witnesses.length > 0;
  return {
    ...verdictOf(problems),
    problems,
    not_checked: [...(hasWitness ? [] : [NO_WITNESS]), ...listAgeGap(trust)],
    origin: old?.checkpoint.origin ?? null,
    old_tree: toStatedTree(old),
    tree: toStatedTree(signed),
    old_checkpoint_signers: oldSigners,
    checkpoint_signers: signers,
  };
}

function compare(
  { checkpoint: old }: SignedCheckpoint,
  { checkpoint }: SignedCheckpoint,
  oldSize: number,
  proof: readonly string[],
): ProofProblem[] {
  if (old.origin !== checkpoint.origin)
    return [toProblem({ code: 'ORIGIN_MISMATCH', expected: old.origin, actual: checkpoint.origin })];
  if (oldSize !== old.size) {
    const expected = `a proof from the older checkpoint's size, ${old.size}`;
    return [{ code: 'PROOF_INVALID', kind: 'invalid', expected, actual: `one from ${oldSize}` }];
  }
  const claim = { size1: old.size, root1: old.root, size2: checkpoint.size, root2: checkpoint.root, proof };
  if (verifyConsistency(claim)) return [];
  const expected = `a proof that the tree of ${checkpoint.size} extends that of ${old.size}`;
  return [{ code: 'PROOF_INVALID', kind: 'invalid', expected, actual: 'another' }];
}

function toStatedTree(signed: SignedCheckpoint | undefined): StatedTree | null {
  if (signed === undefined) return null;
  const { size, root } = signed.checkpoint;
  return { tree_size: size, root: toDigestText(hashToBase64url(root)) };
}
