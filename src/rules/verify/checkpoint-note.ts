/** Judges the note of a checkpoint by the state of a verification (SPEC §6, §7). */

import type { SignedCheckpoint } from '../../format/note/checkpoint.js';
import { type CheckpointRole, judgeCheckpointNote, type NoteVerdict } from '../trust/checkpoint-judge.js';
import { type EntitlementProblem, findRevocationProblem, type RingKey } from '../trust/keyring.js';
import type { VerifyState } from './state.js';

/** Why a key of the ring may not sign or cosign a note, or `undefined` when it may. */
type Entitlement = (key: RingKey, as: CheckpointRole) => EntitlementProblem | undefined;

/**
 * Judges the signatures of a checkpoint's note by the keys known so far.
 *
 * @param revokedBefore - Keys revoked by a record before this one do not count, also if the witness policy names them.
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
