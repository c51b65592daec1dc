/**
 * Cuts a `text/event-stream` into its events, as they were sent, so that each can be looked at before it passes. Comments pass at once, and
 * nothing is kept of them.
 */

import { concatBytes } from '../../base/bytes/concat.js';
import { encodeUtf8 } from '../../base/bytes/text.js';
import type { HeldBytes } from './http-answer.js';
import { EventStreamReader, GrowingBytes, type ServerSentEvent } from '../proxy/event-stream.js';

export interface StreamPiece {
  /** As it was sent. */
  readonly raw: Uint8Array;
  /** Those that end in it: one, or none for comments, ids and times alone. */
  readonly events: readonly ServerSentEvent[];
}

const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const NO_EVENTS: readonly ServerSentEvent[] = [];

export class EventCutter {
  readonly #maxEventBytes: number;
  readonly #held: HeldBytes | undefined;
  readonly #reader: EventStreamReader;
  /** Of the event that has begun. */
  readonly #begun = new GrowingBytes();
  /** Whether it has lines that are no comments. */
  #hasFields = false;
  #lineLength = 0;
  #isComment = false;
  /** The last byte was a CR, of which a LF may be the other half. */
  #isAfterReturn = false;

  /**
   * @param maxEventBytes - The longest event, in bytes as sent
   * @param held - Told of what is kept of an event that is not complete
   */
  constructor(maxEventBytes: number, held?: HeldBytes) {
    this.#maxEventBytes = maxEventBytes;
    this.#held = held;
    this.#reader = new EventStreamReader(maxEventBytes);
  }

  /** @throws RangeError for an event that is longer than it may be; AnswerTooLong where too much is held */
  push(chunk: Uint8Array): StreamPiece[] {
    const pieces: StreamPiece[] = [];
    let from = 0;
    const take = (end: number): Uint8Array => {
      this.#keep(chunk.subarray(from, end));
      from = end;
      const raw = this.#begun.view().slice();
      this.clear();
      return raw;
    };
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at]!;
      const isSecondHalf = byte === LF && this.#isAfterReturn;
      this.#isAfterReturn = byte === CR;
      if (isSecondHalf) {
        if (!this.#hasFields) pieces.push({ raw: take(at + 1), events: NO_EVENTS });
        continue;
      }
      if (byte !== CR && byte !== LF) {
        if (this.#lineLength === 0) this.#isComment = byte === COLON;
        this.#lineLength += 1;
        continue;
      }
      if (this.#lineLength === 0) {
        const raw = take(at + 1);
        const events = this.#hasFields ? this.#reader.push(raw) : NO_EVENTS;
        this.#hasFields = false;
        pieces.push({ raw, events });
      } else if (!this.#isComment) this.#hasFields = true;
      else if (!this.#hasFields) pieces.push({ raw: take(at + 1), events: NO_EVENTS });
      this.#lineLength = 0;
    }
    if (from === chunk.length) return pieces;
    if (!this.#hasFields && this.#lineLength > 0 && this.#isComment)
      pieces.push({ raw: take(chunk.length), events: NO_EVENTS });
    else this.#keep(chunk.subarray(from));
    return pieces;
  }

  clear(): void {
    this.#held?.release(this.#begun.length);
    this.#begun.clear();
  }

  #keep(bytes: Uint8Array): void {
    if (this.#begun.length + bytes.length > this.#maxEventBytes)
      throw new RangeError(`an event has more than ${this.#maxEventBytes} bytes`);
    this.#held?.hold(bytes.length);
    this.#begun.add(bytes);
  }
}

/** An event with other data, which has no line end; without data it only has its id. */
export function writeEvent(
  { event, id }: Pick<ServerSentEvent, 'event' | 'id'>,
  data: Uint8Array | undefined,
): Uint8Array {
  const lines = (data === undefined ? '' : `event: ${event}\n`) + (id === undefined ? '' : `id: ${id}\n`);
  if (data === undefined) return encodeUtf8(lines === '' ? '' : `${lines}\n`);
  return concatBytes([encodeUtf8(`${lines}data: `), data, encodeUtf8('\n\n')]);
}
