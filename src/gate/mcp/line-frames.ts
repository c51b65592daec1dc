/** Messages that are lines (MCP over stdio): bytes in, whole lines out. What is longer than the bound is skipped, and told of. */

import type { RpcId } from './json-rpc.js';
import { LongId } from './long-id.js';

/** A line without its end; or what is known of one that was too long. */
export type LineFrame = Uint8Array | LongLine;

export interface LongLine {
  /** Where it has one. */
  readonly id: RpcId | undefined;
  /** Whether it is a request or a notification, and no answer. */
  readonly hasMethod: boolean;
}

/** The most bytes of a message over stdio, by default. */
export const DEFAULT_MAX_MESSAGE_BYTES = 16 * 1024 * 1024;

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;

/** Splits bytes, given in pieces of any size, at line feeds. Keeps at most one line that is not whole. */
export class LineFrames {
  readonly #maxBytes: number;
  #pieces: Uint8Array[] = [];
  #size = 0;
  #long: LongId | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  *push(chunk: Uint8Array): Generator<LineFrame, void, void> {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, from);
      this.#add(chunk.subarray(from, end === -1 ? chunk.length : end));
      if (end === -1) return;
      yield this.#take();
      from = end + 1;
    }
  }

  /** What follows the last line feed; undefined for nothing. */
  end(): LineFrame | undefined {
    return this.#size === 0 ? undefined : this.#take();
  }

  #add(piece: Uint8Array): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#long !== undefined) {
      this.#long.push(piece);
      return;
    }
    this.#pieces.push(piece);
    // The carriage return before a line feed is part of its end.
    if (this.#size <= this.#maxBytes + 1) return;
    this.#long = idOf(this.#pieces);
    this.#pieces = [];
  }

  #take(): LineFrame {
    const [first = new Uint8Array(0), second] = this.#pieces;
    let line = second === undefined ? first : Buffer.concat(this.#pieces, this.#size);
    if (line.at(-1) === CARRIAGE_RETURN) line = line.subarray(0, -1);
    const long = this.#long ?? (line.length > this.#maxBytes ? idOf([line]) : undefined);
    this.#pieces = [];
    this.#size = 0;
    this.#long = undefined;
    return long === undefined ? line : { id: long.id, hasMethod: long.hasMethod };
  }
}

function idOf(pieces: readonly Uint8Array[]): LongId {
  const id = new LongId();
  for (const piece of pieces) id.push(piece);
  return id;
}
