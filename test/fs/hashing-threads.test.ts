/**
 * Pieces of a file hashed by several threads are what they are when one after the other is; and a thread that dies, hangs or fails is an
 * internal error, never a hash.
 */

import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { PIECE_BYTES } from '../../src/base/bytes/ledger-piece.js';
import { PrefixHasher, type LedgerPrefix } from '../../src/base/bytes/ledger-prefix.js';
import { HashingThreads, ThreadError, type HashingOptions } from '../../src/log/fs/hashing-threads.js';
import { openLedgerSource } from '../../src/log/fs/source.js';

const folder = mkdtempSync(join(tmpdir(), 'northroot-hashing-'));
const path = join(folder, 'file');
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  vi.useRealTimers();
});

/** Bytes that no two pieces have alike. */
const BYTES = Buffer.alloc(6 * PIECE_BYTES, 'a');
for (let at = 0; at < BYTES.length; at += 4096) BYTES.writeUInt32BE(at, at);

async function withFile<T>(bytes: Uint8Array, use: (file: FileHandle) => Promise<T>): Promise<T> {
  writeFileSync(path, bytes);
  const file = await open(path);
  try {
    return await use(file);
  } finally {
    await file.close();
  }
}

async function hash(
  file: FileHandle,
  pieces: number,
  threads: number,
  options: HashingOptions = {},
): Promise<Uint8Array | undefined> {
  const hashing = new HashingThreads(threads, threads, { bytesPerThread: 1, ...options });
  try {
    return await hashing.hash(file, pieces, undefined);
  } finally {
    await hashing.close();
  }
}

describe('the hashes of pieces', () => {
  test('are those of the bytes that they have, however many threads there are', async () => {
    const expected = [0, 1, 2, 3, 4, 5].map((piece) =>
      createHash('sha256')
        .update(BYTES.subarray(piece * PIECE_BYTES, (piece + 1) * PIECE_BYTES))
        .digest(),
    );
    await withFile(BYTES, async (file) => {
      for (const threads of [1, 2, 4]) {
        for (const pieces of [0, 1, 6]) {
          const hashes = await hash(file, pieces, threads);
          expect(Buffer.from(hashes ?? [])).toEqual(Buffer.concat(expected.slice(0, pieces)));
        }
      }
    });
  });

  test('are none where the file has fewer bytes', async () => {
    await withFile(BYTES.subarray(0, -1), async (file) => {
      for (const threads of [1, 3]) expect(await hash(file, 6, threads)).toBeUndefined();
    });
  });

  test('are given to a hasher in place of the bytes', () => {
    for (const length of [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 2 * PIECE_BYTES, 9_000_000]) {
      const bytes = Buffer.concat([BYTES.subarray(0, length), Buffer.from('\n')]);
      const plain = new PrefixHasher();
      plain.beginFile();
      for (let at = 0; at < bytes.length; at += 1_000_003) plain.update(bytes.subarray(at, at + 1_000_003));
      const whole = Math.floor(length / PIECE_BYTES);
      const hashes = Array.from({ length: whole }, (_, piece) =>
        createHash('sha256')
          .update(bytes.subarray(piece * PIECE_BYTES, (piece + 1) * PIECE_BYTES))
          .digest(),
      );
      const given = new PrefixHasher();
      given.beginFile();
      given.addPieces(Buffer.concat(hashes));
      expect(given.prefix()).toEqual(whole === 0 ? expect.anything() : undefined);
      given.update(bytes.subarray(whole * PIECE_BYTES));
      expect(given.prefix()).toEqual(plain.prefix());
      if (bytes.length % PIECE_BYTES !== 0)
        expect(() => given.addPieces(new Uint8Array(32))).toThrow(RangeError);
    }
  });
});

describe('a thread that', () => {
  const program = (code: string): URL =>
    new URL(
      `data:text/javascript,${encodeURIComponent(`import { parentPort } from 'node:worker_threads';${code}`)}`,
    );

  test.each([
    ['dies', `parentPort.on('message', () => process.exit(1));`],
    ['fails', `parentPort.on('message', () => { throw new Error('surprised'); });`],
    ['does not start', 'nonsense('],
  ])('%s ends the hashing, and all that comes', async (_, code) => {
    await withFile(BYTES, async (file) => {
      const hashing = new HashingThreads(2, 2, { bytesPerThread: 1, program: program(code) });
      await expect(hashing.hash(file, 6, undefined)).rejects.toThrow(ThreadError);
      await expect(hashing.hash(file, 6, undefined)).rejects.toThrow(ThreadError);
      await hashing.close();
    });
  });

  test('hangs is not waited for without end', async () => {
    await withFile(BYTES.subarray(0, PIECE_BYTES), async (file) => {
      vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
      const silent = program(`parentPort.on('message', () => {});`);
      const hashing = new HashingThreads(2, 2, { bytesPerThread: 1, program: silent, patience: 3 });
      const waiting = hashing.hash(file, 1, undefined);
      vi.advanceTimersByTime(6_000);
      await expect(waiting).rejects.toThrow(ThreadError);
      await hashing.close();
    });
  });

  test('cannot read says why', async () => {
    await withFile(BYTES, async (file) => {
      const failing = program(
        `parentPort.on('message', () => parentPort.postMessage({ failure: { message: 'EIO: i/o error', code: 'EIO' } }));`,
      );
      await expect(hash(file, 6, 2, { program: failing })).rejects.toMatchObject({ code: 'EIO' });
    });
  });
});

describe('a large file', () => {
  const SIZE = 130 * 1024 * 1024 + 5;
  const prefixOf = (bytes: Uint8Array): LedgerPrefix => {
    const hasher = new PrefixHasher();
    hasher.beginFile();
    hasher.update(bytes);
    return hasher.prefix() ?? expect.fail('no prefix');
  };

  test('is known again by any number of threads, and is not where one byte is another', async () => {
    const bytes = Buffer.alloc(SIZE, 'a\n');
    bytes[SIZE - 1] = 0x0a;
    const prefix = prefixOf(bytes);
    const isKnown = async (threads: number): Promise<boolean> => {
      const rest = await (await openLedgerSource(path)).readAfter?.(prefix, undefined, threads);
      expect(rest?.hasher.prefix()).toEqual(rest && prefix);
      await rest?.close();
      return rest !== undefined;
    };
    const before = process.platform === 'linux' ? readdirSync('/proc/self/fd').length : 0;
    writeFileSync(path, bytes);
    for (const threads of [1, 2, 3]) expect(await isKnown(threads)).toBe(true);
    for (const at of [0, PIECE_BYTES, SIZE >> 1, SIZE - 3 * PIECE_BYTES, SIZE - 2]) {
      const changed = Buffer.from(bytes);
      changed[at] ^= 1;
      writeFileSync(path, changed);
      for (const threads of [1, 2]) expect(await isKnown(threads)).toBe(false);
    }
    truncateSync(path, SIZE - 1);
    expect(await isKnown(2)).toBe(false);
    const stop = AbortSignal.abort(new Error('enough'));
    writeFileSync(path, bytes);
    await expect((await openLedgerSource(path)).readAfter?.(prefix, stop, 2)).rejects.toThrow('enough');
    if (process.platform === 'linux') expect(readdirSync('/proc/self/fd').length).toBe(before);
  });
});
