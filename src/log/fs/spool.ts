/** Lines spilled to disk, in a nameless file. */

import type { ScratchFile } from '../../rules/source/scratch-file.js';
import { openScratchFile } from './scratch-file.js';

/** Characters per write, and bytes per read. */
const BLOCK = 256 * 1024;
const NEWLINE = 0x0a;

/** Lines of text, written first and then read any number of times. MUST be closed. @throws NorthrootError as files give it */
export class Spool {
  readonly #file: ScratchFile = openScratchFile();
  #batch = '';
  #size = 0;

  /** Adds a line, without its newline. Writes synchronously, which bounds memory for any caller. */
  add(line: string): void {
    this.#batch += `${line}\n`;
    if (this.#batch.length >= BLOCK) this.#flush();
  }

  async *lines(): AsyncGenerator<string, void, void> {
    this.#flush();
    let carry: Buffer = Buffer.alloc(0);
    for (let position = 0; position < this.#size;) {
      const block = Buffer.allocUnsafe(Math.min(BLOCK, this.#size - position));
      this.#file.read(block, position);
      position += block.length;
      const chunk = Buffer.concat([carry, block]);
      const end = chunk.lastIndexOf(NEWLINE) + 1;
      carry = chunk.subarray(end);
      if (end > 0) yield* chunk.toString('utf8', 0, end - 1).split('\n');
      // Lets other tasks run, such as an abort.
      await Promise.resolve();
    }
  }

  close(): void {
    this.#file.close();
  }

  #flush(): void {
    const bytes = Buffer.from(this.#batch);
    this.#batch = '';
    this.#file.append(bytes);
    this.#size += bytes.length;
  }
}
