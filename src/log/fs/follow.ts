/**
 * A ledger read while others append to it, by polling: existing lines first, then each new one, until the reader stops. No lock is taken,
 * and nothing is missed.
 */

import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import { checkOptions, checkString } from '../../base/options.js';
import type { LedgerSource, Segment, SourceGrowth } from '../../rules/source/ledger-source.js';
import { followStore, isStoreUrl } from '../store/open-store.js';
import { orIoError, toIoError } from './io-error.js';
import { refuseOtherFiles } from './other-file.js';
import { openScratchFile } from './scratch-file.js';
import { assertUnmixed, SEGMENT_NAME } from './source.js';

export interface FollowOptions {
  /** Aborting ends `segments` without an error. */
  readonly signal: AbortSignal;
  /** Called once, when the existing lines were read. */
  readonly onCaughtUp?: (() => void) | undefined;
  /** Polling interval in milliseconds. Default 100. */
  readonly pollMs?: number | undefined;
  /** Ends with a whole line; the rest of an incomplete one is reported as growth. Default false. */
  readonly wholeLines?: boolean | undefined;
}

const CHUNK_BYTES = 256 * 1024;
const POLL_MS = 100;
const NEWLINE = 0x0a;
/** Enough to recognise other kinds of file. */
const HEAD_BYTES = 4096;

/**
 * Follows a ledger file or folder of segments, or a ledger at the URL of a database.
 * @throws NorthrootError when it cannot be opened (`FILE_NOT_FOUND`, `NOT_A_LEDGER`, …); while reading, `FILE_CHANGED` when it was
 *   truncated or replaced; TypeError, RangeError for a bad option
 */
export async function followLedger(path: string, options: FollowOptions): Promise<LedgerSource> {
  checkString('followLedger', 'the path', path);
  checkOptions('followLedger', options, {
    signal: 'signal',
    onCaughtUp: 'function',
    pollMs: 'number',
    wholeLines: 'boolean',
  });
  const { pollMs = POLL_MS } = options;
  if (!(pollMs > 0)) throw new RangeError('pollMs must be more than 0');
  if (isStoreUrl(path)) return followStore(path, options);
  const status = await orIoError(stat(path), path);
  if (status.isDirectory()) await assertUnmixed(path);
  // Opening a pipe that nobody writes to would block a thread forever.
  else if (!status.isFile())
    throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is neither a file nor a folder`);
  const reader = new Follower(path, options, pollMs);
  const segments = status.isDirectory() ? reader.folder() : reader.file();
  return {
    paths: [path],
    size: undefined,
    segments,
    findGrowth: () => Promise.resolve(reader.growth),
    openScratch: openScratchFile,
  };
}

class Follower {
  readonly #path: string;
  readonly #signal: AbortSignal;
  readonly #pollMs: number;
  readonly #wholeLines: boolean;
  /** Where reading ended, if more was there. */
  growth: SourceGrowth | undefined;
  /** Segments seen and not begun, last first; the folder is listed again only when it is empty. */
  #pending: string[] = [];
  #onCaughtUp: (() => void) | undefined;

  constructor(path: string, { signal, onCaughtUp, wholeLines = false }: FollowOptions, pollMs: number) {
    this.#path = path;
    this.#signal = signal;
    this.#pollMs = pollMs;
    this.#onCaughtUp = onCaughtUp;
    this.#wholeLines = wholeLines;
  }

  async *file(): AsyncGenerator<Segment, void, void> {
    // Another kind of file would be followed forever.
    for await (const chunk of refuseOtherFiles(readHead(this.#path), this.#path)) if (chunk.length > 0) break;
    const chunks = this.#read(this.#path, () => Promise.resolve(false));
    yield { file: this.#path, firstSeq: undefined, chunks };
  }

  async *folder(): AsyncGenerator<Segment, void, void> {
    let last = '';
    while (!this.#signal.aborted) {
      const next = await this.#nextSegment(last);
      if (next === undefined) {
        if (last === '') this.#tellCaughtUp();
        await this.#wait();
        continue;
      }
      last = next;
      this.#pending.pop();
      const file = join(this.#path, next);
      const isOver = async (): Promise<boolean> => (await this.#nextSegment(next)) !== undefined;
      yield { file, firstSeq: Number(next.slice(0, 20)), chunks: this.#read(file, isOver) };
    }
  }

  /** @param isOver - Whether nothing will be appended any more. */
  async *#read(path: string, isOver: () => Promise<boolean>): AsyncGenerator<Uint8Array, void, void> {
    const file = await orIoError(open(path, 'r'), path);
    try {
      // Overwritten by the next chunk.
      const buffer = Buffer.alloc(CHUNK_BYTES);
      let position = 0;
      let isLast = false;
      while (!this.#signal.aborted) {
        const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, position);
        // Reading may end after any chunk. A line that fills the buffer is longer than any record, and may be split.
        const whole = this.#wholeLines ? buffer.subarray(0, bytesRead).lastIndexOf(NEWLINE) + 1 : bytesRead;
        const taken = whole === 0 && bytesRead === CHUNK_BYTES ? bytesRead : whole;
        if (taken > 0) {
          position += taken;
          yield buffer.subarray(0, taken);
          continue;
        }
        await assertSame(file, path, position);
        if (isLast) return;
        // Read what was appended before the next segment was begun.
        isLast = await isOver();
        if (isLast) continue;
        this.#tellCaughtUp();
        await this.#wait();
      }
      if ((await file.stat()).size > position) this.growth = { file: path, byteOffset: position };
    } catch (error) {
      throw toIoError(error, 'read', path);
    } finally {
      await file.close();
    }
  }

  async #nextSegment(after: string): Promise<string | undefined> {
    if (this.#pending.length === 0) {
      const names = await orIoError(readdir(this.#path), this.#path);
      this.#pending = names
        .filter((name) => SEGMENT_NAME.test(name) && name > after)
        .sort()
        .reverse();
    }
    return this.#pending.at(-1);
  }

  #tellCaughtUp(): void {
    this.#onCaughtUp?.();
    this.#onCaughtUp = undefined;
  }

  async #wait(): Promise<void> {
    await sleep(this.#pollMs, undefined, { signal: this.#signal }).catch(() => undefined);
  }
}

async function* readHead(path: string): AsyncGenerator<Uint8Array, void, void> {
  const file = await orIoError(open(path, 'r'), path);
  try {
    const { buffer, bytesRead } = await orIoError(
      file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0),
      path,
    );
    yield buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

/** @throws NorthrootError `FILE_CHANGED` when the file was truncated or replaced */
async function assertSame(file: FileHandle, path: string, position: number): Promise<void> {
  const [open, named] = [await file.stat(), await stat(path)];
  if (open.size >= position && open.ino === named.ino && open.dev === named.dev) return;
  throw new NorthrootError(
    'FILE_CHANGED',
    `${printable(path)} was cut off or replaced while it was followed`,
    {
      hint: 'run the command again; if it happens again, find out what rewrites the file',
    },
  );
}
