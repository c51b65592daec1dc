/** A log of lines that is only added to. Nobody waits for it: what cannot be written is counted, and reported once. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { type FileSystem, nodeFileSystem, type OpenFile } from './file-system.js';

/** Of lines that wait to be written. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

export class LineLog {
  readonly #path: string;
  readonly #fileSystem: FileSystem;
  readonly #onProblem: (error: unknown) => void;
  #file: OpenFile | undefined;
  #waiting: string[] = [];
  #bytes = 0;
  #writing: Promise<void> | undefined;
  #lost = 0;

  /** @param onProblem - Called with the first failure of each row of failures */
  constructor(path: string, onProblem: (error: unknown) => void, fileSystem: FileSystem = nodeFileSystem) {
    this.#path = path;
    this.#onProblem = onProblem;
    this.#fileSystem = fileSystem;
  }

  /** Lines that were not written. */
  get lost(): number {
    return this.#lost;
  }

  /** Adds a line, without its line feed; it is written soon. */
  add(line: string): void {
    if (this.#bytes + line.length > MAX_WAITING_BYTES) {
      this.#lost += 1;
      return;
    }
    this.#waiting.push(`${line}\n`);
    this.#bytes += line.length;
    this.#writing ??= this.#write();
  }

  /** Resolves when all lines so far are written, or lost. */
  async flush(): Promise<void> {
    while (this.#writing !== undefined) await this.#writing;
  }

  async close(): Promise<void> {
    await this.flush();
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  async #write(): Promise<void> {
    try {
      while (this.#waiting.length > 0) {
        const lines = this.#waiting;
        this.#waiting = [];
        this.#bytes = 0;
        try {
          // A file that was moved away is made anew.
          if (this.#file !== undefined && !(await this.#file.isInPlace())) await this.#leave();
          this.#file ??= await this.#open();
          const bytes = encodeUtf8(lines.join(''));
          for (let done = 0; done < bytes.length;) done += await this.#file.write(bytes.subarray(done));
        } catch (error) {
          if (this.#lost === 0) this.#onProblem(error);
          this.#lost += lines.length;
          await this.#leave();
        }
      }
    } finally {
      this.#writing = undefined;
    }
  }

  async #open(): Promise<OpenFile> {
    const file = await this.#fileSystem.open(this.#path, 'create', 0o600);
    const size = await file.size();
    const last = new Uint8Array(1);
    // Of a line that a killed process left torn, the rest is not taken for the next one.
    if (size > 0 && (await file.read(last, size - 1)) === 1 && last[0] !== NEWLINE)
      await file.write(encodeUtf8('\n'));
    return file;
  }

  async #leave(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => undefined);
  }
}
