/** Judges the note of a checkpoint by what a verification knows (SPEC §6, §7). */

import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import { type CheckpointRole, judgeCheckpointNote, type NoteVerdict } from '../trust/checkpoint-judge.js';
import { type EntitlementProblem, findRevocationProblem, type RingKey } from '../trust/keyring.js';
import type { VerifyState } from './state.js';

/** Why a key of the ring may not sign or cosign a note, or `undefined` when it may. */
export type Entitlement = (key: RingKey, as: CheckpointRole) => EntitlementProblem | undefined;

/**
 * Judges the signatures of a checkpoint's note by the keys that are known at this point.
 *
 * @param revokedBefore - A key that a record before this one revoked counts no more, also when the witness policy names it.
 */
export function judgeLedgerNote(
  { keyring, requirements }: VerifyState,
  note: SignedCheckpoint,
  findProblem: Entitlement,
  revokedBefore: number,
): NoteVerdict {
  return judgeCheckpointNote(note, {
    keyring,
    requirements,
    findProblem: ({ entry, role, source }) => {
      if (entry === undefined) return undefined;
      const revocation = findRevocationProblem(entry, revokedBefore);
      return revocation ?? (source === 'witness-policy' ? undefined : findProblem(entry, role));
    },
  });
}
