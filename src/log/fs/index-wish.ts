/**
 * How a process that waits for an index tells the one that keeps it open: a file in the index's folder, written anew while it waits. Who
 * keeps the index open compares the file with what it was at its opening, so that one left by a process that died says nothing, and no
 * clocks are compared.
 */

import { constants, statSync } from 'node:fs';
import { open, unlink } from 'node:fs/promises';
import { join } from 'node:path';

const NAME = 'WANTED';
/** How often a waiting process says so again, in milliseconds. */
const REPEAT_MS = 100;

/** The wish of a process that waits. */
export class IndexWish {
  readonly #path: string;
  #saidAt = -Infinity;

  constructor(folder: string) {
    this.#path = join(folder, NAME);
  }

  /** Says it, unless it was just said. Never rejects: the wait goes on without. */
  async say(): Promise<void> {
    const now = performance.now();
    if (now - this.#saidAt < REPEAT_MS) return;
    this.#saidAt = now;
    const { O_CREAT, O_WRONLY, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants;
    try {
      const file = await open(this.#path, O_CREAT | O_WRONLY | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600);
      try {
        await file.write(`${process.pid} ${now}\n`);
      } finally {
        await file.close();
      }
    } catch {
      // The index is closed for others from time to time all the same.
    }
  }

  /** Takes it back, if it was said. Others who wait say theirs again. */
  async end(): Promise<void> {
    if (this.#saidAt > -Infinity) await removeWish(this.#path);
  }
}

/** What the wish in a folder is now: another one after each process that says it. */
export function readWish(folder: string): string {
  try {
    const { ino, size, mtimeMs } = statSync(join(folder, NAME));
    return `${ino} ${size} ${mtimeMs}`;
  } catch {
    return '';
  }
}

/** Removes a wish that was left. */
export async function removeWishIn(folder: string): Promise<void> {
  await removeWish(join(folder, NAME));
}

async function removeWish(path: string): Promise<void> {
  await unlink(path).catch(() => undefined);
}
