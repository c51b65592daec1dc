/** Index entries in memory. */

import type { EntryChange, EntryRange, EntryStore } from '../../src/log/cache/entry-store.js';

export class MemoryEntries implements EntryStore {
  readonly #entries = new Map<string, string>();

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
    const keys = [...this.#entries.keys()].filter((key) => key.startsWith(prefix) && key >= from).sort();
    for (const key of keys.slice(0, limit)) yield [key, this.#entries.get(key) as string];
  }

  write(changes: readonly EntryChange[]): Promise<void> {
    for (const { key, value } of changes) {
      if (value === undefined) this.#entries.delete(key);
      else this.#entries.set(key, value);
    }
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
