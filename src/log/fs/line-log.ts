/** A log of lines that is only added to. Nobody waits for it: what cannot be written is counted, and reported once. */

import type { FileSystem } from './file-system.js';
import { LineFile } from './line-file.js';

/** Of lines that wait to be written. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;

export class LineLog {
  readonly #file: LineFile;
  readonly #onProblem: (error: unknown) => void;
  #waiting: string[] = [];
  #bytes = 0;
  #writing: Promise<void> | undefined;
  #lost = 0;

  /** @param onProblem - Called with the first failure of each row of failures */
  constructor(path: string, onProblem: (error: unknown) => void, fileSystem?: FileSystem) {
    this.#file = new LineFile(path, fileSystem);
    this.#onProblem = onProblem;
  }

  get lost(): number {
    return this.#lost;
  }

  /** Adds a line, without its line feed; it is written soon. */
  add(line: string): void {
    if (this.#bytes + line.length > MAX_WAITING_BYTES) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(line);
    this.#bytes += line.length;
    this.#writing ??= this.#write();
  }

  /** Resolves when all lines so far are written, or lost. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    await this.#file.close();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const lines = this.#waiting;
        this.#waiting = [];
        this.#bytes = 0;
        try {
          await this.#file.append(lines);
        } catch (error) {
          if (this.#lost === 0) this.#onProblem(error);
          this.#lost += lines.length;
        }
      }
    } finally {
      this.#writing = undefined;
    }
  }
}
