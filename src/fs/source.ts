/**
 * A ledger as chunks of bytes to verify or to read: a file, a folder of segments (SPEC §4), or a stream. Each byte is
 * read once, and a file that changes under the reader is noticed.
 */

import { open, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { NorthrootError } from '../error.js';
import { printable } from '../bytes/printable.js';
import { toIoError } from './io-error.js';
import { refuseOtherFiles } from './other-file.js';

/** One file of a ledger. */
export interface Segment {
  /** Its name in findings. */
  readonly file: string;
  /** The `seq` that its name promises, in a folder of segments. */
  readonly firstSeq: number | undefined;
  /** Its bytes in order; each chunk may be overwritten when the next is asked for. */
  readonly chunks: AsyncIterable<Uint8Array>;
}

/** What is wrong with a file that a ledger was read from, apart from the records in it. */
export interface SourceFault {
  readonly code: 'TILE_MISSING' | 'TILE_MISMATCH' | 'TILE_UNEXPECTED';
  readonly file: string;
  readonly expected: string;
  readonly actual: string;
}

/** A ledger to be read. */
export interface LedgerSource {
  /** The paths given, for the report. */
  readonly paths: readonly string[];
  /** Size in bytes when reading began, where known. */
  readonly size: number | undefined;
  readonly segments: AsyncIterable<Segment>;
  /** The signed note of the checkpoint that the ledger is published with, and its file: what is there must be what it states. */
  readonly published?: { readonly name: string; readonly note: Uint8Array };
  /** What else is wrong with the files, when `segments` was read to its end: the first of them, and how many there are. */
  readonly findFaults?: () => Promise<{ readonly faults: readonly SourceFault[]; readonly total: number }>;
}

/** What a segment's file is called: the `seq` of its first record in 20 digits (SPEC §4). */
export const SEGMENT_NAME = /^\d{20}\.jsonl$/;

const CHUNK_BYTES = 1024 * 1024;
const NEWLINE = 0x0a;

/**
 * A ledger file or folder.
 *
 * @throws NorthrootError when it cannot be opened: `FILE_NOT_FOUND`, `NOT_A_LEDGER` (a folder without segments, a
 *   device), …; while reading also `FILE_CHANGED`, and `NOT_A_LEDGER` for a key, a note, a proof or a binary file.
 */
export async function openLedgerSource(path: string): Promise<LedgerSource> {
  const status = await orIoError(stat(path), path);
  if (!status.isDirectory()) {
    const chunks = refuseOtherFiles(readChunks(path), path);
    const segment = { file: path, firstSeq: undefined, chunks };
    return { paths: [path], size: status.isFile() ? status.size : undefined, segments: iterate([segment]) };
  }
  const names = (await orIoError(readdir(path), path)).filter((name) => SEGMENT_NAME.test(name)).sort();
  if (names.length === 0) {
    throw new NorthrootError('NOT_A_LEDGER', `${printable(path)} is a folder without ledger segments`, {
      hint: 'segments are named by 20 digits and .jsonl; to verify a single file, name the file',
    });
  }
  let size = 0;
  const segments = [];
  for (const name of names) {
    const file = join(path, name);
    size += (await orIoError(stat(file), file)).size;
    segments.push({ file, firstSeq: Number(name.slice(0, 20)), chunks: readChunks(file) });
  }
  return { paths: [path], size, segments: iterate(segments) };
}

/** A ledger that is in memory. */
export function bytesSource(bytes: Uint8Array, name: string): LedgerSource {
  return { ...streamSource(iterate([bytes]), name), size: bytes.length };
}

/** A ledger that comes as a stream. */
export function streamSource(chunks: AsyncIterable<Uint8Array>, name: string): LedgerSource {
  return { paths: [name], size: undefined, segments: iterate([{ file: name, firstSeq: undefined, chunks }]) };
}

/**
 * The bytes that a file has when reading begins, and what a writer adds up to the end of a line begun by then. Reading
 * up to the end instead would never end beside a busy writer.
 */
async function* readChunks(path: string): AsyncGenerator<Uint8Array, void, void> {
  const file = await open(path, 'r').catch((error: unknown) => {
    throw toIoError(error, 'read', path);
  });
  try {
    const before = await file.stat();
    const buffer = Buffer.alloc(CHUNK_BYTES);
    let position = 0;
    let lastByte = NEWLINE;
    for (;;) {
      const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, before.isFile() ? position : null);
      if (bytesRead === 0) break;
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
    if (before.isFile() && (after.size < position || (!grew && after.mtimeMs !== before.mtimeMs))) {
      throw new NorthrootError('FILE_CHANGED', `${printable(path)} was changed while it was read`, {
        hint: 'run the command again; if it happens again, find out what rewrites the file',
      });
    }
  } catch (error) {
    throw toIoError(error, 'read', path);
  } finally {
    await file.close();
  }
}

async function orIoError<T>(result: Promise<T>, path: string): Promise<T> {
  return result.catch((error: unknown) => {
    throw toIoError(error, 'read', path);
  });
}

/** How many bytes of `bytes` belong to the line that they begin in the middle of. */
function lineEnd(bytes: Uint8Array): number {
  const newline = bytes.indexOf(NEWLINE);
  return newline === -1 ? bytes.length : newline + 1;
}

async function* iterate<T>(items: readonly T[]): AsyncGenerator<T, void, void> {
  for (const item of items) yield await Promise.resolve(item);
}
