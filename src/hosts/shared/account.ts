/** What became of all items, added up: the counts of a reading, and the verdict on its findings. */

import type { HostFinding, HostItem, HostReading, ItemFate } from './host.js';

/** How many items there were, by what became of them. They add up to `items`. */
export interface ItemCounts {
  readonly items: number;
  readonly mapped: number;
  readonly evidence: number;
  readonly repeated: number;
  readonly dropped: number;
}

export interface ItemAccount {
  readonly total: ItemCounts;
  readonly byFile: ReadonlyMap<string, ItemCounts>;
  /** Of dropped and repeated items, by reason. */
  readonly byReason: ReadonlyMap<string, number>;
}

/** Adds up what became of the items. */
export function accountFor(items: readonly HostItem[]): ItemAccount {
  const byFile = new Map<string, ItemCounts>();
  const byReason = new Map<string, number>();
  let total = NO_ITEMS;
  for (const { at, fate, reason } of items) {
    total = count(total, fate);
    byFile.set(at.file, count(byFile.get(at.file) ?? NO_ITEMS, fate));
    if (reason !== undefined) byReason.set(reason, (byReason.get(reason) ?? 0) + 1);
  }
  return { total, byFile, byReason };
}

/** What findings of a host amount to, as SPEC §8 has it for ledgers. */
export type HostVerdict = 'ok' | 'violation' | 'invalid' | 'undecided';

/** `undecided` where nothing of the host was in the files. */
export function verdictOf({ items, findings }: Pick<HostReading, 'items' | 'findings'>): HostVerdict {
  if (findings.some(isOf('invalid'))) return 'invalid';
  if (findings.some(isOf('violation'))) return 'violation';
  return items.every(({ fate }) => fate === 'dropped') ? 'undecided' : 'ok';
}

function isOf(wanted: HostFinding['class']): (finding: HostFinding) => boolean {
  return (finding) => finding.class === wanted && finding.severity === 'error';
}

export const NO_ITEMS: ItemCounts = { items: 0, mapped: 0, evidence: 0, repeated: 0, dropped: 0 };

function count(counts: ItemCounts, fate: ItemFate): ItemCounts {
  return { ...counts, items: counts.items + 1, [fate]: counts[fate] + 1 };
}
