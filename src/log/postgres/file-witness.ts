/**
 * A witness in a file, on another disk or machine than the database. Each position is a line, written and synced under a lock; the last
 * whole line counts. A long file is replaced by one with its last line. An empty file is a witness that was told nothing yet; a missing one
 * is none: the disk may not be there.
 */

import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { SHA256, toDigestText, tryParseDigest } from '../../base/value/digest.js';
import { type FileSystem, nodeFileSystem, type OpenFile, placeFile } from '../fs/file-system.js';
import type { StoredEnd } from '../store/ledger-store.js';
import { BEFORE_FIRST, isSameEnd } from './head.js';
import type { PositionWitness } from './witness.js';

/** For the lock, in milliseconds: others hold it for one write. */
const LOCK_MS = 10_000;
/** What is read of a file's end: more than two lines. */
const TAIL_BYTES = 512;
/** A longer file is replaced. */
const MAX_BYTES = 1024 * 1024;

/** Keeps the acknowledged position of one ledger in PostgreSQL in a file, outside of the database: its writers share it. */
export class FileWitness implements PositionWitness {
  readonly path: string;
  readonly #fileSystem: FileSystem;
  #file: OpenFile | undefined;
  #queue: Promise<unknown> = Promise.resolve();

  constructor(path: string, options: { readonly fileSystem?: FileSystem } = {}) {
    this.path = path;
    this.#fileSystem = options.fileSystem ?? nodeFileSystem;
  }

  /** @throws NorthrootError `POSITION_MALFORMED`; as the file system does */
  read(): Promise<StoredEnd | undefined> {
    return this.#next(() => this.#read());
  }

  advance(from: StoredEnd | undefined, to: StoredEnd): Promise<boolean> {
    return this.#next(() => this.#advance(from, to));
  }

  hintToBegin(): string {
    return `see that its disk is there; where it is to begin now, make an empty file: touch ${printable(this.path)}`;
  }

  close(): Promise<void> {
    return this.#next(() => this.#close());
  }

  /** Several stores of one process may share it, and its descriptor. */
  #next<T>(act: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(act);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  async #read(): Promise<StoredEnd | undefined> {
    const file = await this.#open(false);
    return file && this.#last(file);
  }

  async #advance(from: StoredEnd | undefined, to: StoredEnd): Promise<boolean> {
    const file = await this.#openLocked(from === undefined);
    if (file === undefined) return false;
    try {
      if (!isSameEnd(from ?? BEFORE_FIRST, await this.#last(file))) return false;
      const size = await file.size();
      if (to.size === 0) {
        await this.#fileSystem.syncFolderOf(this.path);
        return true;
      }
      const text = `${JSON.stringify({ size: to.size, tip: toDigestText(to.tip) })}\n`;
      if (size > MAX_BYTES) {
        // Other writers may not come by the link.
        const path = await this.#fileSystem.followLinks(this.path);
        await placeFile(path, Buffer.from(text), { fileSystem: this.#fileSystem });
        await this.#fileSystem.syncFolderOf(path);
        return true;
      }
      // A torn line stays alone.
      const bytes = Buffer.from((await isTorn(file, size)) ? `\n${text}` : text);
      for (let done = 0; done < bytes.length;) done += await file.write(bytes.subarray(done));
      await file.datasync();
      if (size === 0) await this.#fileSystem.syncFolderOf(this.path);
      return true;
    } finally {
      await this.#unlock(file);
    }
  }

  async #close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.close();
  }

  /** Undefined if there is none, unless it is made. */
  async #open(makes: boolean): Promise<OpenFile | undefined> {
    const file = this.#file;
    if (file !== undefined && (await file.isInPlace())) return file;
    await this.#close();
    const kind = await this.#fileSystem.kindOf(this.path);
    if (kind === 'missing' && !makes) return undefined;
    if (kind !== 'missing' && kind !== 'file') throw malformed(this.path, 'no file');
    return (this.#file = await this.#fileSystem.open(this.path, makes ? 'create' : 'append'));
  }

  /** The file under its lock, which another may have replaced before. */
  async #openLocked(makes: boolean): Promise<OpenFile | undefined> {
    for (;;) {
      const file = await this.#open(makes);
      if (file === undefined) return undefined;
      await file.lock(LOCK_MS);
      if (await file.isInPlace()) return file;
      await this.#unlock(file);
    }
  }

  async #unlock(file: OpenFile): Promise<void> {
    if ((await file.unlock?.().catch(() => false)) === true) return;
    if (this.#file === file) this.#file = undefined;
    await file.close();
  }

  async #last(file: OpenFile): Promise<StoredEnd> {
    const size = await file.size();
    if (size === 0) return BEFORE_FIRST;
    const bytes = Buffer.alloc(Math.min(size, TAIL_BYTES));
    for (let done = 0; done < bytes.length;) {
      const count = await file.read(bytes.subarray(done), size - bytes.length + done);
      if (count === 0) break;
      done += count;
    }
    const texts = bytes.toString('latin1').split('\n').slice(0, -1);
    for (const text of texts.reverse()) {
      const end = parseEnd(text);
      if (end !== undefined) return end;
    }
    throw malformed(this.path, 'not the position of a ledger');
  }
}

function malformed(path: string, what: string): NorthrootError {
  return new NorthrootError('POSITION_MALFORMED', `${printable(path)} is ${what}`, {
    hint: 'keep the position in another file',
  });
}

async function isTorn(file: OpenFile, size: number): Promise<boolean> {
  if (size === 0) return false;
  const last = Buffer.alloc(1);
  await file.read(last, size - 1);
  return last[0] !== 0x0a;
}

function parseEnd(text: string): StoredEnd | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { size, tip } = (value ?? {}) as Record<string, unknown>;
  const digest = typeof tip === 'string' ? tryParseDigest(tip) : undefined;
  const isEnd = Number.isSafeInteger(size) && (size as number) > 0 && digest?.alg === SHA256;
  return isEnd ? { size: size as number, tip: digest.b64 } : undefined;
}
