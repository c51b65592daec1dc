/** What becomes of reservations: each is settled once, by its own server, after it was made, and the amounts fit. */

import { printable } from '../../../base/bytes/printable.js';
import type { SourceObject } from '../../../base/json/source-json.js';
import type { Receipt } from '../receipt.js';
import type { Verification } from '../verification.js';
import type { CyclesAmount } from './amounts.js';
import { finding } from './rules.js';
import type { ArtifactType } from './shape.js';

export interface CyclesReceipt extends Receipt {
  readonly value: SourceObject;
  readonly artifact: ArtifactType;
  readonly server: string;
  /** Of what concerns a reservation that was made. */
  readonly reservationId: string | undefined;
  readonly issuedAt: bigint;
  readonly reserved: CyclesAmount | undefined;
  readonly charged: CyclesAmount | undefined;
  readonly released: CyclesAmount | undefined;
}

/** Checks what envelopes that hold say of one reservation. */
export function checkSettlements(receipts: readonly CyclesReceipt[], verification: Verification): void {
  const made = new Map<string, CyclesReceipt>();
  for (const receipt of receipts) {
    if (receipt.artifact !== 'reserve' || receipt.reservationId === undefined) continue;
    const before = made.get(keyOf(receipt));
    if (before === undefined) made.set(keyOf(receipt), receipt);
    else {
      const [expected, actual] = ['one reservation', `another, ${receipt.id}`];
      const found = finding('RESERVATION_REPEATED', receipt.at, { expected, actual, related: [before.at] });
      verification.find(receipt, found);
    }
  }
  const settled = new Map<string, CyclesReceipt>();
  for (const receipt of receipts) {
    if (receipt.artifact !== 'commit' && receipt.artifact !== 'release') continue;
    const before = settled.get(keyOf(receipt));
    if (before === undefined) settled.set(keyOf(receipt), receipt);
    else {
      const [expected, actual] = [`one end, a ${before.artifact}`, `a further ${receipt.artifact}`];
      verification.find(
        receipt,
        finding('SETTLED_TWICE', receipt.at, { expected, actual, related: [before.at] }),
      );
    }
    const reservation = made.get(keyOf(receipt));
    if (reservation === undefined) verification.find(receipt, finding('RESERVATION_NOT_GIVEN', receipt.at));
    else compare(receipt, reservation, verification);
  }
}

/** Ids are a server's own. */
function keyOf({ server, reservationId }: CyclesReceipt): string {
  return JSON.stringify([server, reservationId]);
}

function compare(receipt: CyclesReceipt, reservation: CyclesReceipt, verification: Verification): void {
  const related = [reservation.at];
  if (receipt.issuedAt < reservation.issuedAt) {
    const [expected, actual] = [`not before ${reservation.occurredAt}`, String(receipt.occurredAt)];
    verification.find(receipt, finding('SETTLED_BEFORE', receipt.at, { expected, actual, related }));
  }
  const { reserved } = reservation;
  const { charged, released } = receipt;
  if (reserved === undefined) return;
  const other = [charged, released].find((amount) => amount !== undefined && amount.unit !== reserved.unit);
  if (other !== undefined) {
    const [expected, actual] = [reserved.unit, printable(other.unit, 40)];
    verification.find(receipt, finding('UNIT_DIFFERS', receipt.at, { expected, actual, related }));
    return;
  }
  const total = (charged?.amount ?? 0n) + (released?.amount ?? 0n);
  // More may be charged than was reserved, by the policy on overage; nothing is released of it then.
  const fits = released === undefined ? total >= 0n : total === reserved.amount;
  if (fits) return;
  const [expected, actual] = [`${reserved.amount} ${reserved.unit} in all`, `${total}`];
  verification.find(receipt, finding('AMOUNTS_DIFFER', receipt.at, { expected, actual, related }));
}
