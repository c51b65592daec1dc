/** The body of a server's answer: decompressed where the server compressed it though it was not to, and read at the client's pace. */

import type { Readable, Transform } from 'node:stream';
import { pipeline } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { concatBytes } from '../../base/bytes/concat.js';
import { endToEnd } from '../proxy/headers.js';
import type { UpstreamAnswer } from '../proxy/upstream.js';

/** An answer that is read whole has more than it may, or all that are held at once have. */
export class AnswerTooLong extends Error {}

/** What is held of answers until it passes, over all of them. */
export class HeldBytes {
  readonly #max: number;
  #held = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** @throws AnswerTooLong where it is too much */
  hold(bytes: number): void {
    if (this.#held + bytes > this.#max) throw new AnswerTooLong();
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

const DECODERS: ReadonlyMap<string, () => Transform> = new Map<string, () => Transform>([
  ['gzip', createGunzip],
  ['x-gzip', createGunzip],
  ['deflate', createInflate],
  ['br', createBrotliDecompress],
]);

export class AnswerBody implements AsyncIterable<Uint8Array> {
  readonly #answer: UpstreamAnswer;
  readonly #maxBytes: number;
  readonly #encoding: string;

  /** @param maxBytes - Of what is read whole */
  constructor(answer: UpstreamAnswer, maxBytes: number) {
    this.#answer = answer;
    this.#maxBytes = maxBytes;
    this.#encoding = (answer.message.headers['content-encoding'] ?? 'identity').trim().toLowerCase();
  }

  /** The headers of the answer as the client gets them. @param length - Of a body that was read whole */
  headers(length?: number): string[] {
    const isSame = this.#encoding === 'identity' && length === undefined;
    const changed = isSame ? [] : ['content-length', 'content-encoding', 'content-md5', 'digest', 'etag'];
    const kept = endToEnd(this.#answer.message.rawHeaders, new Set(changed));
    return length === undefined ? kept : [...kept, 'Content-Length', String(length)];
  }

  /** @throws Error when the server breaks off, or its compression is not sound */
  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    const { message } = this.#answer;
    for await (const chunk of this.#decoded()) {
      this.#answer.wait(false);
      yield chunk;
      this.#answer.wait(true);
    }
    if (!message.complete) throw new Error('the answer broke off');
  }

  /** The whole, which is held until it is released. @throws AnswerTooLong; Error as above */
  async read(held: HeldBytes): Promise<Uint8Array> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    try {
      for await (const chunk of this) {
        if (size + chunk.length > this.#maxBytes) throw new AnswerTooLong();
        held.hold(chunk.length);
        size += chunk.length;
        chunks.push(chunk);
      }
      return concatBytes(chunks);
    } catch (error) {
      this.abort();
      held.release(size);
      throw error;
    }
  }

  /** Breaks off what has not come. */
  abort(): void {
    if (!this.#answer.message.complete) this.#answer.abort('CLIENT_LEFT');
  }

  #decoded(): AsyncIterable<Buffer> {
    const { message } = this.#answer;
    if (this.#encoding === 'identity' || this.#encoding === '') return message as AsyncIterable<Buffer>;
    const make = DECODERS.get(this.#encoding);
    if (make === undefined) throw new Error('the answer is compressed in an unknown way');
    const decoder: Readable = pipeline(message, make(), () => undefined);
    return decoder as AsyncIterable<Buffer>;
  }
}
