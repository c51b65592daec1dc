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
 * How a root grant stands after the last line, for the settlement of its slice: see `findUnclosed`. Over an index only after its actions were
 * loaded.
 */
export function sliceUseOf({ links }: { readonly links: Links }, grant: Grant): SliceUse {
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
