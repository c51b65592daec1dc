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
  #isTorn = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(path: string, fileSystem: FileSystem = nodeFileSystem) {
    this.#path = path;
    this.#fileSystem = fileSystem;
  }

  /**
   * Appends lines. A line that a full disk or a crash cut off is ended first.
   * @param lines - Without `\n`
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
    const file = (this.#file ??= await this.#open());
    const text = lines.map((line) => `${line}\n`).join('');
    let rest = encodeUtf8(this.#isTorn ? `\n${text}` : text);
    while (rest.length > 0) {
      this.#isTorn = true;
      rest = rest.subarray(await file.write(rest));
    }
    this.#isTorn = false;
  }

  async #open(): Promise<OpenFile> {
    const file = await this.#fileSystem.open(this.#path, 'create', PERMISSIONS);
    const size = await file.size();
    const last = new Uint8Array(1);
    if (size > 0) await file.read(last, size - 1);
    this.#isTorn = size > 0 && last[0] !== NEWLINE;
    return file;
  }
}
