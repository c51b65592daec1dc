/**
 * Northroot journals (`.nrj`, version 1): a header of 16 bytes, then frames, of which those of kind 1 hold one event each as JSON.
 *
 *     "NRJ1"  version 1, u16  flags 0, u16  eight zeros
 *     kind, u8  three zeros  length of the payload, u32  payload
 *
 * Numbers are little-endian. Frames of other kinds are passed over. Nothing in a file says how many frames it has, so a file that was
 * cut between two frames cannot be told from a whole one.
 */

import { concatBytes } from '../../../base/bytes/concat.js';
import { encodeLatin1 } from '../../../base/bytes/text.js';
import { NorthrootError } from '../../../base/error.js';

/** Bytes that distinguish a journal from JSON. */
export const JOURNAL_START_BYTES = 4;
/** The largest payload that the format has, in bytes; of frames of other kinds too. */
const MAX_FRAME_BYTES = 16 * 1024 * 1024;
/** The largest payload of an event that is read, in bytes: no ledger takes a larger one. */
const MAX_JOURNAL_EVENT_BYTES = 1024 * 1024;

const MAGIC = encodeLatin1('NRJ1');
const HEADER = concatBytes([MAGIC, Uint8Array.of(1, 0), new Uint8Array(10)]);
const FRAME_HEADER_BYTES = 8;
const EVENT_JSON = 1;

export interface JournalFrame {
  /** Where it begins in the file, in bytes. */
  readonly offset: number;
  /** The JSON, not looked into. */
  readonly payload: Uint8Array;
}

/** What becomes of a journal that ends within a frame. */
export type JournalMode = 'strict' | 'permissive';

/** Whether bytes begin as a journal does, whatever its version. */
export function isJournal(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, i) => bytes[i] === byte);
}

export function formatJournalHeader(): Uint8Array {
  return HEADER.slice();
}

/** The frame of one event: its header and its payload. @throws RangeError for a payload of more than 16 MiB */
export function formatJournalFrame(payload: Uint8Array): Uint8Array {
  if (payload.length > MAX_FRAME_BYTES)
    throw new RangeError(`expected at most ${MAX_FRAME_BYTES} bytes of payload`);
  const header = new Uint8Array(FRAME_HEADER_BYTES);
  header[0] = EVENT_JSON;
  new DataView(header.buffer).setUint32(4, payload.length, true);
  return concatBytes([header, payload]);
}

/**
 * Reads the events' frames of a journal as they come, in memory that does not grow with it.
 *
 * @param mode - `permissive` takes a frame that is cut off for the end. Default: `strict`.
 * @throws NorthrootError `JOURNAL_MALFORMED` for another header or frame than version 1 has, `JOURNAL_TORN` where it ends within one,
 *   `JOURNAL_EVENT_TOO_LARGE` above {@link MAX_JOURNAL_EVENT_BYTES}; what `chunks` throws
 */
export async function* readJournal(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  mode: JournalMode = 'strict',
): AsyncGenerator<JournalFrame, void, void> {
  const input = new Input(chunks);
  const header = await input.take(HEADER.length);
  // A torn header is none in either mode: nothing says what the file is.
  if (header === undefined) throw torn(0, 'its header');
  HEADER.forEach((byte, i) => {
    if (header[i] !== byte)
      throw malformed(i, i < 4 ? 'the magic bytes NRJ1' : 'version 1, no flags and zeros after them');
  });
  for (;;) {
    const { offset } = input;
    const head = await input.take(FRAME_HEADER_BYTES);
    if (head === undefined) {
      if (input.isAtEnd(offset) || mode === 'permissive') return;
      throw torn(offset, "a frame's header");
    }
    if (head[1] !== 0 || head[2] !== 0 || head[3] !== 0)
      throw malformed(offset + 1, 'three zeros after the kind of a frame');
    const length = new DataView(head.buffer, head.byteOffset).getUint32(4, true);
    if (length > MAX_FRAME_BYTES) throw malformed(offset + 4, `a frame of at most ${MAX_FRAME_BYTES} bytes`);
    const isEvent = head[0] === EVENT_JSON;
    if (isEvent && length > MAX_JOURNAL_EVENT_BYTES) {
      const message = `the event at byte ${offset} of the journal has ${length} bytes, more than ${MAX_JOURNAL_EVENT_BYTES}`;
      throw new NorthrootError('JOURNAL_EVENT_TOO_LARGE', message);
    }
    const payload = isEvent ? await input.take(length) : await input.skip(length);
    if (payload === undefined) {
      if (mode === 'permissive') return;
      throw torn(offset, 'a frame');
    }
    if (isEvent) yield { offset, payload };
  }
}

/** The bytes of a journal, taken in pieces. */
class Input {
  readonly #chunks: AsyncIterator<Uint8Array> | Iterator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array();
  #isDone = false;
  /** How many bytes were taken. */
  offset = 0;

  constructor(chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) {
    this.#chunks =
      Symbol.asyncIterator in chunks ? chunks[Symbol.asyncIterator]() : chunks[Symbol.iterator]();
  }

  /** Whether the input ended there. */
  isAtEnd(offset: number): boolean {
    return this.#isDone && this.offset === offset && this.#rest.length === 0;
  }

  /** The next bytes; undefined where there are fewer. */
  async take(length: number): Promise<Uint8Array | undefined> {
    const pieces: Uint8Array[] = [];
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0 && !(await this.#more())) {
        this.#rest = concatBytes(pieces);
        return undefined;
      }
      // The caller may reuse its chunks.
      const piece = this.#rest.slice(0, missing);
      this.#rest = this.#rest.subarray(piece.length);
      pieces.push(piece);
      missing -= piece.length;
    }
    this.offset += length;
    return pieces.length === 1 ? pieces[0] : concatBytes(pieces);
  }

  /** Passes over the next bytes; undefined where there are fewer. */
  async skip(length: number): Promise<Uint8Array | undefined> {
    let missing = length;
    while (missing > 0) {
      if (this.#rest.length === 0 && !(await this.#more())) return undefined;
      const skipped = Math.min(missing, this.#rest.length);
      this.#rest = this.#rest.subarray(skipped);
      missing -= skipped;
    }
    this.offset += length;
    return new Uint8Array();
  }

  async #more(): Promise<boolean> {
    while (!this.#isDone && this.#rest.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) this.#isDone = true;
      else this.#rest = next.value;
    }
    return this.#rest.length > 0;
  }
}

function malformed(offset: number, expected: string): NorthrootError {
  return new NorthrootError(
    'JOURNAL_MALFORMED',
    `expected ${expected} at byte ${offset} of the journal, found other bytes`,
  );
}

function torn(offset: number, what: string): NorthrootError {
  return new NorthrootError(
    'JOURNAL_TORN',
    `the journal ends within ${what}, which begins at byte ${offset}`,
    {
      hint: 'was it cut off, or is it still being written?',
    },
  );
}
