/** What the records that a revoked key signed rest on (SPEC §7): they stay valid where a checkpoint covers them. */

import type { VerificationResult } from '../verify/run-verification.js';
import { isSignedByLog } from '../verify/seals.js';

/**
 * What covers the last record that the key signed: a checkpoint that another key signed or cosigned, or that the user holds; only
 * checkpoints that the key itself signed, so that whoever had it could have made them anew; or nothing.
 */
export type RestsOn = 'checkpoints_by_others' | 'own_checkpoints' | 'nothing';

/** A key that was revoked. */
export interface RevokedKey {
  readonly keyid: string;
  readonly revokedAtSeq: number;
  /** The records that it signed, and was entitled to. */
  readonly records: number;
  /** Undefined when it signed none that need a checkpoint. */
  readonly restsOn: RestsOn | undefined;
}

/** The keys that were revoked in the ledger. */
export function listRevoked({ state, ending }: Pick<VerificationResult, 'state' | 'ending'>): RevokedKey[] {
  const held = ending.anchors
    .filter(({ relation, signatures }) => relation === 'extends' && isSignedByLog(signatures.endorsers))
    .map(({ note }) => note.checkpoint.size);
  const tallies = [...state.seals.tallies.values()];
  return state.keyring.revoked().map(({ key: { keyid }, revokedBy }) => {
    const others = tallies.filter((tally) => tally.keyid !== keyid && !isRevoked(state, tally.keyid));
    const byOthers = Math.max(0, ...held, ...others.map(({ treeSize }) => treeSize));
    const byAny = Math.max(0, ...held, ...tallies.map(({ treeSize }) => treeSize));
    const signer = state.signers.get(keyid);
    const restsOn = (last: number): RestsOn =>
      last < byOthers ? 'checkpoints_by_others' : last < byAny ? 'own_checkpoints' : 'nothing';
    return {
      keyid,
      revokedAtSeq: revokedBy?.seq ?? 0,
      records: signer?.records ?? 0,
      restsOn: signer === undefined || signer.last < 0 ? undefined : restsOn(signer.last),
    };
  });
}

function isRevoked({ keyring }: VerificationResult['state'], keyid: string): boolean {
  return keyring.find(keyid)?.revokedBy !== undefined;
}
