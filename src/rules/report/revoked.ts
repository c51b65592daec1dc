/** Revoked keys, and which checkpoints cover the records that they signed (SPEC §7). */

import { isSignedByLog, listSigners } from '../trust/checkpoint-judge.js';
import type { VerificationResult } from '../verify/run-verification.js';

/**
 * What covers the last record of the key: a checkpoint that the user holds, or by a key independent of revoked ones; only checkpoints by
 * revoked keys or keys that these added, whose holder could have made everything anew; or nothing.
 */
type RestsOn = 'checkpoints_by_others' | 'own_checkpoints' | 'nothing';

export interface RevokedKey {
  readonly keyid: string;
  readonly revokedAtSeq: number;
  /** The records that it signed while entitled. */
  readonly records: number;
  /** Undefined when it signed none that need a checkpoint. */
  readonly restsOn: RestsOn | undefined;
}

/** The revoked keys of the ledger. */
export function listRevoked({ state, ending }: Pick<VerificationResult, 'state' | 'ending'>): RevokedKey[] {
  const extended = ending.anchors.filter(
    ({ relation, signatures }) => relation === 'extends' && isSignedByLog(signatures.signers),
  );
  const held = extended
    .filter(({ isPublished }) => !isPublished)
    .reduce((most, { note }) => Math.max(most, note.checkpoint.size), 0);
  // A published checkpoint counts by its signers. It has no record.
  const published = extended
    .filter(({ isPublished }) => isPublished)
    .flatMap(({ note, signatures }) =>
      listSigners(signatures.signers).map(({ keyid }) => ({
        keyid,
        treeSize: note.checkpoint.size - 1,
      })),
    );
  const tallies = [...state.seals.tallies.values(), ...published];
  const unrevoked = state.keyring.keysWithUnrevokedLineage();
  // Keys that the witness policy names need not be in the ring.
  const others = tallies.filter(
    ({ keyid }) => unrevoked.has(keyid) || state.keyring.find(keyid) === undefined,
  );
  const reach = (sizes: readonly { readonly treeSize: number }[]): number =>
    sizes.reduce((most, { treeSize }) => Math.max(most, treeSize + 1), 0);
  const byOthers = Math.max(held, reach(others));
  const byAny = Math.max(held, reach(tallies));
  return state.keyring.revoked().map(({ key: { keyid }, revokedBy }) => {
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
