/** What the records that a revoked key signed rest on (SPEC §7): they stay valid where a checkpoint covers them. */

import { isSignedByLog, listSigners } from '../trust/checkpoint-judge.js';
import type { VerificationResult } from '../verify/run-verification.js';

/**
 * What covers the last record that the key signed: a checkpoint that the user holds, or that a key signed or cosigned that owes
 * nothing to a revoked one; only checkpoints by revoked keys or by keys that these added, so that whoever had them could have made
 * all of it anew; or nothing.
 */
type RestsOn = 'checkpoints_by_others' | 'own_checkpoints' | 'nothing';

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
  const extended = ending.anchors.filter(
    ({ relation, signatures }) => relation === 'extends' && isSignedByLog(signatures.signers),
  );
  const held = extended
    .filter(({ isPublished }) => !isPublished)
    .reduce((most, { note }) => Math.max(most, note.checkpoint.size), 0);
  // What the ledger is published with is worth as much as who signed it. It has no record of its own.
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
