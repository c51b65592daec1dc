/** Which amounts of a record count: refused, repeated and unlinked ones do not. */

import { fromDigestText } from '../../base/value/digest.js';
import type { UnitAmounts } from '../../format/event/outline.js';
import type { AdjustmentEvent, ExecutionEvent } from '../../format/schema/generated/types.js';
import type { VerifiedRecord } from '../../rules/verify/verified-record.js';
import { isUsedUp } from '../../rules/verify/event-index.js';

/** Findings that void a credit, besides broken evidence. */
const REFUSING: ReadonlySet<string> = new Set(['ADJUSTMENT_EXCEEDED', 'SELF_CREDIT']);

/** Whether a record is the first with its event id. */
export function isFirstOfItsId({ findings }: VerifiedRecord): boolean {
  return findings.every(({ code }) => code !== 'EVENT_DUPLICATE');
}

/** Whether an execution's use counts: it names an earlier authorization that allowed it. */
function isUseCounted(record: VerifiedRecord, event: ExecutionEvent): boolean {
  if (!isFirstOfItsId(record)) return false;
  const { links, events } = record.state;
  const id = event.auth_event_id.b64;
  const authorization = links.actions.get(id) ?? links.grants.get(id);
  return authorization === undefined ? isUsedUp(events.find(id)?.kind) : authorization.decision === 'allow';
}

/** For each of an execution's amounts. */
export function countedUse(record: VerifiedRecord, event: ExecutionEvent): boolean[] {
  const isCounted = isUseCounted(record, event);
  return event.meter_used.map((_, index) => isCounted && !isTooFine(record, `/meter_used/${index}/amount`));
}

/** Used but not stated: an execution's silent units, and the earlier try that it takes over (SPEC §8 rules 5 and 8). */
export function unstatedUse(record: VerifiedRecord): UnitAmounts {
  const { unstated } = record.state;
  const isOfRecord = unstated !== undefined && unstated.id === record.examined?.eventId;
  return isOfRecord && isFirstOfItsId(record) ? unstated.amounts : [];
}

/** For each of an adjustment's amounts (SPEC §8 rule 11). */
export function countedAmounts(record: VerifiedRecord, event: AdjustmentEvent): boolean[] {
  const { findings, grantIds, state } = record;
  const [nearest] = grantIds;
  const grant = nearest === undefined ? undefined : state.links.grants.get(fromDigestText(nearest));
  // An overdue checkpoint is found after the line is applied.
  const isRefused =
    !isFirstOfItsId(record) ||
    (event.direction === 'credit' &&
      findings.some(
        ({ class: of, code }) => REFUSING.has(code) || (of === 'invalid' && code !== 'CHECKPOINT_MISSING'),
      ));
  return event.meters.map(
    ({ unit }, index) =>
      !isRefused && grant?.accounts.has(unit) === true && !isTooFine(record, `/meters/${index}/amount`),
  );
}

/** Whether an amount was not added, because the sum's denominator would be too long (SPEC §2). */
export function isTooFine({ findings }: VerifiedRecord, pointer: string): boolean {
  return findings.some(
    ({ code, at }) => code === 'QUANTITY_INVALID' && at.pointer?.endsWith(pointer) === true,
  );
}
