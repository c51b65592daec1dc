/**
 * A ledger as chunks of bytes: a file, a folder of segments (SPEC §4), or a stream. Each byte is read once; a change during reading is
 * detected.
 */

import type { Stats } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { borrowScratch, giveBackScratch } from '../../base/bytes/lent-scratch.js';
import { type LedgerPrefix, PrefixHasher } from '../../base/bytes/ledger-prefix.js';
import { printable } from '../../base/bytes/printable.js';
import { NorthrootError } from '../../base/error.js';
import type { LedgerRest, LedgerSource, Segment, SourceGrowth } from '../../rules/source/ledger-source.js';
import { orIoError, toIoError } from './io-error.js';
import { refuseOtherFiles } from './other-file.js';
import { openScratchFile } from './scratch-file.js';

export interface SourceOptions {
  /**
   * How long an incomplete last line of a recently written file may stay unchanged before it counts as torn, in milliseconds. Default 250;
   * 0 does not wait.
   */
  readonly patienceMs?: number | undefined;
}

/** A segment's name: the `seq` of its first record in 20 digits (SPEC §4). */
export const SEGMENT_NAME = /^\d{20}\.jsonl$/;

const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;
const PATIENCE_MS = 250;
const POLL_MS = 10;
/** No writer is in the middle of a line in a file last written longer ago. */
const RECENT_MS = 5_000;
/** The rest of a line that is being written arrives within these bounds, or is not waited for. */
const MAX_WAIT_MS = 10_000;
const MAX_REST_BYTES = 1024 * 1024;

/**
 * Opens a ledger file or folder.
 * @throws NorthrootError `FILE_NOT_FOUND`, `NOT_A_LEDGER` (a folder without segments, a device), …; while reading also `FILE_CHANGED`, and
 *   `NOT_A_LEDGER` for a key, a note, a proof or a binary file
 */
export async function openLedgerSource(path: string, options: SourceOptions = {}): Promise<LedgerSource> {
  const { patienceMs = PATIENCE_MS } = options;
  if (!(patienceMs >= 0)) throw new RangeError('patienceMs must be at least 0');
  let growth: SourceGrowth | undefined;
  const read = (file: string, opened?: OpenedFile): AsyncGenerator<Uint8Array, void, void> =>
    readChunks(file, patienceMs, (byteOffset) => (growth ??= { file, byteOffset }), opened);
  const status = await orIoError(stat(path), path);
  if (!status.isDirectory()) {
    const segment = { file: path, firstSeq: undefined, chunks: refuseOtherFiles(read(path), path) };
    const size = status.isFile() ? status.size : undefined;
    const findGrowth = (): Promise<SourceGrowth | undefined> => Promise.resolve(growth);
    const readAfter: LedgerSource['readAfter'] = (prefix, signal) =>
      readBehind([segment], read, prefix, signal);
    return {
      ...{ paths: [path], size, segments: iterate([segment]), findGrowth, openScratch: openScratchFile },
      // A pipe is read once.
      ...(status.isFile() ? { readAfter } : {}),
    };
  }
  await assertUnmixed(path);
  const names = await listSegments(path);
  if (names.length === 0)
    throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is a folder without ledger segments`, {
      hint: 'segments are named by 20 digits and .jsonl; to verify a single file, name the file',
    });
  let size = 0;
  const segments: Segment[] = [];
  for (const name of names) {
    const file = join(path, name);
    const found = await orIoError(stat(file), file);
    // A pipe could be waited for without end; a folder is told of when it is read.
    if (!found.isFile() && !found.isDirectory())
      throw new NorthrootError('NOT_A_LEDGER', `${printable(file)} is no file`, {
        hint: 'the segments of a ledger are files',
      });
    size += found.size;
    segments.push({ file, firstSeq: Number(name.slice(0, 20)), chunks: read(file) });
  }
  const findGrowth = async (): Promise<SourceGrowth | undefined> => {
    const known = new Set(names);
    const next = (await listSegments(path)).find((name) => !known.has(name));
    return growth ?? (next === undefined ? undefined : { file: join(path, next), byteOffset: 0 });
  };
  const readAfter: LedgerSource['readAfter'] = (prefix, signal) => readBehind(segments, read, prefix, signal);
  return {
    paths: [path],
    size,
    segments: iterate(segments),
    findGrowth,
    readAfter,
    openScratch: openScratchFile,
  };
}

/** See `LedgerSource.readAfter`. @param read - Continues an open file */
async function readBehind(
  files: readonly Segment[],
  read: (file: string, opened: OpenedFile) => AsyncGenerator<Uint8Array, void, void>,
  prefix: LedgerPrefix,
  signal: AbortSignal | undefined,
): Promise<LedgerRest | undefined> {
  const hasher = new PrefixHasher();
  for (const [index, segment] of files.slice(0, prefix.files).entries()) {
    const isLast = index === prefix.files - 1;
    const opened = await openFile(segment.file);
    let isFound = false;
    try {
      hasher.beginFile();
      const isWhole = await hashFile(opened, isLast ? prefix.bytes : opened.before.size, hasher, signal);
      // The last file is checked when the rest was read.
      isFound = isWhole && (isLast ? hasher.prefix()?.hash === prefix.hash : await isUnchanged(opened));
    } catch (error) {
      signal?.throwIfAborted();
      throw toIoError(error, 'read', segment.file);
    } finally {
      if (!isLast || !isFound) await orIoError(opened.file.close(), segment.file);
    }
    if (!isFound) return undefined;
    if (!isLast) continue;
    const chunks = read(segment.file, opened);
    const close = async (): Promise<void> => {
      await chunks.return();
      // A generator that was not begun closes nothing.
      await opened.file.close();
    };
    return { hasher, close, segments: iterate([{ ...segment, chunks }, ...files.slice(index + 1)]) };
  }
  return undefined;
}

interface OpenedFile {
  readonly file: FileHandle;
  readonly before: Stats;
  /** Where reading continues, at the beginning of a line. */
  position: number;
}

async function openFile(path: string): Promise<OpenedFile> {
  const file = await orIoError(open(path, 'r'), path);
  try {
    return { file, before: await file.stat(), position: 0 };
  } catch (error) {
    await file.close();
    throw toIoError(error, 'read', path);
  }
}

/** Hashes the first `length` bytes of a file. @returns Whether it has as many */
async function hashFile(
  opened: OpenedFile,
  length: number,
  hasher: PrefixHasher,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { file, before } = opened;
  if (!before.isFile() || before.size < length) return false;
  // Overwritten by the next chunk.
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  while (opened.position < length) {
    signal?.throwIfAborted();
    const wanted = Math.min(CHUNK_BYTES, length - opened.position);
    const { bytesRead } = await file.read(buffer, 0, wanted, opened.position);
    if (bytesRead === 0) return false;
    hasher.update(buffer.subarray(0, bytesRead));
    opened.position += bytesRead;
  }
  return true;
}

async function isUnchanged({ file, before }: OpenedFile): Promise<boolean> {
  const after = await file.stat();
  return after.size === before.size && after.mtimeMs === before.mtimeMs;
}

async function listSegments(folder: string): Promise<string[]> {
  const names = await orIoError(readdir(folder), folder);
  return names.filter((name) => SEGMENT_NAME.test(name)).sort();
}

/** Whether a folder has both segments and a tile tree, which is ambiguous. */
export function isMixed(names: readonly string[]): boolean {
  const hasTree = names.includes('checkpoint') && names.includes('tile');
  return hasTree && names.some((name) => SEGMENT_NAME.test(name));
}

export function mixedFolder(path: string): NorthrootError {
  return new NorthrootError('NOT_A_LEDGER', `${printable(path)} has both ledger segments and a tile tree`, {
    hint: 'move one of them to a folder of its own',
  });
}

/** @throws NorthrootError `NOT_A_LEDGER` for a folder with both; as {@link toIoError} */
export async function assertUnmixed(folder: string): Promise<void> {
  if (isMixed(await orIoError(readdir(folder), folder))) throw mixedFolder(folder);
}

/** A ledger read from a stream, once. @param name - Its name in findings. */
export function streamSource(chunks: AsyncIterable<Uint8Array>, name: string): LedgerSource {
  const segments = iterate([{ file: name, firstSeq: undefined, chunks }]);
  return { paths: [name], size: undefined, segments, openScratch: openScratchFile };
}

/**
 * The bytes of a file at opening, plus the rest of a line begun by then. Reading to the end would never end beside a busy writer.
 * @param onGrowth - Called with the first unread byte's offset, if there is more
 * @param opened - A file to continue; it is closed at the end
 */
async function* readChunks(
  path: string,
  patienceMs: number,
  onGrowth: (byteOffset: number) => void,
  opened?: OpenedFile,
): AsyncGenerator<Uint8Array, void, void> {
  const { file, before, position: start } = opened ?? (await openFile(path));
  // Overwritten by the next chunk.
  const buffer = borrowScratch(before.isFile() ? Math.min(CHUNK_BYTES, before.size + 1) : CHUNK_BYTES);
  try {
    let position = start;
    let lastByte = NEWLINE;
    const deadline = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, before.isFile() ? position : null);
      if (bytesRead === 0) {
        if (!before.isFile() || lastByte === NEWLINE || position >= before.size + MAX_REST_BYTES) break;
        // A reader may see part of a write(2): the rest follows at once, unless the writer is gone.
        if (await grows(file, position, Math.min(performance.now() + patienceMs, deadline))) continue;
        break;
      }
      let taken = bytesRead;
      if (before.isFile() && position + bytesRead > before.size) {
        const own = Math.max(0, before.size - position);
        if (own > 0) lastByte = buffer[own - 1] as number;
        taken = lastByte === NEWLINE ? own : own + lineEnd(buffer.subarray(own, bytesRead));
      }
      if (taken === 0) break;
      position += taken;
      lastByte = buffer[taken - 1] as number;
      yield buffer.subarray(0, taken);
      if (taken < bytesRead) break;
    }
    const after = await file.stat();
    const grew = after.size > before.size;
    if (before.isFile() && (after.size < position || (!grew && after.mtimeMs !== before.mtimeMs)))
      throw new NorthrootError('FILE_CHANGED', `${printable(path)} was changed while it was read`, {
        hint: 'run the command again; if it happens again, find out what rewrites the file',
      });
    if (before.isFile() && after.size > position) onGrowth(position);
    // Only who asked for more is done with the last chunk: who ended early may still look at it.
    giveBackScratch(buffer);
  } catch (error) {
    throw toIoError(error, 'read', path);
  } finally {
    await orIoError(file.close(), path);
  }
}

/** Whether a file grows beyond `position` before `deadline`. */
async function grows(file: FileHandle, position: number, deadline: number): Promise<boolean> {
  for (;;) {
    const { size, mtimeMs } = await file.stat();
    if (size !== position) return size > position;
    if (performance.now() >= deadline || Date.now() - mtimeMs > RECENT_MS) return false;
    await sleep(POLL_MS);
  }
}

/** The length of the rest of a line. */
function lineEnd(bytes: Uint8Array): number {
  const newline = bytes.indexOf(NEWLINE);
  return newline === -1 ? bytes.length : newline + 1;
}

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T, void, void> {
  for (const item of items) yield await Promise.resolve(item);
}
