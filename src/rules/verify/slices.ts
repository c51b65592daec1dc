/**
 * Slices (SPEC §8 rule 17) in the ledger that is verified: those that its grants spend, and those that it sets aside for other ledgers. What
 * a given parent says of the first is in `parents.ts`.
 */

import { fromDigestText } from '../../base/value/digest.js';
import { type Grant, grantChain, type SliceName } from '../bounds/grant.js';
import { SLICE_POINTER, type SliceUse } from '../bounds/slice.js';
import type { LineFindings } from './line-findings.js';
import type { VerifyState } from './state.js';

/** A slice as a key. */
export function sliceKey({ ledgerId, eventId }: SliceName): string {
  return `${ledgerId} ${eventId}`;
}

/** An allowed root grant, invalid or not, names a slice: no earlier one may, and what parents say of it holds. */
export function checkSlice(state: VerifyState, grant: Grant, findings: LineFindings): void {
  const { slice } = grant;
  if (slice === undefined) return;
  const { links, parents } = state;
  state.slicesSpent += 1;
  const key = sliceKey(slice);
  const earlier = links.slices.get(key);
  if (earlier === undefined) {
    links.slices.set(key, grant.place);
  } else {
    findings.addToEvent({
      code: 'SLICE_REUSED',
      pointer: SLICE_POINTER,
      expected: 'a slice that no earlier grant of this ledger names',
      actual: `named by ${earlier.eventId}`,
      related: [earlier],
    });
  }
  parents?.take(state, grant, earlier === undefined, findings);
}

/**
 * How a root grant stands after the last line, for the settlement of its slice: see `findUnclosed`. Over an index only after its actions were
 * loaded.
 */
export function sliceUseOf({ links }: VerifyState, grant: Grant): SliceUse {
  const { withdrawal, accounts, index } = grant;
  const isUnder = (each: Grant | undefined): boolean =>
    grantChain(each).some((above) => above.index === index);
  let openActions = 0;
  for (const { eventId } of links.actions.open())
    if (isUnder(links.actions.get(fromDigestText(eventId))?.grant)) openActions += 1;
  let openStarts = 0;
  for (const [id, starts] of links.starts)
    if (isUnder(links.actions.get(id)?.grant ?? links.grants.get(id))) openStarts += starts.size;
  return {
    isStopped: withdrawal?.effect === 'revoke' && withdrawal.stop !== undefined,
    openActions,
    openStarts,
    used: new Map([...accounts].map(([unit, { used }]) => [unit, used])),
  };
}
