/**
 * Part files: the signatures of a stretch of a ledger, verified anywhere, to be merged where the rules are applied in order. A part holds
 * the lines of its stretch and one verdict for each of their signatures. Everything else is computed again when parts are merged, at
 * little cost.
 *
 * A part is as trustworthy as its maker: verdicts that a signature is valid are believed, but for a sample. Its checksum finds damage,
 * and proves nothing.
 *
 * The file is a line of JSON ({@link PartHeader}), then frames. A frame is a byte for its kind, the lengths of its two parts as
 * little-endian numbers of 32 bits, and these parts.
 */

import { equalBytes } from '../../base/bytes/compare.js';
import { concatBytes } from '../../base/bytes/concat.js';
import { printable } from '../../base/bytes/printable.js';
import { createSha256, type Hasher } from '../../base/bytes/sha256.js';
import { decodeUtf8, encodeLatin1, encodeUtf8 } from '../../base/bytes/text.js';
import { NorthrootError } from '../../base/error.js';

export interface PartHeader {
  readonly northroot_part: '1';
  /** From 1 on. */
  readonly part: number;
  readonly of: number;
  /** The ledger's name as given, and its size in bytes. */
  readonly path: string;
  readonly size: number;
}

/** The maximum number of parts of a ledger. */
export const MAX_PARTS = 10_000;

/** The file of the lines that follow. */
export interface PartSegment {
  readonly file: string;
  readonly firstSeq: number | undefined;
}

export type PartFrame =
  | { readonly kind: 'segment'; readonly segment: PartSegment }
  | { readonly kind: 'lines'; readonly bytes: Uint8Array; readonly verdicts: Uint8Array }
  | {
      readonly kind: 'long';
      readonly length: number;
      readonly terminated: boolean;
      readonly leaf: Uint8Array;
    };

const KINDS = ['end', 'segment', 'lines', 'long'] as const;
const HEAD_BYTES = 9;
const MAX_HEADER_BYTES = 16 * 1024;
/** The maximum bytes of a frame's first part, and of its second. */
const MAX_PART_LINES = 1024 * 1024;
const HASH_BYTES = 32;
const NEWLINE = 0x0a;

/** Encodes a part, piece by piece, ended by {@link PartEncoder.end}. */
export class PartEncoder {
  readonly #hasher: Hasher = createSha256();

  header(header: PartHeader): Uint8Array {
    const { northroot_part, part, of, path, size } = header;
    return this.#hash(encodeUtf8(`${JSON.stringify({ northroot_part, part, of, path, size })}\n`));
  }

  frame(frame: PartFrame): Uint8Array {
    switch (frame.kind) {
      case 'segment': {
        const { file, firstSeq = null } = frame.segment;
        return this.#frame('segment', encodeUtf8(JSON.stringify({ file, first_seq: firstSeq })), EMPTY);
      }
      case 'lines':
        return this.#frame('lines', frame.bytes, frame.verdicts);
      case 'long': {
        const { length, terminated } = frame;
        return this.#frame('long', encodeUtf8(JSON.stringify({ length, terminated })), frame.leaf);
      }
    }
  }

  end(): Uint8Array {
    return this.#frame('end', EMPTY, encodeLatin1(this.#hasher.digestLatin1()));
  }

  #frame(kind: (typeof KINDS)[number], first: Uint8Array, second: Uint8Array): Uint8Array {
    const head = new Uint8Array(HEAD_BYTES);
    const view = new DataView(head.buffer);
    view.setUint8(0, KINDS.indexOf(kind));
    view.setUint32(1, first.length, true);
    view.setUint32(5, second.length, true);
    const bytes = concatBytes([head, first, second]);
    return kind === 'end' ? bytes : this.#hash(bytes);
  }

  #hash(bytes: Uint8Array): Uint8Array {
    this.#hasher.update(bytes);
    return bytes;
  }
}

const EMPTY = new Uint8Array(0);

/**
 * Reads a part: its header, then its frames. Each MUST be consumed before the next is requested.
 *
 * @param name - The part's, for errors.
 * @throws NorthrootError `PART_MALFORMED` for anything that {@link PartEncoder} does not write
 */
export async function* decodePart(
  chunks: AsyncIterable<Uint8Array>,
  name: string,
): AsyncGenerator<PartHeader | PartFrame, void, void> {
  const input = new Input(chunks, name);
  try {
    yield* readFrames(input);
  } finally {
    await input.close();
  }
}

async function* readFrames(input: Input): AsyncGenerator<PartHeader | PartFrame, void, void> {
  const hasher = createSha256();
  const line = await input.takeLine();
  hasher.update(line);
  yield toHeader(decodeUtf8(line), input);
  for (;;) {
    const head = await input.take(HEAD_BYTES);
    const view = new DataView(head.buffer, head.byteOffset, HEAD_BYTES);
    const kind = KINDS[view.getUint8(0)];
    const lengths = [view.getUint32(1, true), view.getUint32(5, true)] as const;
    if (kind === undefined || lengths.some((length) => length > MAX_PART_LINES)) throw input.refuse();
    const first = await input.take(lengths[0]);
    const second = await input.take(lengths[1]);
    if (kind === 'end') {
      if (first.length > 0 || !equalBytes(second, encodeLatin1(hasher.digestLatin1()))) throw input.refuse();
      if (!(await input.isAtEnd())) throw input.refuse();
      return;
    }
    hasher.update(head).update(first).update(second);
    yield toFrame(kind, first, second, input);
  }
}

function toHeader(line: string, input: Input): PartHeader {
  const header = parse(line.slice(0, -1), input);
  const { part, of, path, size } = header;
  const isOne =
    header['northroot_part'] === '1' &&
    isCount(part, 1, MAX_PARTS) &&
    isCount(of, part, MAX_PARTS) &&
    isCount(size, 0, Number.MAX_SAFE_INTEGER) &&
    typeof path === 'string';
  if (!isOne) throw input.refuse();
  const result: PartHeader = { northroot_part: '1', part, of, path, size };
  // No other spelling, and no other members.
  if (`${JSON.stringify(result)}\n` !== line) throw input.refuse();
  return result;
}

function toFrame(kind: PartFrame['kind'], first: Uint8Array, second: Uint8Array, input: Input): PartFrame {
  switch (kind) {
    case 'segment': {
      const { file, first_seq: firstSeq } = parse(decodeUtf8(first), input);
      const isSeq = firstSeq === null || isCount(firstSeq, 0, Number.MAX_SAFE_INTEGER);
      if (typeof file !== 'string' || !isSeq || second.length > 0) throw input.refuse();
      return { kind, segment: { file, firstSeq: firstSeq ?? undefined } };
    }
    case 'lines':
      if (first.length === 0) throw input.refuse();
      return { kind, bytes: first, verdicts: second };
    case 'long': {
      const { length, terminated } = parse(decodeUtf8(first), input);
      const isOne = isCount(length, 0, Number.MAX_SAFE_INTEGER) && typeof terminated === 'boolean';
      if (!isOne || second.length !== HASH_BYTES) throw input.refuse();
      return { kind, length, terminated, leaf: second };
    }
  }
}

function isCount(value: unknown, least: number, most: number): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

function parse(text: string, input: Input): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Readonly<Record<string, unknown>>;
  } catch {
    // Refused below, as anything unexpected.
  }
  throw input.refuse();
}

/** Reads the bytes of a part in pieces. */
class Input {
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #name: string;
  #chunk: Uint8Array = EMPTY;
  #taken = 0;

  constructor(chunks: AsyncIterable<Uint8Array>, name: string) {
    this.#chunks = chunks[Symbol.asyncIterator]();
    this.#name = name;
  }

  /** A line, with its `\n`. */
  async takeLine(): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let length = 0;
    while (length < MAX_HEADER_BYTES && (await this.#fill())) {
      const newline = this.#chunk.indexOf(NEWLINE, this.#taken);
      const end = newline === -1 ? this.#chunk.length : newline + 1;
      // A copy: the next chunk may overwrite it.
      parts.push(Uint8Array.from(this.#chunk.subarray(this.#taken, end)));
      length += end - this.#taken;
      this.#taken = end;
      if (newline !== -1) return concatBytes(parts);
    }
    throw this.refuse();
  }

  async take(length: number): Promise<Uint8Array> {
    const bytes = new Uint8Array(length);
    for (let at = 0; at < length;) {
      if (!(await this.#fill())) throw this.refuse();
      const part = this.#chunk.subarray(this.#taken, this.#taken + length - at);
      bytes.set(part, at);
      at += part.length;
      this.#taken += part.length;
    }
    return bytes;
  }

  async isAtEnd(): Promise<boolean> {
    return !(await this.#fill());
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }

  refuse(): NorthrootError {
    return new NorthrootError('PART_MALFORMED', `${printable(this.#name)} is not a whole part file`, {
      hint: 'it was cut off or damaged, or it is another file: make it again',
    });
  }

  async #fill(): Promise<boolean> {
    while (this.#taken === this.#chunk.length) {
      const next = await this.#chunks.next();
      if (next.done === true) return false;
      this.#chunk = next.value;
      this.#taken = 0;
    }
    return true;
  }
}
