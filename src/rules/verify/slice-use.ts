/** How a grant that spends a slice stands (SPEC §8 rule 17), from the links of its ledger. */

import type { Grant, SliceName } from '../bounds/grant.js';
import type { SliceUse } from '../bounds/slice.js';
import type { Links } from './links.js';

/** A slice as a key. */
export function sliceKey({ ledgerId, eventId }: SliceName): string {
  return `${ledgerId} ${eventId}`;
}

/**
 * How a root grant stands after the last line, for the settlement of its slice: see `findUnclosed`. What is open is counted as it comes and
 * goes, from the first call on: many settlements do not read all that is open each. Over an index only after its actions were loaded.
 */
export function sliceUseOf({ links }: { readonly links: Links }, grant: Grant): SliceUse {
  const { withdrawal, accounts, index } = grant;
  return {
    isStopped: withdrawal?.effect === 'revoke' && withdrawal.stop !== undefined,
    openActions: links.actions.countUnder(index),
    openStarts: StartCounts.of(links).countUnder(index),
    used: new Map([...accounts].map(([unit, { used }]) => [unit, used])),
  };
}

const known = new WeakMap<Links['starts'], StartCounts>();

/** How many starts are open under each root grant. */
class StartCounts {
  readonly #links: Links;
  readonly #byRoot = new Map<number, number>();
  /** By the id of the authorization. */
  readonly #counted = new Map<string, { readonly root: number; readonly count: number }>();
  /** Authorizations whose starts changed since the last count. */
  readonly #changed: Set<string>;

  private constructor(links: Links) {
    this.#links = links;
    this.#changed = new Set(Array.from(links.starts, ([id]) => id));
    links.starts.watch((id) => {
      // What came and went since is not kept.
      if (this.#counted.has(id) || links.starts.has(id)) this.#changed.add(id);
      else this.#changed.delete(id);
    });
  }

  static of(links: Links): StartCounts {
    let counts = known.get(links.starts);
    if (counts === undefined) known.set(links.starts, (counts = new StartCounts(links)));
    return counts;
  }

  countUnder(root: number): number {
    for (const id of this.#changed) this.#recount(id);
    this.#changed.clear();
    return this.#byRoot.get(root) ?? 0;
  }

  #recount(id: string): void {
    const { actions, grants, starts } = this.#links;
    const before = this.#counted.get(id);
    const count = starts.get(id)?.size ?? 0;
    // An action that was executed is gone.
    const root = before?.root ?? (actions.get(id)?.grant ?? grants.get(id))?.rootIndex;
    if (root === undefined) return;
    this.#byRoot.set(root, (this.#byRoot.get(root) ?? 0) + count - (before?.count ?? 0));
    if (count === 0) this.#counted.delete(id);
    else this.#counted.set(id, { root, count });
  }
}
