/** Writes result lines in order; lines added during a write are batched. */

import type { Terminal } from './terminal.js';

export class ResultLines {
  readonly #terminal: Terminal;
  #waiting: string[] = [];
  #writing: Promise<void> | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** @param line - With `\n`. */
  add(line: string): void {
    this.#waiting.push(line);
    this.#writing ??= this.#writeAll();
  }

  /** Settles when all lines are written, or the reader is gone. */
  async written(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const text = this.#waiting.join('');
      this.#waiting = [];
      await this.#terminal.write(text);
    }
    this.#writing = undefined;
  }
}
