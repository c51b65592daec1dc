/**
 * Hashes large files in several threads, the caller's included: each takes the next whole piece (`base/bytes/ledger-prefix.ts`) until none
 * is left. A failed thread is an internal error, and says nothing of the file.
 */

import type { FileHandle } from 'node:fs/promises';
import { Worker } from 'node:worker_threads';
import { PIECE_BYTES } from '../../base/bytes/ledger-piece.js';
import { sha256 } from '../../base/bytes/sha256.js';
import { fromDist } from '../../base/dist.js';
import {
  countTaken,
  makePieceTask,
  type PieceAnswer,
  type PieceTask,
  putHash,
  stopTaking,
  takePiece,
} from './piece-hashing.js';

/** Starting a thread takes as long as hashing this much. */
const BYTES_PER_THREAD = 64 * 1024 * 1024;
/** A thread hangs if it took no piece for this long, in seconds. */
const PATIENCE_S = 120;
const PROGRAM = fromDist('log/fs/hashing-worker.js');

/** A hashing thread failed: an internal error. */
export class ThreadError extends Error {}

/** For tests. */
export interface HashingOptions {
  readonly bytesPerThread?: number;
  readonly program?: URL;
  readonly patience?: number;
}

interface Waiting {
  readonly resolve: (answer: PieceAnswer) => void;
  readonly reject: (error: Error) => void;
}

interface Member {
  readonly worker: Worker;
  waiting: Waiting | undefined;
}

/** Hashing threads; see the head of this file. */
export class HashingThreads {
  readonly #members: Member[];
  readonly #patience: number;
  #failure: ThreadError | undefined;

  /**
   * @param threads - The maximum, the caller's included
   * @param bytes - About how much will be hashed, which bounds the threads started
   */
  constructor(threads: number, bytes: number, options: HashingOptions = {}) {
    const { bytesPerThread = BYTES_PER_THREAD, program = PROGRAM, patience = PATIENCE_S } = options;
    this.#patience = patience;
    const count = Math.max(0, Math.min(threads, Math.floor(bytes / bytesPerThread)) - 1);
    this.#members = Array.from({ length: count }, () => this.#start(program));
  }

  /**
   * The concatenated hashes of whole pieces at the beginning of a file; undefined if it has fewer bytes.
   * @throws as `node:fs`; the signal's reason; {@link ThreadError}
   */
  async hash(
    file: FileHandle,
    pieces: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | undefined> {
    if (this.#failure !== undefined) throw this.#failure;
    if (pieces === 0) return new Uint8Array(0);
    const task = makePieceTask(file.fd, pieces);
    const clock = this.#watch(task);
    const answers = this.#members.map((member) => this.#ask(member, task));
    try {
      const isWhole = await hashPieces(task, file, signal);
      const others = await Promise.all(answers);
      return isWhole && others.every(isWholeBy) ? new Uint8Array(task.hashes) : undefined;
    } finally {
      // The file stays open while any thread reads it.
      stopTaking(task);
      await Promise.allSettled(answers);
      clearInterval(clock);
    }
  }

  async close(): Promise<void> {
    this.#failure ??= new ThreadError('the threads that hash were ended');
    await Promise.all(this.#members.map(({ worker }) => worker.terminate()));
  }

  #start(program: URL): Member {
    const member: Member = {
      worker: new Worker(program, { execArgv: [], stdin: false }),
      waiting: undefined,
    };
    member.worker.on('message', (answer: PieceAnswer) => {
      member.waiting?.resolve(answer);
      member.waiting = undefined;
    });
    member.worker.on('error', (cause) => this.#fail('a thread that hashes failed', cause));
    member.worker.on('exit', () => this.#fail('a thread that hashes ended', undefined));
    return member;
  }

  #ask(member: Member, task: PieceTask): Promise<PieceAnswer> {
    const answer = new Promise<PieceAnswer>((resolve, reject) => (member.waiting = { resolve, reject }));
    // Awaited after the caller's own part.
    answer.catch(() => undefined);
    member.worker.postMessage(task);
    return answer;
  }

  /** Counts ticks, not wall-clock time: a suspended process has not waited. */
  #watch(task: PieceTask): ReturnType<typeof setInterval> {
    let taken = 0;
    let silent = 0;
    return setInterval(() => {
      const now = countTaken(task);
      silent = now === taken ? silent + 1 : 0;
      taken = now;
      if (silent > this.#patience) this.#fail('a thread that hashes does not answer', undefined);
    }, 1_000);
  }

  #fail(message: string, cause: unknown): void {
    this.#failure ??= new ThreadError(message, { cause });
    for (const member of this.#members) {
      member.waiting?.reject(this.#failure);
      member.waiting = undefined;
    }
  }
}

function isWholeBy(answer: PieceAnswer): boolean {
  if ('isWhole' in answer) return answer.isWhole;
  const { message, code } = answer.failure;
  throw Object.assign(new Error(message), { code });
}

/** The caller's own part. @returns Whether the file has enough bytes */
async function hashPieces(
  task: PieceTask,
  file: FileHandle,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  // Each read wakes another thread, so fewer, larger reads are faster.
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  for (let piece = takePiece(task); piece !== undefined; piece = takePiece(task)) {
    for (let filled = 0; filled < PIECE_BYTES;) {
      signal?.throwIfAborted();
      const at = piece * PIECE_BYTES + filled;
      const { bytesRead } = await file.read(buffer, filled, PIECE_BYTES - filled, at);
      if (bytesRead === 0) return false;
      filled += bytesRead;
    }
    putHash(task, piece, sha256(buffer));
  }
  return true;
}
