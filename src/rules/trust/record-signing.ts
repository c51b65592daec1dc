/**
 * Two questions of every record, whoever asks (SPEC §7): must it be signed, and at which instant are the keys that signed it judged?
 * Verification, its fast step and writers ask here.
 */

import { orderTimestamps } from '../../base/value/timestamp.js';

/** What a ledger asks of signatures at a record. */
interface SigningDemand {
  /** By genesis, or by the trust policy. */
  readonly signaturesRequired: boolean;
  /** Whether some key known there has, or had, the role `authority`. */
  readonly hasAuthority: boolean;
}

/**
 * Whether a record must be signed.
 *
 * @param act - Whether it is a key event, and whether it lets somebody act or gives budget back.
 */
export function mustBeSigned(
  { signaturesRequired, hasAuthority }: SigningDemand,
  { isKeyEvent, needsAuthority }: { readonly isKeyEvent: boolean; readonly needsAuthority: boolean },
): boolean {
  return signaturesRequired || isKeyEvent || (hasAuthority && needsAuthority);
}

/**
 * When the keys of a record are judged: at its own time, or at the ledger's clock where that is later. An event that is dated back does
 * not revive an expired key.
 *
 * @param clock - The latest time of genesis and of dating checkpoints before the record.
 */
export function judgingInstant(clock: string | undefined, occurredAt: string): string {
  return clock !== undefined && orderTimestamps(clock, occurredAt) > 0 ? clock : occurredAt;
}
