/**
 * Slices (SPEC §8 rule 17) in the ledger that is verified: those that its grants spend, and those that it sets aside for other ledgers. What
 * a given parent says of the first is in `parents.ts`.
 */

import type { Grant } from '../bounds/grant.js';
import { SLICE_POINTER } from '../bounds/slice.js';
import type { LineFindings } from './line-findings.js';
import { sliceKey } from './slice-use.js';
import type { VerifyState } from './state.js';

/** An allowed root grant, invalid or not, names a slice: no earlier one may, and what parents say of it holds. */
export function checkSlice(state: VerifyState, grant: Grant, findings: LineFindings): void {
  const { slice } = grant;
  if (slice === undefined) return;
  const { links, parents } = state;
  state.slicesSpent += 1;
  const key = sliceKey(slice);
  const earlier = links.slices.get(key);
  if (earlier === undefined) links.slices.set(key, grant.place);
  else
    findings.addToEvent({
      code: 'SLICE_REUSED',
      pointer: SLICE_POINTER,
      expected: 'a slice that no earlier grant of this ledger names',
      actual: `named by ${earlier.eventId}`,
      related: [earlier],
    });
  parents?.take(state, grant, earlier === undefined, findings);
}
