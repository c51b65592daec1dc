/** Who looks on while an answer passes: a copy of its bytes, decompressed where the upstream compressed them. */

import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

export type ProxyFaultCode =
  /** No connection to the upstream: it has no part of the request. */
  | 'UPSTREAM_UNREACHABLE'
  /** The connection broke, or its certificate or what it sent is not sound. */
  | 'UPSTREAM_BROKE'
  /** It took longer than it may. */
  | 'UPSTREAM_TIMEOUT'
  /** It answered with a redirect, which is not followed. */
  | 'UPSTREAM_REDIRECTED'
  /** The client has gone, or reads too slowly. */
  | 'CLIENT_LEFT'
  /** The proxy was closed. */
  | 'PROXY_CLOSED'
  /** It may not go on: what the handler gave to stop it was aborted. */
  | 'STOPPED'
  /** It passed whole, and could not be read: an unknown compression, or more than is decompressed. */
  | 'ANSWER_UNREADABLE';

export interface ProxyFault {
  readonly code: ProxyFaultCode;
  /** Whether the upstream may have begun on the request. */
  readonly wasSent: boolean;
}

/** Sees an answer while it passes. None of these may throw or reject. */
export interface AnswerObserver {
  /** The headers by name in lower case, as node:http joins them. */
  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void;
  /** The bytes are valid during the call. */
  chunk(bytes: Uint8Array): void;
  /**
   * Called once, and last, also where no `head` was. The end of an answer that came whole is sent just before, in the same turn: no later
   * request is read until this has returned. An error is held back until what this returns resolves, as the client may ask again when it
   * has it. Until then the request counts as one that runs, and closing the proxy waits for it.
   */
  end(fault: ProxyFault | undefined): void | Promise<void>;
}

/** What is decompressed of one answer, in bytes: it costs time alone, as no observer keeps it. */
export const MAX_DECODED_BYTES = 256 * 1024 * 1024;

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
};

export class Watch {
  readonly #observer: AnswerObserver | undefined;
  #decoder: Transform | undefined;
  /** Resolves when the observer has seen what the decoder was given last. */
  #taken: Promise<void> | undefined;
  #decoded = 0;
  #isBlind = false;

  constructor(observer: AnswerObserver | undefined) {
    this.#observer = observer;
  }

  head(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    const observer = this.#observer;
    if (observer === undefined) return;
    observer.head(status, headers);
    const encoding = String(headers['content-encoding'] ?? 'identity')
      .trim()
      .toLowerCase();
    if (encoding === 'identity' || encoding === '') return;
    const make = Object.hasOwn(DECODERS, encoding) ? DECODERS[encoding] : undefined;
    if (make === undefined) {
      this.#isBlind = true;
      return;
    }
    const decoder = make();
    decoder.on('data', (bytes: Buffer) => {
      this.#decoded += bytes.length;
      if (this.#decoded > MAX_DECODED_BYTES) this.#stop();
      else observer.chunk(bytes);
    });
    decoder.on('error', () => this.#stop());
    this.#decoder = decoder;
  }

  /** Whether the observer sees bytes in the turn in which they are given. */
  get isPrompt(): boolean {
    return this.#decoder === undefined;
  }

  /** Resolves when the next bytes may come. */
  chunk(bytes: Uint8Array): undefined | Promise<void> {
    if (this.#isBlind) return undefined;
    const decoder = this.#decoder;
    if (decoder === undefined) {
      this.#observer?.chunk(bytes);
      return undefined;
    }
    this.#taken = new Promise((resolve) => {
      decoder.once('close', resolve);
      decoder.write(bytes, () => {
        decoder.off('close', resolve);
        resolve();
      });
    });
    return this.#taken;
  }

  /** Resolves when the observer has seen all that came. Of what broke, too: it is paid for. */
  async finish(isWhole: boolean): Promise<void> {
    const decoder = this.#decoder;
    if (decoder === undefined || decoder.destroyed) return;
    // Nothing came, as after HEAD: that is no compressed stream, and needs none.
    if (!isWhole || this.#taken === undefined) return this.#taken;
    await new Promise<void>((resolve) => {
      decoder.once('close', resolve);
      decoder.end();
    });
  }

  /** Tells the observer, which has then seen the end; resolves when it is done with it. After {@link Watch.finish}, if anything came. */
  end(fault: ProxyFault | undefined): void | Promise<void> {
    this.#decoder?.destroy();
    const unreadable: ProxyFault | undefined = this.#isBlind
      ? { code: 'ANSWER_UNREADABLE', wasSent: true }
      : undefined;
    return this.#observer?.end(fault ?? unreadable);
  }

  #stop(): void {
    this.#isBlind = true;
    this.#decoder?.destroy();
  }
}
