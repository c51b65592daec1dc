/**
 * Signs events in other threads before their group: a signature does not depend on the event's place. Used only if many wait; what a thread
 * does not deliver in time, the writer signs, so no record depends on a thread.
 */

import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import { encodeBase64url } from '../../base/bytes/encoding.js';
import { fromDist } from '../../base/dist.js';
import { MAX_HEAD_BYTES, writeEventMessage } from '../../format/signature/event-signature.js';
import { type Signer, signingKeyOf } from '../../format/signature/signer.js';
import type { SigningResult, SigningTask } from './signing-worker.js';

/** Events per task; fewer are signed faster than transferred. */
const BATCH = 256;
/** A thread without an answer by then is abandoned. */
const MAX_WAIT_MS = 5_000;
const SIGNATURE_BYTES = 64;
const PROGRAM = fromDist('log/writer/signing-worker.js');

/** One thread keeps up with a writer. */
function defaultSigningThreads(): number {
  return availableParallelism() > 1 ? 1 : 0;
}

interface Batch {
  readonly events: readonly Uint8Array[];
  readonly settle: () => void;
}

export class SigningThreads {
  readonly #signer: Signer;
  readonly #threads: number;
  readonly #program: URL;
  readonly #maxWaitMs: number;
  /** Not yet transferred. */
  #waiting: Uint8Array[] = [];
  #workers: Worker[] | undefined;
  #online: Worker[] = [];
  /** After a failure no thread is used. */
  #isBroken = false;
  #nextId = 0;
  readonly #batches = new Map<number, Batch>();
  /** Per transferred event: resolves when it is signed, or will not be. */
  readonly #pending = new WeakMap<Uint8Array, Promise<void>>();
  readonly #signatures = new WeakMap<Uint8Array, string>();

  /** @param program - For tests, as `maxWaitMs` */
  constructor(signer: Signer, threads: number, program = PROGRAM, maxWaitMs = MAX_WAIT_MS) {
    this.#signer = signer;
    this.#threads = threads;
    this.#program = program;
    this.#maxWaitMs = maxWaitMs;
  }

  /** Undefined unless the signer holds its key in memory. */
  static of(signer: Signer | undefined, threads = defaultSigningThreads()): SigningThreads | undefined {
    if (signer === undefined || threads === 0 || signingKeyOf(signer) === undefined) return undefined;
    return new SigningThreads(signer, threads);
  }

  /** Announces an event by its canonical bytes, compared by identity. */
  expect(eventBytes: Uint8Array): void {
    if (this.#isBroken) return;
    this.#waiting.push(eventBytes);
    if (this.#waiting.length < BATCH) return;
    if (this.#workers === undefined) this.#start();
    // Until a thread runs, the writer signs faster.
    if (this.#online.length === 0) this.#waiting.shift();
    else this.#handOver(this.#waiting.splice(0));
  }

  /** Resolves when these are signed as far as they will be; untransferred ones will not be. */
  async ready(events: readonly Uint8Array[]): Promise<void> {
    const asked = new Set(events);
    this.#waiting = this.#waiting.filter((bytes) => !asked.has(bytes));
    const pending = new Set<Promise<void>>();
    for (const bytes of events) {
      const signed = this.#pending.get(bytes);
      if (signed !== undefined) pending.add(signed);
      this.#pending.delete(bytes);
    }
    if (pending.size === 0) return;
    const timer = setTimeout(() => this.#giveUp(), this.#maxWaitMs);
    await Promise.all(pending);
    clearTimeout(timer);
  }

  has(eventBytes: Uint8Array): boolean {
    return this.#signatures.has(eventBytes);
  }

  take(eventBytes: Uint8Array): string | undefined {
    return this.#signatures.get(eventBytes);
  }

  async close(): Promise<void> {
    const workers = this.#workers ?? [];
    this.#giveUp();
    await Promise.all(workers.map((worker) => worker.terminate()));
  }

  #start(): void {
    this.#workers = [];
    const workerData = signingKeyOf(this.#signer);
    for (let count = 0; count < this.#threads; count += 1) {
      const worker = new Worker(this.#program, { workerData, execArgv: [], stdin: false });
      worker.unref();
      worker.on('online', () => this.#online.push(worker));
      worker.on('message', (result: SigningResult) => this.#take(result));
      worker.on('error', () => this.#giveUp());
      worker.on('exit', () => this.#giveUp());
      this.#workers.push(worker);
    }
  }

  #handOver(events: readonly Uint8Array[]): void {
    const bytes = new Uint8Array(events.reduce((sum, { length }) => sum + MAX_HEAD_BYTES + length, 0));
    const ends: number[] = [];
    let end = 0;
    for (const event of events) {
      const message = writeEventMessage(event);
      bytes.set(message, end);
      end += message.length;
      ends.push(end);
    }
    const id = this.#nextId++;
    const signed = new Promise<void>((settle) => this.#batches.set(id, { events, settle }));
    for (const event of events) this.#pending.set(event, signed);
    const worker = this.#online[id % this.#online.length] as Worker;
    // The process MUST NOT end while it waits.
    worker.ref();
    const task: SigningTask = { id, bytes: bytes.buffer, ends };
    worker.postMessage(task, [bytes.buffer]);
  }

  #take({ id, signatures }: SigningResult): void {
    const batch = this.#batches.get(id);
    if (batch === undefined) return;
    const { events, settle } = batch;
    if (signatures.byteLength !== events.length * SIGNATURE_BYTES) {
      this.#giveUp();
      return;
    }
    this.#batches.delete(id);
    for (const [index, event] of events.entries()) {
      const one = new Uint8Array(signatures, index * SIGNATURE_BYTES, SIGNATURE_BYTES);
      this.#signatures.set(event, encodeBase64url(one));
    }
    if (this.#batches.size === 0) for (const worker of this.#online) worker.unref();
    settle();
  }

  /** The writer signs the rest. */
  #giveUp(): void {
    this.#isBroken = true;
    this.#waiting = [];
    for (const worker of this.#workers ?? []) {
      worker.unref();
      void worker.terminate();
    }
    for (const { settle } of this.#batches.values()) settle();
    this.#batches.clear();
  }
}
