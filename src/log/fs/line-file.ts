/** A file of lines that grows: each write is whole lines, after what others have appended. It is on no disk for certain. */

import { encodeUtf8 } from '../../base/bytes/text.js';
import { type FileSystem, nodeFileSystem, type OpenFile } from './file-system.js';

const NEWLINE = 0x0a;
/** Such a file is for its owner, as what it tells of is. */
const PERMISSIONS = 0o600;

/** Appends lines. Calls are written in order. */
export class LineFile {
  readonly #path: string;
  readonly #fileSystem: FileSystem;
  #file: OpenFile | undefined;
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string, fileSystem: FileSystem = nodeFileSystem) {
    this.#path = path;
    this.#fileSystem = fileSystem;
  }

  /**
   * Appends lines. A line that a full disk or a crash cut off is ended first.
   * @param lines - Without `\n`; none only opens the file
   * @throws NorthrootError `DISK_FULL`, `ACCESS_DENIED` and the like; later calls try again
   */
  append(lines: readonly string[]): Promise<void> {
    const done = this.#last.then(() => this.#write(lines));
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Waits for what is being written. */
  async close(): Promise<void> {
    await this.#last;
    await this.#file?.close();
    this.#file = undefined;
  }

  async #write(lines: readonly string[]): Promise<void> {
    try {
      // A file that was moved away is made anew.
      if (this.#file !== undefined && !(await this.#file.isInPlace())) await this.#leave();
      const file = (this.#file ??= await this.#open());
      await writeAll(file, lines.map((line) => `${line}\n`).join(''));
    } catch (error) {
      await this.#leave();
      throw error;
    }
  }

  async #open(): Promise<OpenFile> {
    const file = await this.#fileSystem.open(this.#path, 'create', PERMISSIONS);
    try {
      const size = await file.size();
      const last = new Uint8Array(1);
      if (size > 0 && (await file.read(last, size - 1)) === 1 && last[0] !== NEWLINE)
        await writeAll(file, '\n');
      return file;
    } catch (error) {
      await file.close().catch(() => undefined);
      throw error;
    }
  }

  async #leave(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close().catch(() => undefined);
  }
}

async function writeAll(file: OpenFile, text: string): Promise<void> {
  for (let rest = encodeUtf8(text); rest.length > 0;) rest = rest.subarray(await file.write(rest));
}
