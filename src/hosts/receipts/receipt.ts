/**
 * Signed receipts of other systems: what every format of them has in common. A format reads one receipt, strictly, and says what of it is
 * signed and what it is chained to; `verification.ts` checks that by the format's own rules, and `receipt-host.ts` makes a host of a format,
 * so that receipts are imported and reconciled as the records of any other system. They become evidence, never authority (SPEC §7, "Taken
 * over").
 */

import type { SourceValue } from '../../base/json/source-json.js';
import type { JsonObject } from '../../base/json/value.js';
import type { Digest } from '../../base/value/digest.js';
import type { MeterVector } from '../../base/value/meter.js';
import type { PublicKey } from '../../format/key/public-key.js';
import type { HostPlace } from '../shared/host.js';

/** One signature of a receipt, and what may say by which key it is. */
export interface ReceiptSignature {
  readonly alg: PublicKey['alg'];
  /** The signed bytes, in the format's own canonical form. */
  readonly message: Uint8Array;
  /** Further forms that the format has of the same content: the signature may be over any of them. */
  readonly alternatives?: readonly Uint8Array[] | undefined;
  /** Of the signature itself. */
  readonly bytes: Uint8Array;
  /** Under which names its key may be given, the nearest first: a key id, the issuer. */
  readonly keyNames: readonly string[];
  /** The key that the issuer's own name is, as of a `did:key`: nobody else can sign for that name. */
  readonly bound?: PublicKey | undefined;
  /** The key that the receipt itself states: whoever changes the receipt can change it too. */
  readonly stated?: PublicKey | undefined;
  /** Of the signature's text, RFC 6901. */
  readonly pointer: string;
}

export interface ReceiptLink {
  readonly chain: string;
  readonly sequence: bigint;
  /** What it states of the one before it, as `digest` of that one has it; `null` for the first. */
  readonly previous: string | null;
  /** Whether nothing may follow it. */
  readonly isLast?: boolean | undefined;
  /** Of the member that states `previous`, RFC 6901. */
  readonly pointer: string;
}

/** What a receipt says was done, for `reconcile`; see `Observation`. */
export interface ReceiptAction {
  /** Every id that the receipt gives the call. */
  readonly callIds: readonly string[];
  readonly tool?: string | undefined;
  readonly paramsDigest?: Digest | undefined;
  readonly decision?: 'allow' | 'deny' | undefined;
  readonly outcome?: 'success' | 'failure' | 'unknown' | undefined;
  readonly meters?: MeterVector | undefined;
}

export interface Receipt {
  readonly at: HostPlace;
  readonly value: SourceValue;
  /** Its own id, unique among all receipts of its system. */
  readonly id: string;
  /** Who states it, in its own words. */
  readonly issuer: string;
  /** What it is: letters, digits, `_`, `.` and `-`; its event is `x.SYSTEM.TYPE`. */
  readonly type: string;
  /** When what it is about happened: a Timestamp. Of one that states none, the time of an item without one stands for it. */
  readonly occurredAt: string | undefined;
  /** A PrincipalID, as `principalOf` makes it. */
  readonly principalId: string;
  /** What the next receipt of its chain states of it, in the format's own spelling. */
  readonly digest: string;
  readonly signatures: readonly ReceiptSignature[];
  readonly link?: ReceiptLink | undefined;
  /** What is kept of it: ids, codes and digests; no contents. */
  readonly facts: JsonObject;
  readonly action?: ReceiptAction | undefined;
}
