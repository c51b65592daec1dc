/**
 * The open actions of a state that have expired, in the order of its map, without reading all that have not: the next to expire are in a
 * heap, which follows the map.
 */

import { orderTimestamps } from '../../base/value/timestamp.js';
import type { Links } from '../../rules/verify/links.js';

/** With more new actions between two questions all of them are read again. */
const MAX_NEW = 100_000;
/** So many that are gone are kept. */
const FEW = 1_024;

const known = new WeakMap<Links['expiring'], ExpiryQueue>();

interface Entry {
  readonly id: string;
  readonly until: string;
  /** Its place among the keys of the map. An id comes once, so that this does not change. */
  readonly order: number;
}

/** The ids of the actions that have expired at `now`, as a walk through the map finds them. Its members MAY be removed meanwhile. */
export function listExpired(expiring: Links['expiring'], now: string): readonly string[] {
  let queue = known.get(expiring);
  if (queue === undefined) known.set(expiring, (queue = new ExpiryQueue(expiring)));
  return queue.list(now);
}

class ExpiryQueue {
  readonly #expiring: Links['expiring'];
  readonly #unwatch: () => void;
  #new: string[];
  #order = 0;
  /** A binary heap, the first to expire on top. */
  #heap: Entry[] = [];
  /** Those that had expired at some question, in order. */
  #late: Entry[] = [];

  constructor(expiring: Links['expiring']) {
    this.#expiring = expiring;
    this.#new = [...expiring.keys()];
    this.#unwatch = expiring.watch((id) => {
      if (!expiring.has(id)) return;
      this.#new.push(id);
      if (this.#new.length <= MAX_NEW) return;
      this.#unwatch();
      known.delete(expiring);
    });
  }

  list(now: string): readonly string[] {
    for (const id of this.#new) {
      const until = this.#expiring.get(id);
      // Most are begun before they are asked about.
      if (until !== undefined) this.#push({ id, until, order: this.#order++ });
    }
    this.#new = [];
    let hasMore = false;
    for (let top = this.#heap[0]; top !== undefined && isLate(top, now); top = this.#heap[0]) {
      this.#pop();
      if (!this.#isOpen(top)) continue;
      this.#late.push(top);
      hasMore = true;
    }
    if (hasMore) this.#late.sort((a, b) => a.order - b.order);
    if (this.#heap.length > FEW && this.#heap.length > 2 * this.#expiring.size) this.#dropGone();
    if (this.#late.length === 0) return NONE;
    this.#late = this.#late.filter((each) => this.#isOpen(each));
    return this.#late.filter((each) => isLate(each, now)).map(({ id }) => id);
  }

  #isOpen({ id, until }: Entry): boolean {
    return this.#expiring.get(id) === until;
  }

  #dropGone(): void {
    const open = this.#heap.filter((each) => this.#isOpen(each));
    this.#heap = [];
    for (const each of open) this.#push(each);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(entry);
    while (at > 0) {
      const above = (at - 1) >>> 1;
      const other = heap[above] as Entry;
      if (orderTimestamps(other.until, entry.until) <= 0) break;
      heap[at] = other;
      at = above;
    }
    heap[at] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const entry = heap.pop();
    if (entry === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      let below = 2 * at + 1;
      const [left, right] = [heap[below], heap[below + 1]];
      if (left === undefined) break;
      let least = left;
      if (right !== undefined && orderTimestamps(right.until, left.until) < 0) {
        least = right;
        below += 1;
      }
      if (orderTimestamps(entry.until, least.until) <= 0) break;
      heap[at] = least;
      at = below;
    }
    heap[at] = entry;
  }
}

const NONE: readonly string[] = [];

function isLate({ until }: Entry, now: string): boolean {
  return orderTimestamps(now, until) >= 0;
}
