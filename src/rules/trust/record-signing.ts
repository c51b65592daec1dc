/**
 * Whether a record must be signed, and at which instant its keys are judged (SPEC §7): for verification, the fast path and writers.
 */

import { orderTimestamps } from '../../base/value/timestamp.js';

/** The requirements at a record. */
interface SigningDemand {
  /** By genesis, or by the trust policy. */
  readonly signaturesRequired: boolean;
  /** Whether some key known there has, or had, the role `authority`. */
  readonly hasAuthority: boolean;
}

/**
 * Whether a record must be signed.
 *
 * @param act - Whether it is a key event, and whether it lets a principal act or returns budget.
 */
export function mustBeSigned(
  { signaturesRequired, hasAuthority }: SigningDemand,
  { isKeyEvent, needsAuthority }: { readonly isKeyEvent: boolean; readonly needsAuthority: boolean },
): boolean {
  return signaturesRequired || isKeyEvent || (hasAuthority && needsAuthority);
}

/**
 * The instant at which the keys of a record are judged: its own time, or the ledger's clock if that is later. Back-dating does not revive
 * an expired key.
 *
 * @param clock - The latest time of genesis and of dating checkpoints before the record.
 */
export function judgingInstant(clock: string | undefined, occurredAt: string): string {
  return clock !== undefined && orderTimestamps(clock, occurredAt) > 0 ? clock : occurredAt;
}
