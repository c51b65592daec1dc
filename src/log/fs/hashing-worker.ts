/** The program of a hashing thread; see `hashing-threads.ts`. */

import { createHash } from 'node:crypto';
import { readSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import { PIECE_BYTES } from '../../base/bytes/ledger-piece.js';
import { type PieceAnswer, type PieceTask, putHash, stopTaking, takePiece } from './piece-hashing.js';

/** Small enough to hash while it is in the cache. */
const CHUNK_BYTES = 256 * 1024;

const buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);

parentPort?.on('message', (task: PieceTask) => parentPort?.postMessage(hashPieces(task)));

function hashPieces(task: PieceTask): PieceAnswer {
  try {
    for (let piece = takePiece(task); piece !== undefined; piece = takePiece(task)) {
      const hash = createHash('sha256');
      const end = (piece + 1) * PIECE_BYTES;
      for (let at = end - PIECE_BYTES; at < end;) {
        const length = readSync(task.fd, buffer, 0, Math.min(CHUNK_BYTES, end - at), at);
        if (length === 0) return { isWhole: false };
        hash.update(buffer.subarray(0, length));
        at += length;
      }
      putHash(task, piece, hash.digest());
    }
    return { isWhole: true };
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return { failure: { message, code } };
  } finally {
    // One failure stops all threads.
    stopTaking(task);
  }
}
