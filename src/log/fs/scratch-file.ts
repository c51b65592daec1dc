/** A nameless temporary file: its content is gone when it is closed, or the process ends. */

import {
  closeSync,
  fstatSync,
  mkdtempSync,
  openSync,
  readSync,
  rmdirSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { ScratchFile } from '../../rules/source/scratch-file.js';
import { toIoError } from './io-error.js';

/** Frees the disk space of a file that was never closed. */
const forgotten = new FinalizationRegistry((fd: number) => closeSync(fd));

class TemporaryFile implements ScratchFile {
  readonly #path: string;
  /** -1 once closed. */
  #fd: number;
  #size = 0;

  constructor() {
    const folder = tmpdir();
    try {
      const own = mkdtempSync(join(folder, 'northroot-'));
      this.#path = join(own, 'scratch');
      try {
        this.#fd = openSync(this.#path, 'wx+', 0o600);
        unlinkSync(this.#path);
      } finally {
        rmdirSync(own);
      }
    } catch (error) {
      throw toIoError(error, 'create a temporary file in', folder);
    }
    forgotten.register(this, this.#fd, this);
  }

  append(bytes: Uint8Array): void {
    for (let done = 0; done < bytes.length;)
      done += this.#attempt('write', () =>
        writeSync(this.#fd, bytes, done, bytes.length - done, this.#size + done),
      );
    this.#size += bytes.length;
  }

  read(target: Uint8Array, position: number): void {
    for (let done = 0; done < target.length;) {
      const count = this.#attempt('read', () =>
        readSync(this.#fd, target, done, target.length - done, position + done),
      );
      if (count === 0) throw this.#truncated();
      done += count;
    }
  }

  close(): void {
    if (this.#fd === -1) return;
    forgotten.unregister(this);
    closeSync(this.#fd);
    this.#fd = -1;
  }

  #truncated(): NorthrootError {
    const { size } = fstatSync(this.#fd);
    return new NorthrootError(
      'IO_FAILED',
      `cannot read ${printable(this.#path)}: it has ${size} bytes, and ${this.#size} were written`,
      { hint: 'check the disk that temporary files are on (TMPDIR names another)' },
    );
  }

  #attempt<T>(action: string, operation: () => T): T {
    try {
      return operation();
    } catch (error) {
      throw toIoError(error, action, this.#path);
    }
  }
}

/** Makes a temporary file in TMPDIR, readable by its owner only. @throws NorthrootError as files give it */
export function openScratchFile(): ScratchFile {
  return new TemporaryFile();
}
