/**
 * Open and denied actions in rows of 288 bytes, for comparison with executions. Only actions from the fast path fit a row (`ActionRow`);
 * all others are packed (`action-table.ts`).
 */

import { encodeBase64url } from '../../base/bytes/encoding.js';
import { decodeLatin1 } from '../../base/bytes/text.js';
import { toDigestText } from '../../base/value/digest.js';
import { type Rational, rationalOfDecimal } from '../../base/value/rational.js';
import type { Action, Grant } from '../bounds/grant.js';

/** How many names are shared; further ones are stored in each action. */
const MAX_NAMES = 4_096;
/** The longest shared name. */
const MAX_NAME_LENGTH = 256;

export class Names {
  readonly #numbers = new Map<string, number>();
  readonly #list: string[] = [];

  /** -1 for one that is not shared. */
  numberOf(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    if (this.#list.length === MAX_NAMES || text.length > MAX_NAME_LENGTH) return -1;
    this.#numbers.set(text, this.#list.length);
    return this.#list.push(text) - 1;
  }

  at(number: number): string {
    return this.#list[number] as string;
  }
}

export const MAX_ROW_UNITS = 6;

/* Where things lie in a row, in bytes, and in numbers of their size. */
const ROW_BYTES = 288;
const DIGEST_BYTES = 32;
const DIGEST_WORDS = 8;
const INTENT = 0;
const PARAMS = 32;
const USER_INTENT = 64;
const HAS_USER_INTENT = 96;
const TIME_LENGTH = 97;
const UNIT_COUNT = 98;
const IS_DENIED = 99;
/** Up to 30 characters, the longest timestamp. */
const TIME = 100;
const GRANT = 132 / 4;
const FILE = 136 / 2;
const PRINCIPAL = 138 / 2;
const TOOL = 140 / 2;
const LINE = 144 / 8;
const SEQ = 152 / 8;
const UNITS = 160 / 2;
const VALUES = 176 / 8;
const ID = 224;
/** The length of its expiry, 0 for none, and the text, up to 30 characters. */
const EXPIRY_LENGTH = 256;
const EXPIRY = 257;
/** A unit's name has 12 bits of 16, the scale of its amount the others. */
const SCALES = 16;

const PIECE_ROWS = 1_024;

/** An action with SHA-256 digests, as offsets into its record. Objects are used again. */
export interface ActionRow {
  /** The indexes of the words of its id and digests; -1 for an absent user intent. */
  words: Int32Array;
  id: number;
  intent: number;
  params: number;
  userIntent: number;
  bytes: Uint8Array;
  /** The offsets of `occurred_at` and of its closing quote. */
  time: number;
  timeEnd: number;
  /** Likewise of its expiry; equal for none. */
  expiry: number;
  expiryEnd: number;
  file: string;
  line: number;
  seq: number;
  principalId: string;
  toolName: string;
  isDenied: boolean;
  /** The number of its grant; -1 for none. */
  grant: number;
  /** The reservation: multiples of 10^−scale of each unit. */
  unitCount: number;
  readonly units: string[];
  readonly amounts: Float64Array;
  readonly scales: Uint8Array;
}

export class ActionRows {
  readonly #bytes: Uint8Array[] = [];
  readonly #words: Int32Array[] = [];
  readonly #shorts: Uint16Array[] = [];
  readonly #numbers: Float64Array[] = [];
  readonly #names: Names;
  /** Free rows: their action was executed or refused. */
  readonly #freed: number[] = [];
  #length = 0;

  constructor(names: Names) {
    this.#names = names;
  }

  /** Writes an action to a free row. @returns The row; -1 where it does not fit. */
  add(action: ActionRow): number {
    const { bytes, words, unitCount, units, time, timeEnd, expiry, expiryEnd } = action;
    if (unitCount > MAX_ROW_UNITS) return -1;
    const file = this.#names.numberOf(action.file);
    const principal = this.#names.numberOf(action.principalId);
    const tool = this.#names.numberOf(action.toolName);
    if (file === -1 || principal === -1 || tool === -1) return -1;
    for (let i = 0; i < unitCount; i += 1) if (this.#names.numberOf(units[i]!) === -1) return -1;
    const row = this.#take();
    const number = Math.floor(row / PIECE_ROWS);
    const at = (row % PIECE_ROWS) * ROW_BYTES;
    const target = this.#bytes[number]!;
    const shorts = this.#shorts[number]!;
    const numbers = this.#numbers[number]!;
    const own = this.#words[number]!;
    const word = at / 4;
    copyDigest(words, action.id, own, word + ID / 4);
    copyDigest(words, action.intent, own, word + INTENT / 4);
    copyDigest(words, action.params, own, word + PARAMS / 4);
    if (action.userIntent !== -1) copyDigest(words, action.userIntent, own, word + USER_INTENT / 4);
    target[at + HAS_USER_INTENT] = action.userIntent === -1 ? 0 : 1;
    target[at + TIME_LENGTH] = timeEnd - time;
    target[at + UNIT_COUNT] = unitCount;
    target[at + IS_DENIED] = action.isDenied ? 1 : 0;
    for (let i = time; i < timeEnd; i += 1) target[at + TIME + i - time] = bytes[i]!;
    target[at + EXPIRY_LENGTH] = expiryEnd - expiry;
    for (let i = expiry; i < expiryEnd; i += 1) target[at + EXPIRY + i - expiry] = bytes[i]!;
    own[word + GRANT] = action.grant;
    const short = at / 2;
    shorts[short + FILE] = file;
    shorts[short + PRINCIPAL] = principal;
    shorts[short + TOOL] = tool;
    const float = at / 8;
    numbers[float + LINE] = action.line;
    numbers[float + SEQ] = action.seq;
    for (let i = 0; i < unitCount; i += 1) {
      shorts[short + UNITS + i] = this.#names.numberOf(units[i]!) * SCALES + action.scales[i]!;
      numbers[float + VALUES + i] = action.amounts[i]!;
    }
    return row;
  }

  free(row: number): void {
    this.#freed.push(row);
  }

  read(row: number, grantAt: (index: number) => Grant | undefined): Action {
    const bytes = this.#bytes[Math.floor(row / PIECE_ROWS)]!;
    const at = (row % PIECE_ROWS) * ROW_BYTES;
    const digest = (place: number): string => this.#digest(row, place);
    const reservation = new Map<string, Rational>();
    for (let i = 0; i < this.unitCount(row); i += 1)
      reservation.set(this.unit(row, i), rationalOfDecimal(this.amount(row, i), this.scale(row, i)));
    const file = this.#names.at(this.#short(row, FILE));
    const grant = this.grant(row);
    const expiry = this.expiryAt(row);
    const expiryEnd = this.expiryEnd(row);
    return {
      place: { file, line: this.#number(row, LINE), seq: this.seq(row), eventId: this.eventId(row) },
      decision: this.isDenied(row) ? 'deny' : 'allow',
      principalId: this.principalId(row),
      occurredAt: decodeLatin1(bytes, at + TIME, at + TIME + bytes[at + TIME_LENGTH]!),
      intent: digest(INTENT),
      userIntent: bytes[at + HAS_USER_INTENT] === 0 ? undefined : digest(USER_INTENT),
      grant: grant === -1 ? undefined : grantAt(grant),
      toolName: this.toolName(row),
      params: digest(PARAMS),
      reservation,
      expiresAt: expiry === expiryEnd ? undefined : decodeLatin1(bytes, expiry, expiryEnd),
      system: undefined,
    };
  }

  /** `sha-256:…` */
  eventId(row: number): string {
    return this.#digest(row, ID);
  }

  isDenied(row: number): boolean {
    return this.#bytes[Math.floor(row / PIECE_ROWS)]![(row % PIECE_ROWS) * ROW_BYTES + IS_DENIED] === 1;
  }

  seq(row: number): number {
    return this.#number(row, SEQ);
  }

  /** -1 for none. */
  grant(row: number): number {
    return this.#words[Math.floor(row / PIECE_ROWS)]![((row % PIECE_ROWS) * ROW_BYTES) / 4 + GRANT]!;
  }

  principalId(row: number): string {
    return this.#names.at(this.#short(row, PRINCIPAL));
  }

  toolName(row: number): string {
    return this.#names.at(this.#short(row, TOOL));
  }

  unitCount(row: number): number {
    return this.#bytes[Math.floor(row / PIECE_ROWS)]![(row % PIECE_ROWS) * ROW_BYTES + UNIT_COUNT]!;
  }

  unit(row: number, index: number): string {
    return this.#names.at(Math.floor(this.#short(row, UNITS + index) / SCALES));
  }

  scale(row: number, index: number): number {
    return this.#short(row, UNITS + index) % SCALES;
  }

  amount(row: number, index: number): number {
    return this.#number(row, VALUES + index);
  }

  /** Whether the words at two indexes are those of its intent and parameters. */
  hasDigests(row: number, words: Int32Array, intent: number, params: number): boolean {
    const at = ((row % PIECE_ROWS) * ROW_BYTES) / 4;
    const own = this.#words[Math.floor(row / PIECE_ROWS)]!;
    return (
      isSameDigest(words, intent, own, at + INTENT / 4) && isSameDigest(words, params, own, at + PARAMS / 4)
    );
  }

  /** Whether the words at an index are those of its parameters. */
  hasParams(row: number, words: Int32Array, params: number): boolean {
    const at = ((row % PIECE_ROWS) * ROW_BYTES) / 4;
    return isSameDigest(words, params, this.#words[Math.floor(row / PIECE_ROWS)]!, at + PARAMS / 4);
  }

  /** The bytes and offset of its `occurred_at`. */
  timeBytes(row: number): Uint8Array {
    return this.#bytes[Math.floor(row / PIECE_ROWS)]!;
  }

  timeAt(row: number): number {
    return (row % PIECE_ROWS) * ROW_BYTES + TIME;
  }

  timeEnd(row: number): number {
    const at = this.timeAt(row);
    return at + this.timeBytes(row)[at - TIME + TIME_LENGTH]!;
  }

  /** The offset of its expiry in {@link ActionRows.timeBytes}. */
  expiryAt(row: number): number {
    return (row % PIECE_ROWS) * ROW_BYTES + EXPIRY;
  }

  /** Equal where it has none. */
  expiryEnd(row: number): number {
    const at = this.expiryAt(row);
    return at + this.timeBytes(row)[at - EXPIRY + EXPIRY_LENGTH]!;
  }

  #digest(row: number, place: number): string {
    const at = (row % PIECE_ROWS) * ROW_BYTES + place;
    const bytes = this.#bytes[Math.floor(row / PIECE_ROWS)]!;
    return toDigestText(encodeBase64url(bytes.subarray(at, at + DIGEST_BYTES)));
  }

  #short(row: number, place: number): number {
    return this.#shorts[Math.floor(row / PIECE_ROWS)]![((row % PIECE_ROWS) * ROW_BYTES) / 2 + place]!;
  }

  #number(row: number, place: number): number {
    return this.#numbers[Math.floor(row / PIECE_ROWS)]![((row % PIECE_ROWS) * ROW_BYTES) / 8 + place]!;
  }

  #take(): number {
    const freed = this.#freed.pop();
    if (freed !== undefined) return freed;
    if (this.#length % PIECE_ROWS === 0) {
      const piece = new ArrayBuffer(PIECE_ROWS * ROW_BYTES);
      this.#bytes.push(new Uint8Array(piece));
      this.#words.push(new Int32Array(piece));
      this.#shorts.push(new Uint16Array(piece));
      this.#numbers.push(new Float64Array(piece));
    }
    this.#length += 1;
    return this.#length - 1;
  }
}

function copyDigest(words: Int32Array, at: number, target: Int32Array, targetAt: number): void {
  for (let i = 0; i < DIGEST_WORDS; i += 1) target[targetAt + i] = words[at + i]!;
}

function isSameDigest(a: Int32Array, at: number, b: Int32Array, bAt: number): boolean {
  for (let i = 0; i < DIGEST_WORDS; i += 1) if (a[at + i] !== b[bAt + i]) return false;
  return true;
}

const PIECE_BITS = 12;
const PIECE = 1 << PIECE_BITS;

/** Rows by the number of their event. A piece without rows takes no memory. */
export class RowColumn {
  /** The rows + 1. */
  readonly #pieces: (Int32Array | undefined)[] = [];
  readonly #counts: number[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** -1 for none. */
  at(number: number): number {
    return (this.#pieces[number >> PIECE_BITS]?.[number % PIECE] ?? 0) - 1;
  }

  /** Adds the row of a number that has none. */
  set(number: number, row: number): void {
    const index = number >> PIECE_BITS;
    (this.#pieces[index] ??= new Int32Array(PIECE))[number % PIECE] = row + 1;
    this.#counts[index] = (this.#counts[index] ?? 0) + 1;
    this.#size += 1;
  }

  /** Removes the row of a number that has one. */
  remove(number: number): void {
    const index = number >> PIECE_BITS;
    const piece = this.#pieces[index] as Int32Array;
    piece[number % PIECE] = 0;
    const count = (this.#counts[index] as number) - 1;
    this.#counts[index] = count;
    if (count === 0) this.#pieces[index] = undefined;
    this.#size -= 1;
  }

  /** Numbers and their rows, in the order of the numbers. */
  *entries(): Generator<readonly [number: number, row: number], void, void> {
    for (const [index, piece] of this.#pieces.entries()) {
      if (piece === undefined) continue;
      for (let offset = 0; offset < PIECE; offset += 1) {
        const row = piece[offset]! - 1;
        if (row !== -1) yield [index * PIECE + offset, row];
      }
    }
  }
}
