/**
 * Entries in a LevelDB folder. LevelDB admits one process at a time, so it is open only while used; others wait. LevelDB does not verify
 * what it reads, so each entry carries a checksum of its key and value.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { Level } from 'level';
import {
  DamagedEntry,
  type EntryChange,
  type EntryRange,
  type EntryStore,
  IndexFault,
} from './entry-store.js';
import { IndexWish, removeWishIn } from '../fs/index-wish.js';

/** A CRC-32 in base 36: against damage, not forgery. */
const CHECK_LENGTH = 7;

const RETRY_MS = 5;

class LevelEntries implements EntryStore {
  readonly #level: Level;

  constructor(level: Level) {
    this.#level = level;
  }

  get(key: string): string | undefined {
    let text: string | undefined;
    try {
      text = this.#level.getSync(key);
    } catch (cause) {
      throw unreadable(cause);
    }
    return text === undefined ? undefined : unwrap(key, text);
  }

  async has(keys: readonly string[]): Promise<readonly boolean[]> {
    try {
      return await this.#level.hasMany([...keys]);
    } catch (cause) {
      throw unreadable(cause);
    }
  }

  async *list({ prefix, from = prefix, limit }: EntryRange): AsyncGenerator<readonly [string, string]> {
    const range = { gte: from, lt: `${prefix}\u007f`, ...(limit === undefined ? {} : { limit }) };
    const entries = this.#level.iterator(range);
    try {
      for (;;) {
        const batch = await entries.nextv(256);
        if (batch.length === 0) return;
        for (const [key, text] of batch) yield [key, unwrap(key, text)];
      }
    } finally {
      await entries.close();
    }
  }

  async write(changes: readonly EntryChange[]): Promise<void> {
    const batch = this.#level.batch();
    try {
      for (const { key, value } of changes) {
        if (value === undefined) batch.del(key);
        else batch.put(key, checkOf(key, value) + value);
      }
      await batch.write();
    } finally {
      await batch.close();
    }
  }

  async close(): Promise<void> {
    await this.#level.close();
  }
}

/**
 * Opens the folder of an index.
 * @param waitMs - How long to wait for another process, in milliseconds
 * @returns undefined if another process keeps it open, and where LevelDB does not run
 * @throws IndexFault if it is damaged, or no such folder
 */
export async function openLevelEntries(folder: string, waitMs: number): Promise<EntryStore | undefined> {
  const Level = await loadLevel();
  if (Level === undefined) return undefined;
  const deadline = performance.now() + waitMs;
  const wish = new IndexWish(folder);
  for (;;) {
    // Digests hardly compress.
    const level = new Level(folder, { createIfMissing: true, compression: false });
    try {
      await level.open();
      await wish.end();
      return new LevelEntries(level);
    } catch (error) {
      await level.close().catch(() => undefined);
      const { cause } = error as { readonly cause?: { readonly code?: string } };
      if (cause?.code !== 'LEVEL_LOCKED') throw new IndexFault('it cannot be opened', { cause: error });
      if (performance.now() >= deadline) {
        await wish.end();
        return undefined;
      }
      await wish.say();
      await sleep(RETRY_MS);
    }
  }
}

/** LevelDB is native code, and is missing on platforms without a binary. Few commands need it. */
async function loadLevel(): Promise<typeof Level | undefined> {
  try {
    return (await import('level')).Level;
  } catch {
    return undefined;
  }
}

function unreadable(cause: unknown): IndexFault {
  return new IndexFault('it cannot be read', { cause });
}

function unwrap(key: string, text: string): string {
  const value = text.slice(CHECK_LENGTH);
  if (checkOf(key, value) !== text.slice(0, CHECK_LENGTH)) throw new DamagedEntry(text);
  return value;
}

function checkOf(key: string, value: string): string {
  return crc32(key + value)
    .toString(36)
    .padStart(CHECK_LENGTH, '0');
}

/** Removes LevelDB's files from a folder, and the folder if it is then empty. @throws as the file system does */
export async function destroyLevelEntries(folder: string): Promise<void> {
  const Level = await loadLevel();
  await removeWishIn(folder);
  // Its types declare the browser class.
  await (Level as unknown as undefined | { destroy(location: string): Promise<void> })?.destroy(folder);
}
