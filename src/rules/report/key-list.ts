/** The keys of a ledger, from where on they count, and where they were revoked (SPEC §7): as verification knows them. */

import { checkOptions } from '../../base/options.js';
import { toDigestText } from '../../base/value/digest.js';
import type { Key, TrustPolicy } from '../../format/schema/generated/types.js';
import type { LedgerSource } from '../source/ledger-source.js';
import { runVerification } from '../verify/run-verification.js';
import type { VerifyState } from '../verify/state.js';

/** A record, for whoever looks it up. */
interface KeyRecord {
  readonly seq: number;
  /** `sha-256:…` */
  readonly eventId: string;
}

/** A key, and what became of it. */
export interface ListedKey {
  readonly key: Key;
  /** The record that brought it; undefined where the trust policy pins it. */
  readonly since: KeyRecord | undefined;
  /** Keyids of those who signed for it; empty for a key of genesis or of the policy. */
  readonly addedBy: readonly string[];
  /** The record that revoked it, and why, where it says so. */
  readonly revoked: (KeyRecord & { readonly reason: string | undefined }) | undefined;
}

/** The keys of a ledger. */
export interface KeyList {
  readonly origin: string | undefined;
  /** In the order in which they came. */
  readonly keys: readonly ListedKey[];
  /** Whether verification found broken evidence on the way: then the ledger says less than it seems to. */
  readonly hasInvalid: boolean;
}

/** How {@link readKeyList} reads. */
interface KeyListOptions {
  /** The keys that it pins are listed first, and the ledger's own count only as far as they follow from these. */
  readonly trust?: TrustPolicy | undefined;
  /** Aborting ends the reading with its reason. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * The keys of a ledger, those among them that were revoked, and since when. A key event that no admin signed changes nothing and is
 * not listed.
 *
 * @throws NorthrootError when the source cannot be read.
 */
export async function readKeyList(source: LedgerSource, options: KeyListOptions = {}): Promise<KeyList> {
  checkOptions('readKeyList', options, { trust: 'object', signal: 'signal' });
  const { state } = await runVerification(source, { ...options, maxFindings: 0 });
  return { origin: state.origin, keys: listKeys(state, options.trust), hasInvalid: state.hasInvalid };
}

/** The keys that a verification knows, in the order in which they came. */
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
