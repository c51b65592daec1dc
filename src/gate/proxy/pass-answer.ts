/** An answer on its way to the client, at the pace of the slower side. By events: a promise for each chunk would cost as much as passing it. */

import type { ServerResponse } from 'node:http';
import type { Watch } from './observer.js';
import type { UpstreamAnswer } from './upstream.js';

export interface PassingOptions {
  /** How many bytes there will be; `Infinity` where nothing says so. */
  readonly expected: number;
  /** Sends the head of an answer that is held back. */
  readonly begin: () => void;
  /** Sends what completes the answer. */
  readonly finish: (last: Uint8Array | undefined) => void;
  /** Aborts when the answer is to break off. */
  readonly signal: AbortSignal;
  /** How long the client may take to read what waits for it. */
  readonly readTimeoutMs: number;
}

/** What a pass is rejected with when the client has not read in time. */
export const TOO_SLOW = new Error('the client reads too slowly');

/** Of an error that is held back until it is recorded. */
const MAX_HELD_ERROR_BYTES = 256 * 1024;

/** Chunks that are smaller on average go on as one: a copy of them costs less than what frames each. */
const MAX_JOINED_BYTES = 4 * 1024;

/**
 * Resolves when the observer has seen all. What completes the answer is sent at once where the observer sees it in the same turn, and is
 * returned otherwise. An error is held back as a whole, as a client may ask again when it sees the head of one.
 * @throws Error where the answer breaks off; {@link TOO_SLOW}
 */
export function passAnswer(
  response: ServerResponse,
  answer: UpstreamAnswer,
  watch: Watch,
  options: PassingOptions,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    new Pass(response, answer, watch, options, (error, last) =>
      error === undefined ? resolve(last) : reject(error),
    ).begin();
  });
}

class Pass {
  readonly #response: ServerResponse;
  readonly #answer: UpstreamAnswer;
  readonly #watch: Watch;
  readonly #options: PassingOptions;
  readonly #settle: (error: Error | undefined, last: Uint8Array | undefined) => void;
  /** What came and is not passed on: the chunks of one read of the connection, mostly. */
  #came: Buffer[] = [];
  #left: number;
  /** Is not sent before the observer has seen the end. */
  readonly #held: Buffer[] = [];
  #size = 0;
  /** The client or the observer is waited for. */
  #isWaiting = false;
  #hasEnded = false;
  #isOver = false;
  /** Runs from the last write that was not taken at once. */
  #reading: NodeJS.Timeout | undefined;

  constructor(
    response: ServerResponse,
    answer: UpstreamAnswer,
    watch: Watch,
    options: PassingOptions,
    settle: (error: Error | undefined, last: Uint8Array | undefined) => void,
  ) {
    this.#response = response;
    this.#answer = answer;
    this.#watch = watch;
    this.#options = options;
    this.#settle = settle;
    this.#left = options.expected;
  }

  begin(): void {
    const { message } = this.#answer;
    const { signal } = this.#options;
    // What breaks off closes after its error.
    message.on('error', () => undefined);
    message.on('data', this.#onData);
    message.on('end', this.#onEnd);
    message.on('close', this.#onClose);
    signal.addEventListener('abort', this.#leave);
    if (signal.aborted) this.#leave();
    else if (message.destroyed) this.#onClose();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (this.#came.push(chunk) === 1) process.nextTick(this.#flush);
  };

  readonly #onEnd = (): void => {
    this.#hasEnded = true;
    this.#flush();
  };

  readonly #onClose = (): void => {
    if (this.#hasEnded) return;
    // The client has what came.
    while (this.#came.length > 0) void this.#pass(this.#take());
    this.#end(new Error('the answer broke off'));
  };

  readonly #leave = (): void => this.#end(new Error('the client has gone'));

  readonly #flush = (): void => {
    while (this.#came.length > 0 && !this.#isWaiting && !this.#isOver) {
      if (this.#response.writableNeedDrain) {
        this.#pause();
        this.#response.once('drain', this.#resume);
        return;
      }
      const seen = this.#pass(this.#take());
      if (seen === undefined) continue;
      this.#pause();
      void seen.then(this.#resume);
    }
    if (!this.#hasEnded || this.#isWaiting) return;
    const isWhole = this.#answer.message.complete;
    this.#end(isWhole ? undefined : new Error('the answer broke off'));
  };

  #pause(): void {
    this.#isWaiting = true;
    this.#answer.wait(false);
    this.#answer.message.pause();
  }

  readonly #resume = (): void => {
    if (this.#isOver) return;
    this.#isWaiting = false;
    this.#answer.wait(true);
    this.#flush();
    if (!this.#isWaiting) this.#answer.message.resume();
  };

  #take(): Buffer {
    const came = this.#came;
    const [first = EMPTY] = came;
    const size = came.length === 1 ? first.length : came.reduce((sum, { length }) => sum + length, 0);
    if (came.length > 1 && size > came.length * MAX_JOINED_BYTES) {
      came.shift();
      return first;
    }
    this.#came = [];
    return came.length === 1 ? first : Buffer.concat(came, size);
  }

  /** Resolves when the observer can take more. */
  #pass(bytes: Buffer): undefined | Promise<void> {
    const response = this.#response;
    this.#answer.wait(true);
    this.#left -= bytes.length;
    this.#size += bytes.length;
    if (!response.headersSent) {
      this.#held.push(bytes);
      if (this.#size > MAX_HELD_ERROR_BYTES) {
        this.#options.begin();
        this.#write(Buffer.concat(this.#held.splice(0)));
      }
    } else if (this.#left > 0) this.#write(bytes);
    else if (this.#answer.message.complete && this.#watch.isPrompt) this.#options.finish(bytes);
    else this.#held.push(bytes);
    return this.#watch.chunk(bytes);
  }

  #write(bytes: Buffer): void {
    const isTaken = this.#response.write(bytes);
    // Node sends it when the observer has seen it. The first of an answer is waited for most.
    if (this.#size === bytes.length) this.#response.socket?.uncork();
    if (isTaken) return;
    this.#reading ??= setTimeout(this.#checkReading, this.#options.readTimeoutMs);
    this.#reading.refresh();
  }

  readonly #checkReading = (): void => {
    if (this.#response.writableNeedDrain) this.#end(TOO_SLOW);
  };

  #end(error: Error | undefined): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { message } = this.#answer;
    clearTimeout(this.#reading);
    this.#options.signal.removeEventListener('abort', this.#leave);
    message.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose);
    const [only] = this.#held;
    this.#settle(error, this.#held.length <= 1 ? only : Buffer.concat(this.#held));
  }
}

const EMPTY = Buffer.alloc(0);
