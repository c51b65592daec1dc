/** Index entries in memory. */

import type { EntryChange, EntryRange, EntryStore } from '../../src/log/cache/entry-store.js';

export class MemoryEntries implements EntryStore {
  readonly #entries = new Map<string, string>();
  /** Undefined after a change of which keys there are. */
  #sorted: readonly string[] | undefined;

  get(key: string): string | undefined {
    return this.#entries.get(key);
  }

  has(keys: readonly string[]): Promise<boolean[]> {
    return Promise.resolve(keys.map((key) => this.#entries.has(key)));
  }

  async *list({
    prefix,
    from = prefix,
    limit = Infinity,
  }: EntryRange): AsyncGenerator<readonly [string, string]> {
    await Promise.resolve();
    const keys = (this.#sorted ??= [...this.#entries.keys()].sort());
    let at = firstFrom(keys, from > prefix ? from : prefix);
    for (let left = limit; left > 0 && keys[at]?.startsWith(prefix); left -= 1, at += 1) {
      const value = this.#entries.get(keys[at]);
      if (value !== undefined) yield [keys[at], value];
    }
  }

  write(changes: readonly EntryChange[]): Promise<void> {
    for (const { key, value } of changes) {
      if (this.#entries.has(key) !== (value !== undefined)) this.#sorted = undefined;
      if (value === undefined) this.#entries.delete(key);
      else this.#entries.set(key, value);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** Where the first key that is not below `from` stands. */
function firstFrom(keys: readonly string[], from: string): number {
  let [low, high] = [0, keys.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (keys[middle] < from) low = middle + 1;
    else high = middle;
  }
  return low;
}
