/** What threads that hash pieces of a file are asked, what they answer, and which piece is whose: nobody hands pieces out. */

import { PIECE_HASH_BYTES } from '../../base/bytes/ledger-piece.js';

/** The whole pieces at the beginning of a file, to be shared by all who have this. */
export interface PieceTask {
  /** The file's descriptor: open until each thread has answered. */
  readonly fd: number;
  readonly pieces: number;
  /** The number of the first piece that nobody has taken: one number of 32 bits. */
  readonly next: SharedArrayBuffer;
  /** Where the hash of each goes. */
  readonly hashes: SharedArrayBuffer;
}

/** That all pieces that the thread took are hashed; that there are fewer bytes; or what `node:fs` said. */
export type PieceAnswer =
  | { readonly isWhole: boolean }
  | { readonly failure: { readonly message: string; readonly code: string | undefined } };

/** Each task has memory of its own, which is not used again. */
export function makePieceTask(fd: number, pieces: number): PieceTask {
  const next = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  return { fd, pieces, next, hashes: new SharedArrayBuffer(pieces * PIECE_HASH_BYTES) };
}

/** The number of a piece that is now the caller's; undefined where there are no more. */
export function takePiece({ next, pieces }: PieceTask): number | undefined {
  const piece = Atomics.add(new Int32Array(next), 0, 1);
  return piece < pieces ? piece : undefined;
}

/** Nobody takes a piece any more. */
export function stopTaking({ next, pieces }: PieceTask): void {
  Atomics.store(new Int32Array(next), 0, pieces);
}

/** How many pieces were taken, or more where there are no more. */
export function countTaken({ next }: PieceTask): number {
  return Atomics.load(new Int32Array(next), 0);
}

export function putHash({ hashes }: PieceTask, piece: number, hash: Uint8Array): void {
  new Uint8Array(hashes).set(hash, piece * PIECE_HASH_BYTES);
}
