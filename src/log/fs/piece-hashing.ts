/** Tasks and answers of hashing threads, which take pieces from a shared counter. */

import { PIECE_HASH_BYTES } from '../../base/bytes/ledger-piece.js';

/** The whole pieces at the beginning of a file. */
export interface PieceTask {
  /** MUST stay open until each thread has answered. */
  readonly fd: number;
  readonly pieces: number;
  /** The next piece, as a shared 32-bit counter. */
  readonly next: SharedArrayBuffer;
  readonly hashes: SharedArrayBuffer;
}

/** Whether the file was long enough; or the error of `node:fs`. */
export type PieceAnswer =
  | { readonly isWhole: boolean }
  | { readonly failure: { readonly message: string; readonly code: string | undefined } };

/** Each task has its own shared memory. */
export function makePieceTask(fd: number, pieces: number): PieceTask {
  const next = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  return { fd, pieces, next, hashes: new SharedArrayBuffer(pieces * PIECE_HASH_BYTES) };
}

/** The number of a piece, now the caller's; undefined when none is left. */
export function takePiece({ next, pieces }: PieceTask): number | undefined {
  const piece = Atomics.add(new Int32Array(next), 0, 1);
  return piece < pieces ? piece : undefined;
}

export function stopTaking({ next, pieces }: PieceTask): void {
  Atomics.store(new Int32Array(next), 0, pieces);
}

export function countTaken({ next }: PieceTask): number {
  return Atomics.load(new Int32Array(next), 0);
}

export function putHash({ hashes }: PieceTask, piece: number, hash: Uint8Array): void {
  new Uint8Array(hashes).set(hash, piece * PIECE_HASH_BYTES);
}
