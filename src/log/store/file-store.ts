/**
 * A ledger in files: one file, or a folder of segments of which the last is appended to (SPEC §4). The write lock is
 * flock(2) on a descriptor of its own (`log/fs/lock.ts`), unlocked or closed to release it. The ledger's files stay open, so that a
 * replaced path is noticed. One append:
 *
 *     open(PATH, O_RDWR|O_APPEND[|O_CREAT])    the descriptor to lock; a folder: open(PATH, O_RDONLY)
 *     flock(2), LOCK_EX                        by a helper that inherits the descriptor
 *     stat(PATH), fstat(fd)                    does the path still name this file? else again, or refused
 *     [folder: readdir, open the newest segment]
 *     pread …                                  from the last known line to the end
 *     [torn tail: open(FILE.torn-OFFSET.new, O_CREAT|O_EXCL), write, fdatasync, link, unlink, fsync(folder), ftruncate, fdatasync]
 *     [segment full or none: open(NEXT, O_CREAT|O_EXCL), fsync(folder)]
 *     fstat                                    append if: is the end the expected one?
 *     write(2)                                 all records, one call; more after a short write
 *     fdatasync(2)                             of a new file its folder, too
 *     fstat(fd), stat(PATH)                    does the path still name this file?
 *     flock(2), LOCK_UN, or close              releases the lock
 */

import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { printable } from '../../base/bytes/printable.js';
import { sha256Base64url } from '../../base/bytes/sha256.js';
import { NorthrootError } from '../../base/error.js';
import { LineSplitter, MAX_LINE_BYTES, type RawLine } from '../../format/record/line-splitter.js';
import { emptyRange, hashToBase64url, leafHash, rangeRoot } from '../../format/tree/compact-range.js';
import type { LedgerSource } from '../../rules/source/ledger-source.js';
import { type FileSystem, nodeFileSystem, type OpenFile } from '../fs/file-system.js';
import { openLedgerSource } from '../fs/source.js';
import {
  type AcquireOptions,
  conflict,
  type LedgerStore,
  type LinePlace,
  needsLock,
  type NextPlace,
  type SavedTail,
  type Stored,
  type StoredEnd,
  type StorePosition,
  type WriteLock,
} from './ledger-store.js';
import { NoLedgerError } from './no-ledger-error.js';
import { firstSeqOf, joinPath, listSegments, segmentName } from './segments.js';
import { saveTornTail } from './torn-tail.js';

export interface FileStoreOptions {
  /** Creates a missing ledger; a path that ends in `/` becomes a folder. */
  readonly create?: boolean;
  /** A segment of at least this size is followed by a new one. Default 64 MiB. */
  readonly segmentBytes?: number;
  readonly fileSystem?: FileSystem;
}

const DEFAULT_SEGMENT_BYTES = 64 * 1024 * 1024;
const MAX_ATTEMPTS = 10;
const CHUNK_BYTES = 1024 * 1024;
const MIN_CHUNK_BYTES = 64 * 1024;
const NEWLINE = 0x0a;
const START_BYTES = 64;
/** The polling interval of `waitForMore`, in milliseconds. */
const POLL_MS = 50;
/** A lock that is taken more often is unlocked by a helper that stays; one that is not is closed. */
const TURNS_AT_LEAST = 2;
const EMPTY_TIP = hashToBase64url(rangeRoot(emptyRange()));

interface KnownEnd {
  /** Undefined unless all was read. */
  readonly size: number | undefined;
  readonly tip: string;
  /** In bytes, without a torn tail. */
  readonly byteOffset: number;
  readonly line: number;
}

/** The store of a ledger in one file or in a folder of segments (SPEC §4), with one writer at a time by flock(2). */
export class FileStore implements LedgerStore {
  readonly name: string;
  readonly durability = 'local';
  readonly isFolder: boolean;
  readonly #fileSystem: FileSystem;
  readonly #create: boolean;
  readonly #segmentBytes: number;
  /** Whether opening creates the ledger. */
  readonly #isNew: boolean;
  /** Kept open to detect a replaced folder. */
  #folder: OpenFile | undefined;
  /** The earlier segments, in order; they are only read. */
  #earlier: string[] = [];
  /** The file appended to; undefined if a new segment is due. */
  #last: OpenFile | undefined;
  #lock: OpenFile | undefined;
  /** A descriptor that was unlocked, to be locked again. */
  #unlocked: OpenFile | undefined;
  #turns = 0;
  /** Whether the lock was held once: from then on the files MUST stay the same. */
  #isSettled = false;
  /** Under the current lock; undefined before anything was read or written. */
  #known: KnownEnd | undefined;
  #torn: { readonly offset: number } | undefined;
  /** Whether other writers may have left data in memory only. */
  #isUnsynced = true;
  #nextPath: string | undefined;
  /** The files' stamp at the last `stamp` call or own change. */
  #stamp: string | undefined;
  readonly #closed = new AbortController();

  private constructor(
    path: string,
    isFolder: boolean,
    isNew: boolean,
    { create = false, segmentBytes = DEFAULT_SEGMENT_BYTES, fileSystem = nodeFileSystem }: FileStoreOptions,
  ) {
    this.name = path;
    this.isFolder = isFolder;
    this.#isNew = isNew;
    this.#create = create;
    this.#segmentBytes = segmentBytes;
    this.#fileSystem = fileSystem;
  }

  /**
   * Opens a ledger's files. Missing files are created when the lock is acquired.
   * @throws NorthrootError `FILE_NOT_FOUND`, `NOT_A_LEDGER` (a device, a folder of other things), or as the file system does
   */
  static async open(path: string, options: FileStoreOptions = {}): Promise<FileStore> {
    const { fileSystem = nodeFileSystem, create = false } = options;
    const kind = await fileSystem.kindOf(path);
    if (kind === 'other')
      throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is neither a file nor a folder`);
    if (kind === 'missing' && !create)
      throw new NoLedgerError(path, (await fileSystem.kindOf(dirname(path))) === 'folder');
    const isFolder = kind === 'folder' || (kind === 'missing' && path.endsWith('/'));
    if (isFolder && kind === 'missing') await fileSystem.makeFolder(path);
    const store = new FileStore(path, isFolder, kind === 'missing', options);
    if (kind === 'missing') return store;
    try {
      await store.#openFiles();
      return store;
    } catch (error) {
      await store.close().catch(() => undefined);
      throw error;
    }
  }

  async *read(from?: StorePosition): AsyncGenerator<Stored, void, void> {
    const paths = this.#paths();
    const start = from !== undefined && from.size > 0 ? from : undefined;
    const at = start === undefined ? 0 : this.#indexOf(start, paths);
    if (start !== undefined && this.#isKnownEnd(start)) {
      if (this.#last !== undefined && (await this.#last.size()) === start.byteOffset) return;
    } else if (start !== undefined) {
      await this.#prove(start, paths[at] as string);
    }
    const end = { size: start?.size ?? 0, tip: start?.tip ?? EMPTY_TIP, byteOffset: 0, line: 1 };
    let torn: { readonly offset: number } | undefined;
    for (const [index, path] of paths.entries()) {
      if (index < at) continue;
      const isMidway = index === at && start !== undefined;
      [end.byteOffset, end.line] = isMidway ? [start.byteOffset, start.line] : [0, 1];
      const firstSeq = this.isFolder ? firstSeqOf(path) : undefined;
      if (!isMidway) yield { kind: 'file', file: path, firstSeq };
      const splitter = new LineSplitter({ offset: end.byteOffset, lines: end.line - 1 });
      for await (const chunk of this.#chunks(path, end.byteOffset)) {
        const tail = new LineTail(splitter.push(chunk));
        yield { kind: 'lines', file: path, firstSeq, lines: tail };
        if (tail.last === undefined) continue;
        const { offset, length, number } = tail.last;
        end.size += tail.count;
        end.tip = tail.leafHash();
        [end.byteOffset, end.line] = [offset + length + 1, number + 1];
      }
      const rest = splitter.finish();
      const isLast = index === paths.length - 1;
      torn = rest && { offset: rest.offset };
      if (rest === undefined) continue;
      yield {
        kind: 'torn',
        file: path,
        isLast,
        offset: rest.offset,
        start: Uint8Array.from(rest.bytes.subarray(0, START_BYTES)),
      };
    }
    if (this.#lock === undefined) return;
    this.#torn = torn;
    this.#known = end;
    if (end.size > (start?.size ?? 0)) this.#isUnsynced = true;
  }

  async readLine({ file: path, byteOffset, byteLength }: LinePlace): Promise<Uint8Array | undefined> {
    const start = Math.max(0, byteOffset - 1);
    const bytes = new Uint8Array(byteOffset - start + byteLength + 1);
    const isWhole = await this.#withFile(path, async (file) => {
      for (let done = 0; done < bytes.length;) {
        const count = await file.read(bytes.subarray(done), start + done);
        if (count === 0) return false;
        done += count;
      }
      return true;
    });
    if (!isWhole || (byteOffset > 0 && bytes[0] !== NEWLINE) || bytes.at(-1) !== NEWLINE) return undefined;
    return bytes.subarray(byteOffset - start, -1);
  }

  source(): Promise<LedgerSource> {
    return openLedgerSource(this.name);
  }

  async nextPlace(seq: number): Promise<NextPlace> {
    this.#assertLocked();
    const known = (this.#known ??= await this.#findEnd());
    const last = this.#last;
    if (this.isFolder && last !== undefined && (await last.size()) >= this.#segmentBytes) {
      await this.#checkStamp();
      // A new segment MUST NOT begin before all earlier ones are on disk.
      if (this.#isUnsynced) await last.datasync();
      this.#isUnsynced = false;
      this.#last = undefined;
      this.#earlier.push(last.path);
      this.#known = { ...known, byteOffset: 0, line: 1 };
      await last.close();
    }
    this.#nextPath = this.#last?.path ?? joinPath(this.name, segmentName(seq));
    const { byteOffset, line } = this.#known;
    return { file: this.#nextPath, byteOffset, line };
  }

  async appendIf(
    expected: StoredEnd,
    lines: readonly Uint8Array[],
    onWritten?: () => Promise<void>,
  ): Promise<void> {
    this.#assertLocked();
    const known = (this.#known ??= await this.#findEnd());
    const isSame = known.tip === expected.tip && (known.size ?? expected.size) === expected.size;
    if (!isSame) throw conflict(printable(this.name));
    const last = lines.at(-1);
    if (last === undefined) return;
    await this.#checkStamp();
    const file = await this.#fileForNext(expected.size);
    const before = await file.size();
    if (before !== known.byteOffset) {
      this.#known = undefined;
      throw conflict(printable(this.name));
    }
    const bytes = Buffer.concat(lines);
    let noted: Promise<void> | undefined;
    try {
      const written = await file.write(bytes);
      // A full disk may first show as a short write: writing the rest reports it.
      for (let done = written; done < bytes.length;) done += await file.write(bytes.subarray(done));
      // A sync takes long, and a process may be killed meanwhile.
      if (onWritten !== undefined) await this.#renewStamp();
      noted = onWritten?.();
      await Promise.all([file.datasync(), noted]);
      if (expected.size === 0) await this.#fileSystem.syncFolderOf(this.name);
      await this.#assertInPlace();
    } catch (error) {
      this.#known = undefined;
      await noted;
      await file.truncate(before).catch(() => undefined);
      throw error;
    }
    await this.#renewStamp();
    this.#isUnsynced = false;
    this.#known = {
      size: expected.size + lines.length,
      tip: hashToBase64url(leafHash(last.subarray(0, -1))),
      byteOffset: before + bytes.length,
      line: known.line + lines.length,
    };
  }

  async acquire({ timeoutMs, signal, onWait }: AcquireOptions): Promise<WriteLock> {
    if (this.#lock !== undefined) throw new TypeError('the store is acquired already');
    this.#turns += 1;
    for (let attempt = 1; ; attempt += 1) {
      const lock = this.#unlocked ?? (await this.#openLock(attempt < MAX_ATTEMPTS));
      this.#unlocked = undefined;
      if (lock === undefined) continue;
      try {
        await lock.lock(timeoutMs, signal, onWait);
        // The path may have been replaced between opening and locking.
        if (await lock.isInPlace()) {
          await this.#catchUpWithPath();
          this.#lock = lock;
          this.#known = undefined;
          this.#torn = undefined;
          return {
            release: () => this.#release(lock),
            isWanted: async () => (await lock.isLockWanted?.()) ?? false,
          };
        }
      } catch (error) {
        await lock.close().catch(() => undefined);
        throw error;
      }
      await lock.close();
      if (this.#isSettled) throw replaced(this.name);
      if (attempt === MAX_ATTEMPTS)
        throw new NorthrootError('FILE_CHANGED', `${printable(this.name)} is replaced again and again`, {
          hint: 'find out what moves the ledger while it is written',
        });
    }
  }

  async confirm(): Promise<void> {
    await this.#assertInPlace();
    if (!this.#isUnsynced || this.#last === undefined) return;
    // From here on this writer vouches for what is stored; a killed writer may have left it in memory only.
    await this.#last.datasync();
    if (this.#known?.size === 1) await this.#fileSystem.syncFolderOf(this.name);
    this.#isUnsynced = false;
  }

  async settleTornTail(): Promise<SavedTail | undefined> {
    this.#assertLocked();
    if (this.#torn === undefined || this.#last === undefined) return undefined;
    await this.#checkStamp();
    const saved = await saveTornTail(this.#fileSystem, this.#last, this.#torn.offset);
    this.#torn = undefined;
    await this.#renewStamp();
    return saved;
  }

  async waitForMore(from: StorePosition, signal?: AbortSignal): Promise<void> {
    const closed = this.#closed.signal;
    const either = signal === undefined ? closed : AbortSignal.any([closed, signal]);
    signal?.throwIfAborted();
    while (!closed.aborted && !(await this.#hasMore(from))) {
      await sleep(POLL_MS, undefined, { signal: either }).catch(() => undefined);
      signal?.throwIfAborted();
    }
  }

  async stamp(): Promise<string | undefined> {
    this.#stamp = await this.#makeStamp();
    return this.#stamp;
  }

  async ownStamp(): Promise<string | undefined> {
    await this.#checkStamp();
    return this.#stamp;
  }

  async discard(): Promise<void> {
    this.#assertLocked();
    if (!this.#isNew) return;
    const last = this.#last;
    if (last !== undefined && (await last.size()) === 0 && (await last.isInPlace()))
      await this.#fileSystem.remove(last.path);
    // Fails for a folder that is not empty, which stays.
    if (this.isFolder) await this.#fileSystem.removeFolder(this.name);
  }

  async close(): Promise<void> {
    this.#closed.abort();
    const files = [this.#last, this.#folder, this.#lock, this.#unlocked].filter((file) => file !== undefined);
    [this.#last, this.#folder, this.#lock, this.#unlocked] = [undefined, undefined, undefined, undefined];
    const results = await Promise.allSettled(files.map((file) => file.close()));
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  }

  #paths(): string[] {
    return this.#last === undefined ? this.#earlier : [...this.#earlier, this.#last.path];
  }

  /** Undefined if unknown: that fails no append. */
  async #makeStamp(): Promise<string | undefined> {
    const paths = this.#paths();
    try {
      const stamps = await Promise.all(paths.map((path) => this.#fileSystem.stampOf(path)));
      const text = stamps.map((stamp, index) => `${basename(paths[index] as string)}:${stamp}`).join('\n');
      return sha256Base64url(Buffer.from(text));
    } catch {
      return undefined;
    }
  }

  /** Detects changes by others before our own change. */
  async #checkStamp(): Promise<void> {
    if (this.#stamp !== undefined && (await this.#makeStamp()) !== this.#stamp) this.#stamp = undefined;
  }

  async #renewStamp(): Promise<void> {
    if (this.#stamp !== undefined) this.#stamp = await this.#makeStamp();
  }

  #assertLocked(): void {
    if (this.#lock === undefined) throw needsLock();
  }

  #indexOf({ file }: StorePosition, paths: readonly string[]): number {
    if (!this.isFolder) return 0;
    const at = paths.findIndex((path) => basename(path) === basename(file));
    if (at === -1) throw conflict(printable(this.name));
    return at;
  }

  /** Whether the current lock has already shown that the store ends here. */
  #isKnownEnd({ size, tip, byteOffset }: StorePosition): boolean {
    const known = this.#known;
    return known?.size === size && known.tip === tip && known.byteOffset === byteOffset;
  }

  /**
   * Checks the line before a position.
   * @throws NorthrootError `LEDGER_CONFLICT`; `FILE_CHANGED` for a truncated file
   */
  async #prove({ byteOffset, tip }: StorePosition, path: string): Promise<void> {
    await this.#withFile(path, async (file) => {
      if ((await file.size()) < byteOffset)
        throw new NorthrootError('FILE_CHANGED', `${printable(path)} was cut short by someone else`, {
          hint: 'let nothing else write to a ledger, and verify that it is still whole',
        });
      const { line } = await readLineBefore(file, byteOffset);
      const leaf = line === undefined ? await hashLongLineBefore(file, byteOffset) : leafHash(line);
      if (leaf === undefined || hashToBase64url(leaf) !== tip) throw conflict(printable(this.name));
    });
  }

  /** The end of the store, from its last line alone. */
  async #findEnd(): Promise<KnownEnd> {
    const last = this.#last;
    const byteOffset = (await last?.size()) ?? 0;
    const isEmpty = byteOffset === 0;
    const path = isEmpty ? this.#earlier.at(-1) : last?.path;
    if (path === undefined) return { size: 0, tip: EMPTY_TIP, byteOffset: 0, line: 1 };
    return this.#withFile(path, async (file) => {
      const { line, isTorn } = await readLineBefore(file, await file.size());
      if (line === undefined || isTorn) throw conflict(printable(this.name));
      const tip = hashToBase64url(leafHash(line));
      return { size: undefined, tip, byteOffset, line: 1 };
    });
  }

  async *#chunks(path: string, offset: number): AsyncGenerator<Uint8Array, void, void> {
    const isLast = path === this.#last?.path;
    const file = isLast ? (this.#last as OpenFile) : await this.#fileSystem.open(path, 'read');
    try {
      const length = Math.min(CHUNK_BYTES, Math.max(MIN_CHUNK_BYTES, (await file.size()) - offset));
      // Overwritten by the next chunk.
      const buffer = Buffer.allocUnsafe(length);
      for (let at = offset; ;) {
        const count = await file.read(buffer, at);
        if (count === 0) return;
        yield buffer.subarray(0, count);
        at += count;
      }
    } finally {
      if (!isLast) await file.close();
    }
  }

  async #withFile<T>(path: string, use: (file: OpenFile) => Promise<T>): Promise<T> {
    if (path === this.#last?.path) return use(this.#last);
    const file = await this.#fileSystem.open(path, 'read');
    try {
      return await use(file);
    } finally {
      await file.close();
    }
  }

  /** The file for the next record; creates a segment if due. */
  async #fileForNext(size: number): Promise<OpenFile> {
    const last = this.#last;
    if (last !== undefined) {
      // The creator of an empty segment may have been killed before its name was on disk.
      if (this.isFolder && (await last.size()) === 0) await this.#fileSystem.syncFolderOf(last.path);
      return last;
    }
    const path = this.#nextPath ?? joinPath(this.name, segmentName(size));
    const next = await this.#fileSystem.open(path, 'new');
    this.#last = next;
    await this.#fileSystem.syncFolderOf(path);
    return next;
  }

  /** Undefined if a missing ledger is to be created again. */
  async #openLock(mayRetry: boolean): Promise<OpenFile | undefined> {
    const isMade = this.#create && !this.#isSettled;
    const mode = this.isFolder ? 'read' : isMade ? 'create' : 'append';
    try {
      return await this.#fileSystem.open(this.name, mode);
    } catch (error) {
      // The path may vanish between looking and opening.
      const isGone = error instanceof NorthrootError && error.code === 'FILE_NOT_FOUND';
      if (isGone && this.#isSettled) throw replaced(this.name);
      if (!isGone || !isMade || !mayRetry) throw error;
      if (this.isFolder) await this.#fileSystem.makeFolder(this.name);
      return undefined;
    }
  }

  /** Under the lock: checks that it is the same ledger, and lists new segments. */
  async #catchUpWithPath(): Promise<void> {
    if (this.#isSettled) await this.#assertInPlace();
    else await this.#reopenMoved();
    if (this.isFolder) await this.#listSegments();
    this.#isSettled = true;
  }

  /** Before the first write, a replaced path means the new ledger. */
  async #reopenMoved(): Promise<void> {
    for (const file of [this.#last, this.#folder]) {
      if (file === undefined || (await file.isInPlace())) continue;
      [this.#last, this.#folder] = [undefined, undefined];
      await file.close();
    }
    if ((this.isFolder ? this.#folder : this.#last) === undefined) await this.#openFiles();
  }

  async #openFiles(): Promise<void> {
    if (!this.isFolder) this.#last = await this.#fileSystem.open(this.name, 'append');
    else {
      this.#folder = await this.#fileSystem.open(this.name, 'read');
      await this.#listSegments();
    }
  }

  async #listSegments(): Promise<void> {
    const paths = await listSegments(this.#fileSystem, this.name, this.#create);
    const newest = paths.pop();
    this.#earlier = paths;
    const last = this.#last;
    if (last?.path === newest) return;
    this.#last = undefined;
    await last?.close();
    if (newest !== undefined) this.#last = await this.#fileSystem.open(newest, 'append');
  }

  /** Records written to replaced files would be lost. */
  async #assertInPlace(): Promise<void> {
    for (const file of [this.#folder, this.#last])
      if (file !== undefined && !(await file.isInPlace())) throw replaced(file.path);
  }

  async #release(lock: OpenFile): Promise<void> {
    if (this.#lock !== lock) return;
    this.#lock = undefined;
    const mayStay = this.#turns > TURNS_AT_LEAST && (await lock.unlock?.().catch(() => false)) === true;
    if (mayStay && !this.#closed.signal.aborted) {
      this.#unlocked = lock;
      return;
    }
    // Whatever close(2) returns, the descriptor and its lock are gone.
    await lock.close().catch(() => undefined);
  }

  async #hasMore(from: StorePosition): Promise<boolean> {
    try {
      await this.#assertInPlace();
      const newest = this.isFolder
        ? (await listSegments(this.#fileSystem, this.name, true)).at(-1)
        : this.name;
      if (newest === undefined) return false;
      if (this.isFolder && (from.size === 0 || basename(newest) !== basename(from.file)))
        return await this.#withFile(newest, async (file) => (await file.size()) > 0);
      return await this.#withFile(newest, async (file) => (await file.size()) !== from.byteOffset);
    } catch {
      // The next read reports the error; a ledger still to be created is waited for.
      return this.#isSettled || this.#last !== undefined;
    }
  }
}

/** Iterates lines and copies the last one, whose bytes the splitter overwrites. */
class LineTail implements Iterable<RawLine> {
  count = 0;
  last: Pick<RawLine, 'offset' | 'length' | 'number' | 'longLeafHash'> | undefined;
  readonly #lines: Iterable<RawLine>;
  readonly #bytes = Buffer.allocUnsafe(MAX_LINE_BYTES);

  constructor(lines: Iterable<RawLine>) {
    this.#lines = lines;
  }

  *[Symbol.iterator](): Generator<RawLine, void, void> {
    for (const line of this.#lines) {
      this.count += 1;
      this.last = line;
      this.#bytes.set(line.bytes);
      yield line;
    }
  }

  leafHash(): string {
    const { longLeafHash, length = 0 } = this.last ?? {};
    return hashToBase64url(longLeafHash ?? leafHash(this.#bytes.subarray(0, length)));
  }
}

/** The whole line before an offset; undefined if there is none, or it is too long. */
async function readLineBefore(
  file: OpenFile,
  end: number,
): Promise<{ readonly line: Uint8Array | undefined; readonly isTorn: boolean }> {
  const start = Math.max(0, end - MAX_LINE_BYTES - 2);
  const bytes = Buffer.alloc(end - start);
  for (let done = 0; done < bytes.length;) {
    const count = await file.read(bytes.subarray(done), start + done);
    if (count === 0) return { line: undefined, isTorn: false };
    done += count;
  }
  if (bytes.at(-1) !== NEWLINE) return { line: undefined, isTorn: true };
  const before = bytes.lastIndexOf(NEWLINE, bytes.length - 2);
  const line = before === -1 && start > 0 ? undefined : bytes.subarray(before + 1, -1);
  return { line, isTorn: false };
}

/** The leaf hash of an overlong line before an offset. */
async function hashLongLineBefore(file: OpenFile, end: number): Promise<string | undefined> {
  const buffer = Buffer.alloc(CHUNK_BYTES);
  let start = end - 1;
  while (start > 0) {
    const from = Math.max(0, start - buffer.length);
    const count = await file.read(buffer.subarray(0, start - from), from);
    if (count !== start - from) return undefined;
    const at = buffer.subarray(0, count).lastIndexOf(NEWLINE);
    start = from + at + 1;
    if (at !== -1) break;
  }
  const splitter = new LineSplitter({ offset: start, lines: 0 });
  for (let at = start; at < end;) {
    const count = await file.read(buffer.subarray(0, Math.min(buffer.length, end - at)), at);
    if (count === 0) return undefined;
    for (const { longLeafHash } of splitter.push(buffer.subarray(0, count))) return longLeafHash;
    at += count;
  }
  return undefined;
}

function replaced(path: string): NorthrootError {
  return new NorthrootError('FILE_CHANGED', `${printable(path)} was replaced, renamed or removed`, {
    hint: 'find out what moves the ledger while it is written',
  });
}

function basename(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
