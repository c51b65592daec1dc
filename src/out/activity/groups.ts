/** Records by what they have in common: a principal, a grant, a tool or a day. */

import { isPrincipalId } from '../../base/value/principal.js';
import { isTimestamp } from '../../base/value/timestamp.js';
import { isToolName } from '../../base/value/tool.js';
import type { ActivityGroup, ActivityTotals } from '../../format/schema/generated/types.js';
import type { SelectableEvent } from '../../rules/selection.js';
import { startSumBudget, Sums } from './sums.js';
import { Totals } from './totals.js';

/** What groups may have in common. */
export const ACTIVITY_GROUPINGS = ['principal', 'grant', 'tool', 'day'] as const;

export type ActivityGrouping = (typeof ACTIVITY_GROUPINGS)[number];

/** The most groups; later ones are summed together. */
export const MAX_GROUPS = 10_000;

const DAY_LENGTH = 'YYYY-MM-DD'.length;

interface Group {
  readonly totals: Totals;
  /** Of a grant: of all that is under those delegated from it. */
  delegated: Sums | undefined;
}

export class Groups {
  readonly by: ActivityGrouping;
  /** What came after {@link MAX_GROUPS}. */
  others: Totals | undefined;
  readonly #budget = startSumBudget();
  readonly #byKey = new Map<string | null, Group>();

  constructor(by: ActivityGrouping) {
    this.by = by;
  }

  totalsOf(event: SelectableEvent): Totals {
    const group = this.#groupOf(keyOf(this.by, event));
    return group === undefined ? (this.others ??= new Totals(this.#budget)) : group.totals;
  }

  /** The sums of the grants above the one that an event counts under; none of other groups. */
  sumsAbove({ grantIds }: SelectableEvent): Sums[] {
    if (this.by !== 'grant') return [];
    return grantIds.slice(1).flatMap((id) => {
      const group = this.#groupOf(id);
      return group === undefined ? [] : [(group.delegated ??= new Sums(this.#budget))];
    });
  }

  /**
   * By name; grants each before those delegated from it; and how many amounts are in no sum of a group.
   *
   * @param chainOf - A grant and those above it, nearest first.
   * @param seqOf - The seq of a grant.
   */
  toJson(
    chainOf: (grantId: string) => readonly string[],
    seqOf: (grantId: string) => number,
  ): { readonly groups: ActivityGroup[]; readonly others?: ActivityTotals; readonly leftOut: number } {
    const entries = [...this.#byKey];
    if (this.by === 'grant') {
      const paths = new Map(
        entries.map(([key]) => [key, key === null ? [Infinity] : [...chainOf(key)].reverse().map(seqOf)]),
      );
      entries.sort(([a], [b]) => comparePaths(paths.get(a) ?? [], paths.get(b) ?? []));
    } else {
      entries.sort(([a], [b]) => (a === null ? 1 : b === null ? -1 : a < b ? -1 : 1));
    }
    let leftOut = this.others?.sums.leftOut ?? 0;
    const groups = entries.map(([key, { totals, delegated }]) => {
      leftOut += totals.sums.leftOut + (delegated?.leftOut ?? 0);
      const group = { key, totals: totals.toJson() };
      if (delegated === undefined || delegated.isEmpty) return group;
      const both = totals.sums.with(delegated);
      leftOut += both.leftOut;
      return { ...group, with_delegated: both.list() };
    });
    return { groups, ...(this.others === undefined ? {} : { others: this.others.toJson() }), leftOut };
  }

  #groupOf(key: string | null): Group | undefined {
    const known = this.#byKey.get(key);
    if (known !== undefined || this.#byKey.size >= MAX_GROUPS) return known;
    const group = { totals: new Totals(this.#budget), delegated: undefined };
    this.#byKey.set(key, group);
    return group;
  }
}

/** Malformed names belong to no group. */
function keyOf(
  by: ActivityGrouping,
  { principalId, toolName, occurredAt, grantIds }: SelectableEvent,
): string | null {
  switch (by) {
    case 'principal':
      return principalId !== undefined && isPrincipalId(principalId) ? principalId : null;
    case 'grant':
      return grantIds[0] ?? null;
    case 'tool':
      return toolName !== undefined && isToolName(toolName) ? toolName : null;
    case 'day':
      return occurredAt !== undefined && isTimestamp(occurredAt) ? occurredAt.slice(0, DAY_LENGTH) : null;
  }
}

function comparePaths(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) {
    const difference = (a[i] as number) - (b[i] as number);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}
