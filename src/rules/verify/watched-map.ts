/** A map of a state that tells listeners which of its keys change, so that what is derived from it can follow without reading all of it. */

export class WatchedMap<V> extends Map<string, V> {
  readonly #listeners = new Set<(key: string) => void>();

  constructor() {
    super();
  }

  /**
   * Calls `listener` after each `set` and `delete`. It MUST NOT throw, nor change the map.
   *
   * @returns Ends that.
   */
  watch(listener: (key: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  override set(key: string, value: V): this {
    super.set(key, value);
    for (const listener of this.#listeners) listener(key);
    return this;
  }

  override delete(key: string): boolean {
    const was = super.delete(key);
    if (was) for (const listener of this.#listeners) listener(key);
    return was;
  }

  override clear(): void {
    for (const key of [...this.keys()]) this.delete(key);
  }
}
