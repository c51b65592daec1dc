/** Server-sent events (HTML §9.2.6, `text/event-stream`), read from bytes as they come, in bounded memory. */

import { decodeUtf8 } from '../../base/bytes/text.js';

/** The longest event, in bytes of its fields. The last event of a stream may repeat the whole answer. */
export const MAX_EVENT_BYTES = 16 * 1024 * 1024;

/** What is kept of a buffer between events. */
const MAX_KEPT_BYTES = 64 * 1024;

export interface ServerSentEvent {
  /** Its type; `message` where it states none. */
  readonly event: string;
  /** The lines of its data, joined by line feeds; perhaps empty, but an event without any is none. */
  readonly data: Uint8Array;
  /** The id that it states itself. */
  readonly id: string | undefined;
}

/**
 * Reads events, however the stream is cut into chunks. Lines end with CR, LF or CRLF; comments, unknown fields and a byte order mark are
 * ignored. Bytes that are no UTF-8 are kept in the data, and replaced elsewhere.
 */
export class EventStreamReader {
  readonly #maxEventBytes: number;
  readonly #line = new GrowingBytes();
  readonly #data = new GrowingBytes();
  #event = '';
  #id: string | undefined;
  #isFirstLine = true;
  /** The last chunk ended with a CR, of which a LF may be the other half. */
  #isAfterReturn = false;
  #isTooLong = false;
  #skipped = 0;

  /** @throws RangeError unless `maxEventBytes` is a whole number from 1 to 2^30 */
  constructor(maxEventBytes: number = MAX_EVENT_BYTES) {
    if (!Number.isInteger(maxEventBytes) || maxEventBytes < 1 || maxEventBytes > 2 ** 30)
      throw new RangeError(`expected a whole number from 1 to 2^30, found ${maxEventBytes}`);
    this.#maxEventBytes = maxEventBytes;
  }

  /** How many events were longer than is read, and are left out. */
  get skipped(): number {
    return this.#skipped;
  }

  /** Whether the last byte ended an event, so that the next one begins another line of the stream. */
  get isBetween(): boolean {
    const isFresh = !this.#isFirstLine && !this.#isAfterReturn && !this.#isTooLong;
    return isFresh && this.#line.length === 0 && this.#size() === 0;
  }

  /** The events that end within this chunk, in order. */
  push(chunk: Uint8Array): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    let from = this.#isAfterReturn && chunk[0] === LF ? 1 : 0;
    if (chunk.length > 0) this.#isAfterReturn = false;
    let nextReturn = chunk.indexOf(CR, from);
    let nextFeed = chunk.indexOf(LF, from);
    while (nextReturn >= 0 || nextFeed >= 0) {
      const isReturn = nextReturn >= 0 && (nextFeed < 0 || nextReturn < nextFeed);
      const end = isReturn ? nextReturn : nextFeed;
      this.#endLine(chunk.subarray(from, end), events);
      from = end + 1;
      if (isReturn) {
        if (from === chunk.length) this.#isAfterReturn = true;
        else if (chunk[from] === LF) from += 1;
        nextReturn = chunk.indexOf(CR, from);
      }
      if (nextFeed >= 0 && nextFeed < from) nextFeed = chunk.indexOf(LF, from);
    }
    this.#addToLine(chunk.subarray(from));
    return events;
  }

  /**
   * The event that the stream broke off in, if it has data. Readers of events discard it; who pays for the stream may learn from it. What
   * comes after is a new stream.
   */
  end(): ServerSentEvent | undefined {
    const events: ServerSentEvent[] = [];
    this.#endLine(EMPTY, events);
    this.#endEvent(events);
    this.#isFirstLine = true;
    this.#isAfterReturn = false;
    return events[0];
  }

  #addToLine(bytes: Uint8Array): void {
    if (this.#isTooLong) {
      // Of an event that is left out, only whether a line is empty is of interest.
      if (bytes.length > 0 && this.#line.length === 0) this.#line.add(bytes.subarray(0, 1));
      return;
    }
    if (this.#line.length + bytes.length + this.#size() <= this.#maxEventBytes) this.#line.add(bytes);
    else this.#leaveOut(bytes.length > 0);
  }

  #leaveOut(isWithinLine: boolean): void {
    this.#isTooLong = true;
    this.#skipped += 1;
    this.#line.clear();
    if (isWithinLine) this.#line.add(COLON_ONLY);
    this.#data.clear();
    this.#event = '';
    this.#id = undefined;
  }

  #size(): number {
    return this.#data.length + this.#event.length + (this.#id?.length ?? 0);
  }

  #endLine(tail: Uint8Array, events: ServerSentEvent[]): void {
    let line = tail;
    if (this.#line.length > 0 || this.#isTooLong || tail.length + this.#size() > this.#maxEventBytes) {
      this.#addToLine(tail);
      line = this.#line.view();
    }
    if (this.#isFirstLine && line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf)
      line = line.subarray(3);
    this.#isFirstLine = false;
    if (line.length === 0) this.#endEvent(events);
    else if (!this.#isTooLong) this.#readField(line);
    this.#line.clear();
  }

  #readField(line: Uint8Array): void {
    const colon = line.indexOf(COLON);
    // A comment.
    if (colon === 0) return;
    const nameEnd = colon < 0 ? line.length : colon;
    // The longest name that is known has five characters.
    const name = nameEnd > 5 ? '' : decodeUtf8(line.subarray(0, nameEnd));
    const valueFrom = colon < 0 ? line.length : line[colon + 1] === SPACE ? colon + 2 : colon + 1;
    const value = line.subarray(valueFrom);
    if (name === 'data') {
      this.#data.add(value);
      this.#data.add(LINE_FEED);
    } else if (name === 'event') this.#event = decodeUtf8(value);
    else if (name === 'id' && !value.includes(0)) this.#id = decodeUtf8(value);
  }

  #endEvent(events: ServerSentEvent[]): void {
    // Every line of data was given a line feed, the last one too.
    if (this.#data.length > 0) {
      const data = this.#data.view().slice(0, -1);
      events.push({ event: this.#event === '' ? 'message' : this.#event, data, id: this.#id });
    }
    this.#data.clear();
    this.#event = '';
    this.#id = undefined;
    this.#isTooLong = false;
  }
}

const CR = 0x0d;
const LF = 0x0a;
const COLON = 0x3a;
const SPACE = 0x20;
const EMPTY = new Uint8Array(0);
const LINE_FEED = Uint8Array.of(LF);
const COLON_ONLY = Uint8Array.of(COLON);

/** Bytes in one array that grows, so that many small pieces cost no more than their bytes. */
export class GrowingBytes {
  #bytes: Uint8Array = EMPTY;
  length = 0;

  add(bytes: Uint8Array): void {
    const needed = this.length + bytes.length;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length, 256));
      grown.set(this.view());
      this.#bytes = grown;
    }
    this.#bytes.set(bytes, this.length);
    this.length = needed;
  }

  /** Valid until the next change. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }

  clear(): void {
    this.length = 0;
    if (this.#bytes.length > MAX_KEPT_BYTES) this.#bytes = EMPTY;
  }
}
