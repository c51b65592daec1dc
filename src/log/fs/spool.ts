/** Lines spilled to disk, in a nameless file. */

import { closeSync, mkdtempSync, openSync, readSync, rmdirSync, unlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { toIoError } from './io-error.js';

/** Characters per write. */
const BLOCK = 256 * 1024;

const NEWLINE = 0x0a;

/** Lines of text, written first and then read any number of times. MUST be closed. */
export class Spool {
  readonly #path: string;
  readonly #fd: number;
  #batch = '';
  #size = 0;

  /** @throws NorthrootError as files give it */
  constructor() {
    try {
      const folder = mkdtempSync(join(tmpdir(), 'northroot-'));
      this.#path = join(folder, 'spool');
      this.#fd = openSync(this.#path, 'wx+', 0o600);
      unlinkSync(this.#path);
      rmdirSync(folder);
    } catch (error) {
      throw toIoError(error, 'create', tmpdir());
    }
  }

  /** Adds a line, without its newline. Writes synchronously, which bounds memory for any caller. @throws NorthrootError as files give it */
  add(line: string): void {
    this.#batch += `${line}\n`;
    if (this.#batch.length >= BLOCK) this.#flush();
  }

  async *lines(): AsyncGenerator<string, void, void> {
    this.#flush();
    const buffer = Buffer.allocUnsafe(BLOCK);
    let carry: Buffer = Buffer.alloc(0);
    for (let position = 0; position < this.#size;) {
      const read = this.#attempt('read', () => readSync(this.#fd, buffer, 0, buffer.length, position));
      if (read === 0) return;
      position += read;
      const chunk = Buffer.concat([carry, buffer.subarray(0, read)]);
      const end = chunk.lastIndexOf(NEWLINE) + 1;
      carry = chunk.subarray(end);
      if (end > 0) yield* chunk.toString('utf8', 0, end - 1).split('\n');
      // Lets other tasks run, such as an abort.
      await Promise.resolve();
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  #flush(): void {
    const bytes = Buffer.from(this.#batch);
    this.#batch = '';
    for (let done = 0; done < bytes.length;) {
      done += this.#attempt('write', () => writeSync(this.#fd, bytes, done));
    }
    this.#size += bytes.length;
  }

  #attempt<T>(action: string, operation: () => T): T {
    try {
      return operation();
    } catch (error) {
      throw toIoError(error, action, this.#path);
    }
  }
}
