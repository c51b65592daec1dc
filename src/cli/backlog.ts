/** Counts pending work, and waits for room. */

/** Only one caller at a time may wait. */
export class Backlog {
  #count = 0;
  #most = 0;
  #wake: (() => void) | undefined;

  /** Counts work until it settles; errors are handled by the work itself. */
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

  /** Settles when at most this much is pending. */
  async shrinkTo(most: number): Promise<void> {
    if (this.#count <= most) return;
    this.#most = most;
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
