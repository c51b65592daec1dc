/** Lists the keys of a ledger, where they were added and revoked (SPEC §7). */

import { checkOptions } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Key, TrustPolicy } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../source/ledger-source.js';
import { runVerification } from '../verify/run-verification.js';
import type { VerifyState } from '../verify/state.js';

interface KeyRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

export interface ListedKey {
  readonly key: Key;
  /** The record that added it; undefined where the trust policy pins it. */
  readonly since: KeyRecord | undefined;
  /** Keyids of the signers that added it; empty for a key of genesis or of the policy. */
  readonly addedBy: readonly string[];
  /** The record that revoked it, with the reason, if any. */
  readonly revoked: (KeyRecord & { readonly reason: string | undefined }) | undefined;
}

export interface KeyList {
  readonly origin: string | undefined;
  /** In ledger order. */
  readonly keys: readonly ListedKey[];
  /** Whether verification found broken evidence: the list is then less reliable. */
  readonly hasInvalid: boolean;
}

/** Options of {@link readKeyList}. */
interface KeyListOptions {
  /** Its keys are listed first, and the ledger's own only as far as these added them. */
  readonly trust?: TrustPolicy | undefined;
  /** Aborting ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads the keys of a ledger, also revoked ones. A key event without the signature of an admin has no effect and is not listed.
 *
 * @throws NorthrootError when the source cannot be read
 */
export async function readKeyList(source: LedgerSource, options: KeyListOptions = {}): Promise<KeyList> {
  checkOptions('readKeyList', options, { trust: 'object', signal: 'signal' });
  const { state } = await runVerification(source, { ...options, maxFindings: 0 });
  return { origin: state.origin, keys: listKeys(state, options.trust), hasInvalid: state.hasInvalid };
}

/** The keys of a state, in ledger order. */
export function listKeys(state: VerifyState, trust: TrustPolicy | undefined): ListedKey[] {
  const first = { seq: 0, eventId: toDigestText(state.ledgerId ?? '') };
  return state.keyring.save().map(({ key, addedBy = [], addedAt, revokedBy }): ListedKey => {
    const isOfGenesis = addedAt === undefined && trust === undefined;
    const revoked = revokedBy && { ...recordOf(revokedBy), reason: revokedBy.reason };
    const since = addedAt === undefined ? (isOfGenesis ? first : undefined) : recordOf(addedAt);
    return { key, since, addedBy, revoked };
  });
}

function recordOf({ seq, eventId }: KeyRecord): KeyRecord {
  return { seq, eventId };
}
