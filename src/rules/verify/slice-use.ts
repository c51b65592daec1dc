/** How a grant that spends a slice stands (SPEC §8 rule 17), from the links of its ledger. */

import { fromDigestText } from '../../base/value/digest.js';
import { type Grant, grantChain, type SliceName } from '../bounds/grant.js';
import type { SliceUse } from '../bounds/slice.js';
import type { Links } from './links.js';

/** A slice as a key. */
export function sliceKey({ ledgerId, eventId }: SliceName): string {
  return `${ledgerId} ${eventId}`;
}

/**
 * How root grants stand after the last line, for the settlement of their slices: see `findUnclosed`. What is open is counted once, for all of
 * them. Over an index only after its actions were loaded.
 */
export function sliceUses({ links }: { readonly links: Links }): (grant: Grant) => SliceUse {
  const openActions = new Map<number, number>();
  const openStarts = new Map<number, number>();
  const add = (counts: Map<number, number>, under: Grant | undefined, count: number): void => {
    const root = grantChain(under).at(-1);
    if (root !== undefined) counts.set(root.index, (counts.get(root.index) ?? 0) + count);
  };
  for (const { eventId } of links.actions.open())
    add(openActions, links.actions.get(fromDigestText(eventId))?.grant, 1);
  for (const [id, starts] of links.starts)
    add(openStarts, links.actions.get(id)?.grant ?? links.grants.get(id), starts.size);
  return ({ withdrawal, accounts, index }) => ({
    isStopped: withdrawal?.effect === 'revoke' && withdrawal.stop !== undefined,
    openActions: openActions.get(index) ?? 0,
    openStarts: openStarts.get(index) ?? 0,
    used: new Map([...accounts].map(([unit, { used }]) => [unit, used])),
  });
}

/** {@link sliceUses} of one grant. */
export function sliceUseOf(state: { readonly links: Links }, grant: Grant): SliceUse {
  return sliceUses(state)(grant);
}
