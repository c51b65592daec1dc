/** Result lines, in order: each is written when it is known, and those that come while others are being written are written together. */

import type { Terminal } from './terminal.js';

/** See the head of this file. */
export class ResultLines {
  readonly #terminal: Terminal;
  #waiting: string[] = [];
  #writing: Promise<void> | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** @param line - With its `\n`. */
  add(line: string): void {
    this.#waiting.push(line);
    this.#writing ??= this.#writeAll();
  }

  /** Settles when the reader has all lines, or is gone. */
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
