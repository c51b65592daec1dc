/** Work on one thing at a time, in the order in which it comes. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** Waits for earlier work on the same thing. */
  async take<T>(key: string, work: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const own = before.then(work, work);
    const settled = own.catch(() => undefined);
    this.#last.set(key, settled);
    try {
      return await own;
    } finally {
      if (this.#last.get(key) === settled) this.#last.delete(key);
    }
  }
}
