/** What a command has under way while it reads on: how much, and when there is room for more. */

/** See the head of this file. One at a time waits. */
export class Backlog {
  #count = 0;
  #most = 0;
  #wake: (() => void) | undefined;

  /** Something is under way, until it settles; what it fails with is its own to tell. */
  add(work: Promise<void>): void {
    this.#count += 1;
    const end = (): void => {
      this.#count -= 1;
      if (this.#count > this.#most) return;
      this.#wake?.();
      this.#wake = undefined;
    };
    work.then(end, end);
  }

  get size(): number {
    return this.#count;
  }

  /** Settles when at most so much is under way. */
  async shrinkTo(most: number): Promise<void> {
    if (this.#count <= most) return;
    this.#most = most;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
